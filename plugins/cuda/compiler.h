// compiler.h: kernels that are compiled at run time, by libnvrtc.so.13. It is opened at first use; code is
// kept on disk, so that a later process needs no compiler for the same text.
#ifndef KEEL_PLUGINS_CUDA_COMPILER_H
#define KEEL_PLUGINS_CUDA_COMPILER_H
#include "device.h"

namespace keel_cuda {

// Why there is no compiler; "": there is one.
const std::string& WhyNoCompiler();
// The kernel of a text (emit.h) of that name, compiled unless the device, or the disk, has its code.
keel_rc CompiledKernel(keel_dev d, const std::string& name, const std::string& text, CUfunction* out);

}  // namespace keel_cuda
#endif
