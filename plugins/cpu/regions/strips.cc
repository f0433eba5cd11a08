// strips.cc: a convolution and the depthwise one of its result as one step (conv/strips.h), as in inverted
// residuals and before the first of them.
#include "plugins/cpu/conv/strips.h"

#include "plugins/cpu/conv/strip_loops.h"
#include "plugins/cpu/regions/ops.h"

namespace keel_cpu {
namespace {

// A group that is a convolution with constant weights and, after it, nothing but bounds.
struct BoundConv {
  const BodyNode& node;
  Recipe recipe;
  Conv s;
  std::optional<OwnConv> own;

  BoundConv(const Builder& b, const Group& group)
      : node(b.body.nodes[group.anchor]), recipe(MakeRecipe(b.body, group, group.nodes.size())) {
    if (node.op != "conv" || b.Value(node.in[1]).data == nullptr) return;
    if (b.Value(node.in[0]).dtype != KEEL_F32) return;
    s = ReadConv(node.node, node.node.In(0), node.node.In(1), node.node.Out(0));
    own = ReadOwnConv(recipe, {});
  }
};

const float* WindowsOf(Builder& b, const BoundConv& conv) {
  const BodyValue& w = b.Value(conv.node.in[1]);
  const Layout layout = Plain({w.Count()});
  const void* packed = b.constants->Get(KeyOf(b, conv.node, conv.recipe), layout, layout, [&](Bytes* own) {
    Bytes scaled;
    const void* plain = Scaled(w, conv.recipe.scale, &scaled, {w.Count() / conv.s.o, conv.s.o});
    *own = AllocateConstant(static_cast<uint64_t>(w.Count()) * sizeof(float));
    PackStripWindows(conv.s, static_cast<const float*>(plain), reinterpret_cast<float*>(own->get()));
    return own->get();
  });
  return static_cast<const float*>(packed);
}

// Padding is multiplied as zeros.
bool HasFiniteWeights(const Builder& b, const BoundConv& conv) {
  const BodyValue& w = b.Value(conv.node.in[1]);
  return AllFinite(static_cast<const float*>(w.data), w.Count());
}

}  // namespace

bool EmitStripPair(Builder& b, const Group& first, const Group& second) {
  if (b.channels_last) return false;
  BoundConv wide(b, first), deep(b, second);
  if (!wide.own || !deep.own || wide.recipe.out != deep.node.in[0] || !FitsStrips(wide.s, deep.s))
    return false;
  const bool plain = ReadsPlain(wide.s);
  const uint32_t x = wide.node.in[0];
  if (plain && (b.Blocked(x) || !HasFiniteWeights(b, wide))) return false;
  auto launch = std::make_unique<OwnLaunch>();
  KeepStrips({wide.s, PanelsOf(b, wide.node, wide.recipe, wide.s, kStripLanes), std::move(wide.own->end)},
             {deep.s, WindowsOf(b, deep), std::move(deep.own->end)}, &launch->launch);
  b.EmitOwn(std::move(launch), {x}, {deep.recipe.out},
            {b.BufferIn(x, plain ? b.PlainOf(x) : ChannelsLast(wide.s.XDims())),
             b.ResultBuffer(deep.recipe.out, ChannelsLast(deep.s.YDims()))});
  b.Explain(wide.node, "own loops, by strips: one step with the depthwise convolution of its result");
  b.Explain(deep.node, "own loops, by strips: one step with the convolution before it");
  return true;
}

}  // namespace keel_cpu
