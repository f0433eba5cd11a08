// ops.h: what the contractions of a region have in common (conv.cc, matmul.cc): weights
// packed once, a bias, post-ops in the order in which the graph has them, and parts of what takes long.
//
// How to read it: Describe says what the post-ops bring along, Attr tells oneDNN, EmitWith does the rest once
// there is a primitive.
#pragma once

#include <optional>
#include <span>

#include "plugins/cpu/onednn/cut.h"
#include "plugins/cpu/regions/region.h"

namespace keel_cpu {

// What the post-ops of a recipe bring along.
struct Attributes {
  struct Other {
    uint32_t value;
    Dims view;  // dims under which the primitive sees it
    bool whole;
  };
  std::vector<Other> others;    // of the binary ones, in order
  const PostOp* sum = nullptr;  // what is added in place
};

// The dims under which a primitive sees a value; none: it does not broadcast in a way that it knows.
using View = std::function<std::optional<Dims>(const BodyValue&)>;
// Dims aligned at the last one, with ones in front; none if it does not broadcast to `out`.
std::optional<Dims> Broadcast(const Dims& dims, const Dims& out);

// False: an operand has no view, or the program may not do this.
bool Describe(Builder& b, const Recipe& r, const Dims& out, bool in_place, const View& view, Attributes* a);

// The same as oneDNN's attributes. Others: operands of the binary ones; adds: to what is there; last: else
// there are no post-ops yet.
dnnl::primitive_attr Attr(const Recipe& r, const Attributes& a, const std::vector<Arg>& others,
                          bool adds = false, bool last = true);
// Where all of it is wanted, oneDNN chooses the layouts of operands as large as the result.
dnnl::primitive_attr Attr(Builder& b, const Recipe& r, const Attributes& a);

// -1: none.
int BiasOf(Builder& b, const Recipe& r);
// Of plain weights: element i belongs to output channel i / step % count.
struct Channels {
  int64_t step, count;
};
// Weights in the layout that a primitive wants: packed at prepare if constant, else at each run.
int Weights(Builder& b, const BodyNode& node, const Recipe& r, const Layout& plain, const Layout& wanted,
            const Channels& channels);

// Constant weights times the recipe's scale, which `own` holds where there is one; what tells them apart.
const void* Scaled(const BodyValue& w, const std::vector<float>& scale, Bytes* own, const Channels& channels);
const void* KeyOf(const Builder& b, const BodyNode& node, const Recipe& r);

// The arguments of a contraction; with buffer -1 they are left out.
struct Operands {
  Arg src, weights, bias, out = {};
  std::vector<Arg> others = {};  // of the binary post-ops, in order
  std::vector<Arg> All() const;
};
// The operands of the post-ops; of a part of the result, of which some of the leading dims are a box.
std::vector<Arg> OtherArgs(Builder& b, const Recipe& r, const Attributes& a,
                           const dnnl::primitive_desc_base& d);
std::vector<Arg> OthersOf(std::span<const Arg> whole, const Box& box, size_t leading, bool adds = false);

struct Conv;
// A convolution by Winograd's way (winograd.cc); false: that does not pay, or cannot be.
bool EmitWinograd(Builder& b, const BodyNode& node, const Recipe& r, const Attributes& a, const Conv& s);

// Where a contraction writes: over what is added in place, if anything.
int OutOf(Builder& b, const Recipe& r, const Attributes& a, const Layout& out);

// A contraction in parts: how a part's primitive is made.
template <class P>
struct Parts {
  struct Part {
    Layout src, weights, bias, out;
    uint64_t src_at = 0, weights_at = 0, bias_at = 0, out_at = 0;  // where it begins, in bytes
    bool adds = false, last = true;  // to what is there; only the last one has post-ops
    Box box, x;                      // of the leading dims of the result, and of x
    size_t leading = 0;              // their number
    Dims lo, hi;                     // padding, of a convolution
  };
  std::vector<Part> parts;
  std::function<typename P::primitive_desc(const Part&, const dnnl::primitive_attr&)> make;
};

// False: not every part has a good primitive, and nothing was emitted.
template <class P>
bool EmitParts(Builder& b, const Recipe& r, const Attributes& a, const Parts<P>& cut, const Operands& whole) {
  std::vector<typename P::primitive_desc> made;
  std::vector<std::vector<Arg>> args;
  try {
    for (const auto& part : cut.parts) {
      const int bias = part.bias.is_zero() ? -1 : whole.bias.buffer;
      Operands mine = {{DNNL_ARG_SRC, part.src, whole.src.buffer, part.src_at},
                       {DNNL_ARG_WEIGHTS, part.weights, whole.weights.buffer, part.weights_at},
                       {DNNL_ARG_BIAS, part.bias, bias, part.bias_at},
                       {DNNL_ARG_DST, part.out, whole.out.buffer, part.out_at}};
      if (part.last) mine.others = OthersOf(whole.others, part.box, part.leading, part.adds);
      made.push_back(cut.make(part, Attr(r, a, mine.others, part.adds, part.last)));
      if (!Good(made.back())) return false;
      args.push_back(mine.All());
    }
  } catch (const dnnl::error&) {
    return false;
  }
  for (size_t i = 0; i < made.size(); i++) b.Emit<P>(made[i], std::move(args[i]));
  return true;
}

// Operands of the post-ops, the result, the primitive; or parts of what takes long, by the first way to cut
// it that oneDNN is good at.
template <class P>
void EmitWith(Builder& b, const typename P::primitive_desc& d, const Recipe& r, const Attributes& a,
              const std::vector<Parts<P>>& cuts, Operands args) {
  args.others = OtherArgs(b, r, a, d);
  const Layout out = d.dst_desc();
  args.out = {DNNL_ARG_DST, out, OutOf(b, r, a, out)};
  for (const Parts<P>& cut : cuts)
    if (cut.parts.size() > 1 && EmitParts(b, r, a, cut, args)) return;
  b.Emit<P>(d, args.All());
}

}  // namespace keel_cpu
