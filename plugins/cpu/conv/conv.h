// conv.h: the geometry of a convolution node and of its gradients, shared by the oneDNN impls and the loops.
//
// All three ops are described by one forward convolution y = conv(x, w): conv computes y from x and w,
// conv_grad_x x from y and w, conv_grad_w w from y and x. Here x, w and y name these roles for each op.
#pragma once

#include <limits>
#include <vector>

#include "plugins/cpu/conv/window.h"

namespace keel_cpu {

struct Conv {
  Window w;  // image: of x; out: of y
  int64_t n = 0, groups = 1;
  int64_t c = 0, o = 0;  // channels of x and y
  int64_t PerGroupIn() const { return c / groups; }
  int64_t PerGroupOut() const { return o / groups; }
  int64_t Work() const { return n * o * w.Cells(w.out) * PerGroupIn() * w.Cells(w.window); }
  Dims XDims() const { return With({n, c}, w.image); }
  Dims YDims() const { return With({n, o}, w.out); }
  Dims WDims() const { return With({o, PerGroupIn()}, w.window); }
  Dims With(Dims dims, const int64_t* image) const {
    dims.insert(dims.end(), image, image + w.rank);
    return dims;
  }
};

// What follows the sums of an own convolution: a bias of each output channel, a summand, bounds.
struct ConvEnd {
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> bias = {};  // or none
  bool adds = false;
  float low = -kInfinity, high = kInfinity;
  bool IsBound() const { return low > -kInfinity || high < kInfinity; }
};

Conv ReadConv(const Node& node, const keel_tensor& x, const keel_tensor& w, const keel_tensor& y);

// The geometry in oneDNN's terms: dilation 0 is none, and trailing padding is explicit.
struct Geometry {
  Dims x, w, y, stride, dil, lo, hi;
  bool fits = true;  // oneDNN can express it
};
Geometry Describe(const Conv& s);

// Padding adds nothing, whatever the weight. Some oneDNN code multiplies zeros there, which differs if the
// weight is infinite or NaN; then the loops compute it. Returns whether there is padding.
bool IsPadded(const Geometry& g);
bool AllFinite(const float* x, int64_t n);
bool HasNan(const float* x, int64_t n);
keel_rc LoopConvGradW(const keel_call* call, const Conv& s);  // f32; operands dy and x

keel_rc PrepareConvLoop(const Node& node, keel_launch* launch);
keel_rc PrepareConvGradXLoop(const Node& node, keel_launch* launch);
keel_rc PrepareConvGradWLoop(const Node& node, keel_launch* launch);

}  // namespace keel_cpu
