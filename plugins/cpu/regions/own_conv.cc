// own_conv.cc: convolutions by the plugin's own code on images with channels last: the common part of
// winograd.cc and conv/images.h, and where the latter is taken.
#include "plugins/cpu/conv/images.h"
#include "plugins/cpu/conv/narrow.h"
#include "plugins/cpu/conv/narrow_loops.h"
#include "plugins/cpu/matmul/choice.h"
#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/regions/ops.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

// Measured with AVX2 (AMD EPYC 7003, one thread, relative to oneDNN's time): 1x1 windows 0.74 to 0.97 from
// 128 channels on, 1.1 to 1.4 with 16 to 96, whose sums end too soon; 3x3 windows, whose cells are copied,
// 0.74 to 0.95 from 256 channels on, 1.0 with 128. The last panel of the weights should not be half empty,
// and the own loops be the faster side of such a product here (choices.inc).
bool IsWorthwhile(const Conv& s) {
  constexpr int64_t kFewChannels = 128, kFewOfWindow = 256, kFewResults = 12, kFull = 90;
  const int64_t least = s.w.Cells(s.w.window) == 1 ? kFewChannels : kFewOfWindow;
  const int64_t results = s.n * s.w.Cells(s.w.out), depth = s.c * s.w.Cells(s.w.window);
  return SimdLevel() == 1 && s.groups == 1 && s.c >= least && MatmulLoops(KEEL_F32)->Filled(s.o) >= kFull &&
         results >= kFewResults && AreOwnLoopsFaster(ProductShape(results, s.o, depth));
}

}  // namespace

const float* PanelsOf(Builder& b, const BodyNode& node, const Recipe& r, const Conv& s, int64_t panel) {
  const uint64_t bytes = ImagePanelBytes(s, panel);
  const int64_t rows = static_cast<int64_t>(bytes / sizeof(float)) / panel;
  const Layout panels = Plain({rows, panel});
  const int64_t per_channel = s.c * s.w.Cells(s.w.window);
  const void* packed = b.constants->Get(KeyOf(b, node, r), panels, panels, [&](Bytes* own) {
    Bytes scaled;
    const void* w = Scaled(b.Value(node.in[1]), r.scale, &scaled, {per_channel, s.o});
    *own = AllocateConstant(bytes);
    PackImagePanels(s, panel, static_cast<const float*>(w), reinterpret_cast<float*>(own->get()));
    return own->get();
  });
  return static_cast<const float*>(packed);
}

std::optional<OwnConv> ReadOwnConv(const Recipe& r, const Attributes& a) {
  OwnConv own = {{r.shift}};
  for (const PostOp& p : r.post) {
    const bool first = &p == &r.post.front(), last = &p == &r.post.back();
    if (p.kind == PostOp::kBinary) {
      const bool whole = &p == a.sum || (!a.others.empty() && a.others[0].whole);
      if (!first || !whole || p.algorithm != dnnl::algorithm::binary_add) return {};
      own.added = &p;
    } else if (last && p.algorithm == dnnl::algorithm::eltwise_relu && p.alpha == 0) {
      own.end.low = 0;
    } else if (last && p.algorithm == dnnl::algorithm::eltwise_clip) {
      own.end.low = p.alpha;
      own.end.high = p.beta;
    } else {
      return {};
    }
  }
  own.end.adds = own.added != nullptr;
  return own;
}

void EmitOwnConv(Builder& b, const BodyNode& node, const Recipe& r, const Attributes& a, const Conv& s,
                 const PostOp* added, std::unique_ptr<OwnLaunch> launch) {
  const Layout y = ChannelsLast(s.YDims());
  std::vector<uint32_t> in = {node.in[0]};
  std::vector<int> buffers = {b.BufferIn(node.in[0], ChannelsLast(s.XDims()))};
  if (added != nullptr) {
    in.push_back(added->other);
    if (a.sum == nullptr) buffers.push_back(b.BufferIn(added->other, y));
  }
  const int out = OutOf(b, r, a, y);
  if (a.sum != nullptr) buffers.push_back(out);
  buffers.push_back(out);
  b.EmitOwn(std::move(launch), std::move(in), {r.out}, std::move(buffers));
}

bool EmitImages(Builder& b, const BodyNode& node, const Recipe& r, const Attributes& a, const Conv& s) {
  std::optional<OwnConv> own = ReadOwnConv(r, a);
  const bool narrow = IsNarrow(s);
  if (!own || b.Value(node.in[1]).data == nullptr || !(narrow || IsWorthwhile(s))) return false;
  auto launch = std::make_unique<OwnLaunch>();
  const float* panels = PanelsOf(b, node, r, s, narrow ? kNarrowPanel : MatmulLoops(KEEL_F32)->panel);
  (narrow ? KeepNarrow : KeepImages)(s, panels, std::move(own->end), &launch->launch);
  EmitOwnConv(b, node, r, a, s, own->added, std::move(launch));
  return true;
}

}  // namespace keel_cpu
