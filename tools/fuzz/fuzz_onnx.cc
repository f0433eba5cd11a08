// fuzz_onnx.cc: any bytes as an ONNX file either fail with an error or load as a module. The importer is
// linked in, so that it is instrumented.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

// Lengths of the sequences and optionals that the seeds in corpus/ have.
constexpr keel_kv kLengths[] = {{"length.s", "3"}, {"length.o", "1"}, {"shape.s", "2"}};

// Whether the import needs lengths.
bool Import(const std::string& path, std::span<const keel_kv> options) {
  keel_module* module = nullptr;
  keel_error* error = nullptr;
  keel_rc rc =
      keel_module_import(Context(), path.c_str(), options.data(), static_cast<uint32_t>(options.size()),
                         nullptr, nullptr, 0, &module, &error);
  const std::string_view message = rc == KEEL_OK ? "" : keel_error_text(error, KEEL_ERROR_MESSAGE);
  if (rc != KEEL_OK && message.empty()) __builtin_trap();
  const bool wants = message.find("the length of") != message.npos;
  keel_error_free(error);
  keel_module_free(module);
  return wants;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int file = memfd_create("model.onnx", 0);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  std::string path = "/proc/self/fd/" + std::to_string(file);
  if (Import(path, {})) Import(path, kLengths);
  close(file);
  return 0;
}
