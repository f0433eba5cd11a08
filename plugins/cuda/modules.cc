// modules.cc: see modules.h. The assembler includes the files.
#include "modules.h"

#include <string>

#include "device.h"

#define MODULE(name, file)                                                                             \
  asm(".pushsection .rodata\n.balign 64\nkeel_cuda_" #name ":\n.incbin \"" file "\"\nkeel_cuda_" #name \
      "_end:\n.byte 0\n.popsection");                                                                  \
  extern "C" __attribute__((visibility("hidden"))) const char keel_cuda_##name[], keel_cuda_##name##_end[];
#include "modules.inc"
#undef MODULE

namespace keel_cuda {

const void* Image(std::string_view file) {
#define MODULE(name, path) \
  if (file == #name) return keel_cuda_##name;
#include "modules.inc"
#undef MODULE
  return nullptr;
}

std::string_view Prelude() {
  return {keel_cuda_prelude, static_cast<size_t>(keel_cuda_prelude_end - keel_cuda_prelude)};
}

keel_rc FindKernel(keel_dev d, CUlibrary library, const std::string& name, CUfunction* out) {
  CUkernel kernel = nullptr;
  CUDA_TRY(d, cuLibraryGetKernel, &kernel, library, ("keel_" + name).c_str());
  // cuLaunchKernel takes the kernel, too, but would look for its function in each call.
  CUDA_TRY(d, cuKernelGetFunction, out, kernel);
  return KEEL_OK;
}

}  // namespace keel_cuda

keel_rc keel_dev_s::Kernel(const std::string& file, const std::string& name, CUfunction* out) {
  const void* image = keel_cuda::Image(file);
  if (!image) return host->fail(KEEL_INTERNAL, ("the plugin has no kernels " + file).c_str());
  if (keel_rc rc = Enter()) return rc;
  std::lock_guard lock(loading);
  CUlibrary& library = libraries[image];
  if (!library) CUDA_TRY(this, cuLibraryLoadData, &library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  return keel_cuda::FindKernel(this, library, name, out);
}
