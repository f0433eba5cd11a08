// nvrtc.cc: libnvrtc.so.13 for tests: its code is the program's text, which the fake driver runs. With
// FAKENVRTC_REAL=PATH, that library has to compile the text too.
#include <dlfcn.h>
#include <nvrtc.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "nvrtc_image.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

struct _nvrtcProgram {
  std::string text, log;
};

namespace {

template <typename F>
F Real(F, const char* name) {
  static void* const library = dlopen(getenv("FAKENVRTC_REAL"), RTLD_NOW | RTLD_LOCAL);
  return library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
}
#define REAL(name) Real(&name, #name)

nvrtcResult CompileWithReal(nvrtcProgram fake, int n, const char* const* options) {
  if (!REAL(nvrtcCompileProgram)) return fake->log = "FAKENVRTC_REAL is no NVRTC", NVRTC_ERROR_INTERNAL_ERROR;
  nvrtcProgram program = nullptr;
  if (nvrtcResult result =
          REAL(nvrtcCreateProgram)(&program, fake->text.c_str(), "fused.cu", 0, nullptr, nullptr))
    return result;
  const nvrtcResult result = REAL(nvrtcCompileProgram)(program, n, options);
  size_t bytes = 0;
  REAL(nvrtcGetProgramLogSize)(program, &bytes);
  fake->log.resize(bytes);
  if (bytes) REAL(nvrtcGetProgramLog)(program, fake->log.data());
  REAL(nvrtcDestroyProgram)(&program);
  return result;
}

unsigned long long compiled = 0;

}  // namespace

// Programs compiled so far.
EXPORT unsigned long long fake_compiled() { return compiled; }

EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, NVRTC_SUCCESS; }
EXPORT const char* nvrtcGetErrorString(nvrtcResult) { return "NVRTC_ERROR"; }
EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram* out, const char* text, const char*, int,
                                      const char* const*, const char* const*) {
  return *out = new _nvrtcProgram{text, ""}, NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  return delete *program, *program = nullptr, NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n, const char* const* options) {
  compiled++;
  return getenv("FAKENVRTC_REAL") ? CompileWithReal(program, n, options) : NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  return *bytes = std::strlen(kFakeCode) + program->text.size() + 1, NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) {
  std::strcpy(code, kFakeCode);
  std::strcat(code, program->text.c_str());
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  return *bytes = program->log.size() + 1, NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  std::strcpy(log, program->log.c_str());
  return NVRTC_SUCCESS;
}
