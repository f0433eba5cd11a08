// dnn.h: cuDNN, opened at the first convolution that is worth it. Without the library, or its header in the
// build, convolutions run by own kernels.
#ifndef KEEL_PLUGINS_CUDA_DNN_H
#define KEEL_PLUGINS_CUDA_DNN_H
#include <vector>

#include "library_call.h"

namespace keel_cuda {

// The result of conv, conv_grad_x or conv_grad_w.
enum class ConvolutionKind { kForward, kForImage, kForWeights };
struct ConvolutionShape {
  ConvolutionKind kind;
  keel_dt dtype;  // f16, bf16, f32 or f64: of all operands
  std::vector<int64_t> x, w,
      y;  // row-major [images, channels, dims], w: [outputs, channels of a group, dims]
  std::vector<int64_t> stride, dilation, lo, hi;  // of each of the 2 or 3 dims
  auto operator<=>(const ConvolutionShape&) const = default;
};
// The scratch of a launch begins with this, for kernels/conv_mend.cu; the workspace of cuDNN follows.
constexpr uint64_t kMendBytes = kThreads * sizeof(int);

#ifdef KEEL_CUDNN
constexpr bool kHasDnn = true;
// Its operands are left and right as in kernels/conv.cuh (w and x, w and dy, dy and x), result, scratch.
// NULL: cuDNN is missing, or has no engine for this shape that is exact and deterministic. Convolutions of
// the same shape share one. A sum with cells outside of the image contains 0 times the left side.
keel_rc FindConvolution(keel_dev d, const ConvolutionShape& shape, std::shared_ptr<LibraryCall>* out);
#else
constexpr bool kHasDnn = false;
inline keel_rc FindConvolution(keel_dev, const ConvolutionShape&, std::shared_ptr<LibraryCall>* out) {
  return out->reset(), KEEL_OK;
}
#endif

}  // namespace keel_cuda
#endif
