// main.cc: a program of the build: `keel-cuda-emit DTYPE` prints kernels/elementwise_DTYPE.cu.
#include <cstdio>

#include "emit.h"

int main(int n, char** arguments) {
  for (keel_dt dtype : keel_cuda::Dtypes())
    if (n == 2 && keel_cuda::NameOf(dtype) == arguments[1])
      return std::fputs(keel_cuda::SinglesFile(dtype).c_str(), stdout) < 0;
  std::fputs("usage: keel-cuda-emit DTYPE\n", stderr);
  return 2;
}
