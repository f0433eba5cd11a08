// norm.cc: layer_norm and rms_norm. The bodies in the catalogue square elements in their own dtype, which
// overflows in f16 from 256 on; here rows are summed as reductions are, and each element is rounded once.
#include "call.h"
#include "families.h"

namespace reference {
namespace {

struct NormState {
  double eps;
  void read(Attributes& a) { eps = a.f64("eps"); }
};

template <class T>
Math<T> mean_of(const T* x, int64_t n, Sum<T> centre, int power) {
  Sum<T> sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Sum<T> d = wide(x[i]) - centre;
    sum += power == 2 ? d * d : d;
  }
  return static_cast<Math<T>>(sum / static_cast<Sum<T>>(n));
}

// Rows along the last dim: (x - mean) / sqrt(variance + eps) * g + b, of rms_norm with the mean 0 and no b.
template <class T, bool CENTRED>
void normalise(const keel_call& c, double eps) {
  using M = Math<T>;
  const Dims dims = dims_of(*c.out[0]);
  const int64_t n = dims[dims.n - 1];
  if (product(dims) == 0) return;
  const T *x = in<T>(c, 0), *g = in<T>(c, 1);
  T* y = out<T>(c);
  for (const T* const end = x + product(dims); x != end; x += n, y += n) {
    const M mean = CENTRED ? mean_of(x, n, Sum<T>(0), 1) : M(0);
    const M scale = 1 / std::sqrt(mean_of(x, n, static_cast<Sum<T>>(mean), 2) + static_cast<M>(eps));
    for (int64_t i = 0; i < n; ++i) {
      M v = (static_cast<M>(value(x[i])) - mean) * scale * static_cast<M>(value(g[i]));
      if constexpr (CENTRED) v += static_cast<M>(value(in<T>(c, 2)[i]));
      y[i] = make<T>(v);
    }
  }
}

template <bool CENTRED>
keel_rc norm(const NormState& s, const keel_call& c) {
  return typed<Floats>(c, in_type(c), [&](auto tag) {
    normalise<typename decltype(tag)::type, CENTRED>(c, s.eps);
    return KEEL_OK;
  });
}

constexpr keel_impl kImpls[] = {
    row<NormState, norm<true>>(REFERENCE_OP("layer_norm"), KEEL_IMPL_ANY_DIMS),
    row<NormState, norm<false>>(REFERENCE_OP("rms_norm"), KEEL_IMPL_ANY_DIMS),
};

}  // namespace

std::span<const keel_impl> norm_impls() { return kImpls; }

}  // namespace reference
