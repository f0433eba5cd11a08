// depthwise.cc: a convolution of each channel alone, between plain images at the borders of a region, by the
// plugin's loops. oneDNN's would change the layout of both images, which takes longer than the convolution.
#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/conv/depthwise_loops.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/regions/ops.h"

namespace keel_cpu {
namespace {

constexpr int64_t kShort = 16;          // shorter rows take twice oneDNN's time, unless one vector holds them
constexpr int64_t kMostWork = 1 << 17;  // numbers, so that they stay in the second-level cache

struct Depthwise {
  DepthwiseShape shape;
  int64_t channels;
  std::vector<float> windows, shifts;  // shifts: one per channel, or none
  DepthwiseLoop loop;
};

keel_rc RunDepthwise(const keel_call* call) {
  const Depthwise& d = State<Depthwise>(call);
  const DepthwiseShape& s = d.shape;
  const int64_t planes = call->count / (s.out_height * s.out_width), cells = s.window[0] * s.window[1];
  const int64_t cost = s.out_height * s.out_width * cells / 4 + s.height * s.width;
  ParallelFor(call, planes, cost, [&](int64_t begin, int64_t end) {
    const Bytes work = Allocate(static_cast<size_t>(s.Work()) * sizeof(float));
    std::fill_n(reinterpret_cast<float*>(work.get()), s.Work(), 0.0f);
    for (int64_t p = begin; p < end; p++) {
      const auto c = static_cast<size_t>(p % d.channels);
      d.loop(s, In<float>(call, 0) + p * s.height * s.width,
             d.windows.data() + c * static_cast<size_t>(cells), d.shifts.empty() ? 0.0f : d.shifts[c],
             reinterpret_cast<float*>(work.get()), Out<float>(call, 0) + p * s.out_height * s.out_width);
    }
  });
  return Done(call);
}

DepthwiseShape ShapeOf(const Window& w) {
  DepthwiseShape s = {w.image[0], w.image[1], w.out[0], w.out[1], {}, {}, {}, {}, 0, 0};
  for (int d = 0; d < 2; d++) {
    s.window[d] = w.window[d], s.stride[d] = w.stride[d], s.dil[d] = w.dil[d], s.lo[d] = w.lo[d];
    const int64_t seen = (w.out[d] - 1) * w.stride[d] + w.Reach(d);
    (d == 0 ? s.padded_height : s.pitch) = std::max(seen, w.lo[d] + w.image[d]);
  }
  s.pitch += s.pitch % 2;
  return s;
}

bool IsNarrow(const DepthwiseShape& s) {
  bool simple = s.lo[1] == 1 && s.out_width == s.width && s.width <= DepthwiseOfChannel().most_columns;
  for (int d = 0; d < 2; d++) simple &= s.window[d] == 3 && s.stride[d] == 1 && s.dil[d] == 1;
  return simple;
}
bool Serves(const Conv& s, const BodyValue& w) {
  return s.w.rank == 2 && s.groups == s.c && s.o == s.c && s.w.stride[1] <= 2 &&
         s.w.window[0] == s.w.window[1] && (s.w.window[0] == 3 || s.w.window[0] == 5) &&
         (s.w.out[1] >= kShort || IsNarrow(ShapeOf(s.w))) && ShapeOf(s.w).Work() <= kMostWork &&
         w.data != nullptr && AllFinite(static_cast<const float*>(w.data), w.Count());
}

}  // namespace

bool EmitDepthwise(Builder& b, const BodyNode& node, const Recipe& r, const Conv& s) {
  const BodyValue& w = b.Value(node.in[1]);
  if (b.channels_last || !r.post.empty() || !IsAtBorders(b, node, r) || !Serves(s, w)) return false;
  const DepthwiseShape shape = ShapeOf(s.w);
  const DepthwiseLoops& loops = DepthwiseOfChannel();
  Depthwise d = {shape, s.c, {}, r.shift, IsNarrow(shape) ? loops.narrow : loops.any};
  Bytes own;
  const auto* windows = static_cast<const float*>(Scaled(w, r.scale, &own, {s.w.Cells(s.w.window), s.o}));
  d.windows.assign(windows, windows + w.Count());
  auto made = std::make_unique<OwnLaunch>();
  Keep(&made->launch, std::move(d), Guard<RunDepthwise>);
  b.EmitOwn(std::move(made), {node.in[0]}, {r.out},
            {b.BufferIn(node.in[0], b.PlainOf(node.in[0])), b.ResultBuffer(r.out, b.PlainOf(r.out))});
  return true;
}

}  // namespace keel_cpu
