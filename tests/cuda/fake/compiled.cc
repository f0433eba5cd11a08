// compiled.cc: kernels that the plugin compiles at run time: the code of the fake compiler (nvrtc.cc) is the
// text, which the host's compiler translates here. One library for each text, kept until the process ends.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "fake.h"
#include "nvrtc_image.h"

namespace fake {
namespace {

void* Compile(const std::string& text) {
  char folder[] = "/tmp/fakecudaXXXXXX";
  if (!mkdtemp(folder)) return nullptr;
  const std::string source = std::string(folder) + "/kernel.cc", library = std::string(folder) + "/kernel.so";
  std::ofstream(source) << "#include \"simt.h\"\n" << text;
  const std::string command =
      std::string(FAKECUDA_CXX " -std=c++20 -O0 -w -fPIC -shared -ffp-contract=off -I" FAKECUDA_FOLDER " ") +
      source + " -o " + library;
  const bool made = std::system(command.c_str()) == 0;
  void* loaded = made ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(source.c_str()), unlink(library.c_str()), rmdir(folder);
  return loaded;
}

}  // namespace

void* CompiledLibrary(const char* image) {
  static std::map<std::string, void*>& all = *new std::map<std::string, void*>;
  if (std::strncmp(image, kFakeCode, std::strlen(kFakeCode)) != 0) return nullptr;
  const std::string text = image + std::strlen(kFakeCode);
  const auto [at, is_new] = all.emplace(text, nullptr);
  if (is_new) at->second = Compile(text);
  return at->second;
}

}  // namespace fake
