// dense_avx2.cc: Eigen's functions for AVX2 and FMA, on x86-64; compiled with these flags (CMakeLists.txt).
#if defined(__x86_64__)
#define KEEL_EIGEN keel_eigen_avx2
#include "plugins/cpu/linear_algebra/dense.inc"

namespace keel_cpu {

const DenseTable& DenseAvx2() { return kTable; }

}  // namespace keel_cpu
#endif
