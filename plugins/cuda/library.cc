// library.cc: see library.h.
#include "library.h"

#include <dlfcn.h>

namespace keel_cuda {

std::string OpenLibrary(const LibraryName& name, std::span<const LibraryFunction> functions) {
  if (name.set == "0") return std::string(name.variable) + " is 0";
  const std::string path = name.set.empty() ? name.usual : name.set;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::string("no ") + name.what + ": " + dlerror() + "; it comes with the CUDA toolkit";
  for (const LibraryFunction& function : functions) {
    *function.to = dlsym(library, function.name);
    if (!*function.to) return path + " has no " + function.name;
  }
  return "";
}

}  // namespace keel_cuda
