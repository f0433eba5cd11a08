// ops.h: shared by the contractions of a region (conv.cc, matmul.cc): weights packed once, a bias, post-ops
// in graph order, and parts of long work.
//
// Describe collects the operands of the post-ops, Attr translates them to oneDNN attributes, EmitWith emits
// the primitive.
#pragma once

#include <optional>
#include <span>

#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/onednn/cut.h"
#include "plugins/cpu/regions/region.h"

namespace keel_cpu {

// The operands that a recipe's post-ops add.
struct Attributes {
  struct Other {
    uint32_t value;
    Dims view;  // dims under which the primitive sees it
    bool whole;
  };
  std::vector<Other> others;    // of the binary post-ops, in order
  const PostOp* sum = nullptr;  // the operand added in place
};

// The dims under which a primitive sees a value; none: an unsupported broadcast.
using View = std::function<std::optional<Dims>(const BodyValue&)>;
// Pads dims with leading ones to the rank of `out`; none if they do not broadcast to `out`.
std::optional<Dims> Broadcast(const Dims& dims, const Dims& out);

// False: an operand has no view, or the program must not use a post-op.
bool Describe(Builder& b, const Recipe& r, const Dims& out, bool in_place, const View& view, Attributes* a);

// The oneDNN attributes. `others`: operands of the binary post-ops; `adds`: accumulate into the result;
// `last`: only the last part has post-ops.
dnnl::primitive_attr Attr(const Recipe& r, const Attributes& a, const std::vector<Arg>& others,
                          bool adds = false, bool last = true);
// For the whole result; oneDNN chooses the layouts of operands as large as it.
dnnl::primitive_attr Attr(Builder& b, const Recipe& r, const Attributes& a);

// The bias buffer, or -1.
int BiasOf(Builder& b, const Recipe& r);
// Element i of plain weights belongs to output channel i / step % count.
struct Channels {
  int64_t step, count;
};
// The buffer of weights in a primitive's layout: packed in prepare if constant, else in each run.
int Weights(Builder& b, const BodyNode& node, const Recipe& r, const Layout& plain, const Layout& wanted,
            const Channels& channels);

// Constant weights times the recipe's scale, in memory held by `own` if there is a scale; KeyOf identifies
// them in the cache.
const void* Scaled(const BodyValue& w, const std::vector<double>& scale, Bytes* own,
                   const Channels& channels);
const void* KeyOf(const Builder& b, const BodyNode& node, const Recipe& r);

// Arguments of a contraction; those with buffer -1 are omitted.
struct Operands {
  Arg src, weights, bias, out = {};
  std::vector<Arg> others = {};  // of the binary post-ops, in order
  std::vector<Arg> All() const;
};
// Operands of the post-ops, for the whole result or for a part of it (a box of the leading dims).
std::vector<Arg> OtherArgs(Builder& b, const Recipe& r, const Attributes& a,
                           const dnnl::primitive_desc_base& d);
std::vector<Arg> OthersOf(std::span<const Arg> whole, const Box& box, size_t leading, bool adds = false);

// A convolution by the plugin's own code on images with channels last (own_conv.cc).
struct OwnConv {
  ConvEnd end;
  const PostOp* added = nullptr;  // the summand, if any
};
// None: the recipe has other steps than a summand, then bounds.
std::optional<OwnConv> ReadOwnConv(const Recipe& r, const Attributes& a);
// The launch's operands are x, and the summand if any.
void EmitOwnConv(Builder& b, const BodyNode& node, const Recipe& r, const Attributes& a, const Conv& s,
                 const PostOp* added, std::unique_ptr<OwnLaunch> launch);
// Constant weights in panels of so many channels, as conv/images.h packs them.
const float* PanelsOf(Builder& b, const BodyNode& node, const Recipe& r, const Conv& s, int64_t panel);
// By the kernels of the own products (conv/images.h); false: not applicable or not faster.
bool EmitImages(Builder& b, const BodyNode& node, const Recipe& r, const Attributes& a, const Conv& s);
// A 3x3 Winograd convolution (winograd.cc); false: not applicable or not faster.
bool EmitWinograd(Builder& b, const BodyNode& node, const Recipe& r, const Attributes& a, const Conv& s);

// A convolution that is a product of plain operands (pointwise.cc); false: not applicable.
bool EmitPointwise(Builder& b, const BodyNode& node, const Recipe& r, const Conv& s, const Geometry& g);
// One of each channel alone, on plain images (depthwise.cc); false: not applicable.
bool EmitDepthwise(Builder& b, const BodyNode& node, const Recipe& r, const Conv& s);
// One in groups of a few channels, on plain images (grouped_conv.cc); false: not applicable or not faster.
bool EmitGroupedConv(Builder& b, const BodyNode& node, const Recipe& r, const Conv& s);
// Whether both images have the plain layout, and no other is added to the result.
bool IsAtBorders(const Builder& b, const BodyNode& node, const Recipe& r);

// The buffer of the result: that of the operand added in place, if any.
int OutOf(Builder& b, const Recipe& r, const Attributes& a, const Layout& out);

// A split contraction: how to create each part's primitive.
template <class P>
struct Parts {
  struct Part {
    Layout src, weights, bias, out;
    uint64_t src_at = 0, weights_at = 0, bias_at = 0, out_at = 0;  // offsets in bytes
    bool adds = false, last = true;  // adds: accumulates into the result; only the last part has post-ops
    Box box, x;                      // of the leading dims of the result, and of x
    size_t leading = 0;              // number of leading dims
    Dims lo, hi;                     // padding of a convolution
  };
  std::vector<Part> parts;
  std::function<typename P::primitive_desc(const Part&, const dnnl::primitive_attr&)> make;
};

// Splits channels-last images by batch and rows. No parts: one primitive is short enough.
Parts<dnnl::convolution_forward> ConvParts(const Conv& s, const Geometry& g,
                                           const dnnl::convolution_forward::primitive_desc& d,
                                           const Layout& bias, int64_t finer = 1);

// False: some part has no optimised primitive, and nothing was emitted.
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
      if (!IsOptimized(made.back())) return false;
      args.push_back(mine.All());
    }
  } catch (const dnnl::error&) {
    return false;
  }
  for (size_t i = 0; i < made.size(); i++) b.Emit<P>(made[i], std::move(args[i]));
  return true;
}

// Emits the post-op operands, the result and the primitive, or, for long work, the parts of the first split
// that oneDNN has optimised code for.
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
