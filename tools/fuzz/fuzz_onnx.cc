// fuzz_onnx.cc: any bytes as an ONNX file either fail with an error or load as a module. The importer is
// linked in, so that it is instrumented.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "abi/keel.h"
#include "abi/keel_plugin.h"

extern "C" const keel_plugin* keel_onnx_plugin(void);

namespace {

keel_context* Context() {
  static keel_context* context = [] {
    keel_context* made = nullptr;
    if (keel_context_new(nullptr, 0, &made, nullptr) || keel_plugin_add(made, keel_onnx_plugin(), nullptr))
      __builtin_trap();
    return made;
  }();
  return context;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int file = memfd_create("model.onnx", 0);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  std::string path = "/proc/self/fd/" + std::to_string(file);
  keel_module* module = nullptr;
  keel_error* error = nullptr;
  keel_rc rc = keel_module_import(Context(), path.c_str(), nullptr, 0, nullptr, nullptr, 0, &module, &error);
  if (rc != KEEL_OK && !*keel_error_text(error, KEEL_ERROR_MESSAGE)) __builtin_trap();
  keel_error_free(error);
  keel_module_free(module);
  close(file);
  return 0;
}
