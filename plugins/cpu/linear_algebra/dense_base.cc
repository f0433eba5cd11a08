// dense_base.cc: Eigen's functions for all processors.
#define KEEL_EIGEN keel_eigen_base
#include "plugins/cpu/linear_algebra/dense.inc"

namespace keel_cpu {

const DenseTable& DenseBase() { return kTable; }

}  // namespace keel_cpu
