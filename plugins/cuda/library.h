// library.h: libraries of CUDA that are opened at their first use: NVRTC, cuBLASLt.
#ifndef KEEL_PLUGINS_CUDA_LIBRARY_H
#define KEEL_PLUGINS_CUDA_LIBRARY_H
#include <span>
#include <string>

namespace keel_cuda {

struct LibraryName {
  const char* what;      // for messages: "cuBLASLt"
  const char* usual;     // the file's name
  const char* variable;  // of the environment: another path, or 0: none
  std::string set;       // its value
};
struct LibraryFunction {
  const char* name;
  void** to;
};
// Opens the library and finds its functions; "" or why there is none.
std::string OpenLibrary(const LibraryName& name, std::span<const LibraryFunction> functions);

}  // namespace keel_cuda
#endif
