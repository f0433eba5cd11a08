// modules.h: the device code of kernels/, which the build embeds as fatbins.
#ifndef KEEL_PLUGINS_CUDA_MODULES_H
#define KEEL_PLUGINS_CUDA_MODULES_H
#include <string_view>

namespace keel_cuda {

// The fatbin of kernels/FILE.cu; NULL: there is none.
const void* Image(std::string_view file);

// The text of the headers of kernels/ that generated kernels need, for run-time compilation.
std::string_view Prelude();

}  // namespace keel_cuda
#endif
