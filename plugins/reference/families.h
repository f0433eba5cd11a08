// families.h: the impls of each family, joined in plugin.cc.
#ifndef KEEL_REFERENCE_FAMILIES_H
#define KEEL_REFERENCE_FAMILIES_H
#include <span>

#include "abi/keel_plugin.h"

namespace reference {

std::span<const keel_impl> elementwise_impls();     // elementwise.cc: two operands and more
std::span<const keel_impl> unary_impls();           // unary.cc: one operand
std::span<const keel_impl> cast_impls();            // cast.cc
std::span<const keel_impl> shape_impls();           // shape.cc: creating and moving elements
std::span<const keel_impl> gather_impls();          // gather.cc: picking and writing by index
std::span<const keel_impl> reduce_impls();          // reduce.cc: along axes
std::span<const keel_impl> norm_impls();            // norm.cc: along the last dim
std::span<const keel_impl> linear_impls();          // linear.cc: matmul, conv and its gradients
std::span<const keel_impl> linear_algebra_impls();  // linear_algebra.cc: factors and solutions
std::span<const keel_impl> spectra_impls();         // spectra.cc: eigenvalues and singular values
std::span<const keel_impl> pool_impls();            // pool.cc: windows
std::span<const keel_impl> suppress_impls();        // suppress.cc: boxes that overlap
std::span<const keel_impl> tree_impls();            // trees.cc: decision trees
std::span<const keel_impl> random_impls();          // random.cc: Philox

}  // namespace reference
#endif
