// old.cc: a driver that lacks functions.
#include <cuda.h>

#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
