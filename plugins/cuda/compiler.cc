// compiler.cc: see compiler.h.
#include "compiler.h"

#include <nvrtc.h>

#include <optional>

#include "library.h"
#include "modules.h"
#include "sdk/plugin/disk_cache.h"

namespace keel_cuda {
namespace {

constexpr uint64_t kMostCacheBytes = uint64_t{256} << 20;

struct Compiler {
  std::string why;
  int major = 0, minor = 0;
#define NVRTC_FUNCTION(name) decltype(&::name) name##_ = nullptr;
#define NVRTC_FUNCTIONS                  \
  NVRTC_FUNCTION(nvrtcCompileProgram)    \
  NVRTC_FUNCTION(nvrtcCreateProgram)     \
  NVRTC_FUNCTION(nvrtcDestroyProgram)    \
  NVRTC_FUNCTION(nvrtcGetCUBIN)          \
  NVRTC_FUNCTION(nvrtcGetCUBINSize)      \
  NVRTC_FUNCTION(nvrtcGetErrorString)    \
  NVRTC_FUNCTION(nvrtcGetProgramLog)     \
  NVRTC_FUNCTION(nvrtcGetProgramLogSize) \
  NVRTC_FUNCTION(nvrtcVersion)
  NVRTC_FUNCTIONS
#undef NVRTC_FUNCTION
};

std::string Open(Compiler* c) {
#define NVRTC_FUNCTION(name) {#name, reinterpret_cast<void**>(&c->name##_)},
  const LibraryFunction functions[] = {NVRTC_FUNCTIONS};
#undef NVRTC_FUNCTION
  std::string why =
      OpenLibrary({"run-time compiler", "libnvrtc.so.13", "KEEL_CUDA_NVRTC", settings().nvrtc}, functions);
  if (why.empty()) c->nvrtcVersion_(&c->major, &c->minor);
  return why;
}

const Compiler& compiler() {
  static const Compiler& opened = *[] {
    auto* c = new Compiler;
    c->why = Open(c);
    return c;
  }();
  return opened;
}

std::string Architecture(keel_dev d) {
  return "sm_" + std::to_string(d->capability.major) + std::to_string(d->capability.minor);
}

// The compiler's output, without the name of the text.
std::string LogOf(nvrtcProgram program) {
  size_t bytes = 0;
  compiler().nvrtcGetProgramLogSize_(program, &bytes);
  std::string log(bytes, '\0');
  if (bytes) compiler().nvrtcGetProgramLog_(program, log.data());
  return log.c_str();
}

keel_rc CompileProgram(keel_dev d, nvrtcProgram program, std::string* code) {
  const std::string architecture = "--gpu-architecture=" + Architecture(d);
  const char* options[] = {architecture.c_str(), "--std=c++17", "--fmad=false"};
  if (nvrtcResult result = compiler().nvrtcCompileProgram_(program, 3, options))
    return d->host->fail(KEEL_INTERNAL,
                         ("nvrtcCompileProgram gave " + std::string(compiler().nvrtcGetErrorString_(result)) +
                          " for " + Architecture(d) + ": " + LogOf(program))
                             .c_str());
  size_t bytes = 0;
  if (compiler().nvrtcGetCUBINSize_(program, &bytes))
    return d->host->fail(KEEL_INTERNAL, "nvrtcGetCUBINSize failed");
  code->resize(bytes);
  if (compiler().nvrtcGetCUBIN_(program, code->data()))
    return d->host->fail(KEEL_INTERNAL, "nvrtcGetCUBIN failed");
  return KEEL_OK;
}

keel_rc Compile(keel_dev d, const std::string& source, std::string* code) {
  nvrtcProgram program = nullptr;
  if (nvrtcResult result =
          compiler().nvrtcCreateProgram_(&program, source.c_str(), "fused.cu", 0, nullptr, nullptr))
    return d->host->fail(
        KEEL_INTERNAL,
        (std::string("nvrtcCreateProgram gave ") + compiler().nvrtcGetErrorString_(result)).c_str());
  const keel_rc rc = CompileProgram(d, program, code);
  compiler().nvrtcDestroyProgram_(&program);
  return rc;
}

// From the disk, or compiled and put there.
keel_rc CodeFor(keel_dev d, const std::string& source, std::string* code) {
  const keel::plugin::DiskCache files(settings().cache, kMostCacheBytes);
  const std::string version = std::to_string(compiler().major) + "." + std::to_string(compiler().minor);
  const std::string key = "cuda " + version + " " + Architecture(d) + "\n" + source;
  if (std::optional<std::string> kept = files.Find(key)) return *code = std::move(*kept), KEEL_OK;
  if (keel_rc rc = Compile(d, source, code)) return rc;
  files.Keep(key, *code);
  return KEEL_OK;
}

}  // namespace

const std::string& WhyNoCompiler() { return compiler().why; }

keel_rc CompiledKernel(keel_dev d, const std::string& name, const std::string& text, CUfunction* out) {
  if (!WhyNoCompiler().empty()) return d->host->fail(KEEL_UNIMPLEMENTED, WhyNoCompiler().c_str());
  if (keel_rc rc = d->Enter()) return rc;
  std::lock_guard lock(d->loading);
  CUlibrary& library = d->compiled[text];
  if (!library) {
    std::string code;
    if (keel_rc rc = CodeFor(d, std::string(Prelude()) + text, &code)) return rc;
    CUDA_TRY(d, cuLibraryLoadData, &library, code.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
  return FindKernel(d, library, name, out);
}

}  // namespace keel_cuda
