// matrix.h: matrices of wide numbers, for linear_algebra.cc and spectra.cc: loaded from an operand, stored
// with one rounding; and the loop over the matrices of a batch.
#ifndef KEEL_REFERENCE_MATRIX_H
#define KEEL_REFERENCE_MATRIX_H
#include <algorithm>
#include <vector>

#include "call.h"

namespace reference {

template <class W>
struct Matrix {
  Matrix(int64_t m, int64_t n) : rows(m), columns(n), elements(static_cast<size_t>(m * n)) {}
  W& operator()(int64_t i, int64_t j) { return elements[static_cast<size_t>(i * columns + j)]; }
  const W& operator()(int64_t i, int64_t j) const { return elements[static_cast<size_t>(i * columns + j)]; }

  int64_t rows, columns;
  std::vector<W> elements;
};

template <class W>
Matrix<W> unit_matrix(int64_t n) {
  Matrix<W> m(n, n);
  for (int64_t i = 0; i < n; ++i) m(i, i) = 1;
  return m;
}
template <class W>
Matrix<W> transposed(const Matrix<W>& a) {
  Matrix<W> t(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) t(j, i) = a(i, j);
  return t;
}
template <class W>
bool finite(const Matrix<W>& a) {
  return std::all_of(a.elements.begin(), a.elements.end(), [](W x) { return std::isfinite(x); });
}
template <class W>
void swap_rows(Matrix<W>& a, int64_t i, int64_t j) {
  for (int64_t c = 0; c < a.columns; ++c) std::swap(a(i, c), a(j, c));
}

inline int64_t matrix_size(const keel_tensor& t) { return t.shape[t.ndim - 2] * t.shape[t.ndim - 1]; }

// Matrix b of a batch.
template <class T>
Matrix<Math<T>> load(const keel_call& c, int operand, int64_t b) {
  const keel_tensor& t = *c.in[operand];
  Matrix<Math<T>> m(t.shape[t.ndim - 2], t.shape[t.ndim - 1]);
  const T* x = in<T>(c, operand) + b * matrix_size(t);
  for (auto& e : m.elements) e = static_cast<Math<T>>(value(*x++));
  return m;
}
// The part of it that an op reads: elements outside of the triangle become zeros.
template <class W>
void keep_triangle(Matrix<W>& a, bool lower) {
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j)
      if (lower ? j > i : j < i) a(i, j) = 0;
}
template <class T>
void store(const keel_call& c, int result, int64_t b, const std::vector<Math<T>>& elements) {
  T* y = out<T>(c, result) + b * static_cast<int64_t>(elements.size());
  for (const auto e : elements) *y++ = make<T>(e);
}

inline int64_t matrices(const keel_call& c) {
  const Dims dims = dims_of(*c.in[0]);
  return product(part(dims, 0, dims.n - 2));
}
// Calls f<T>(b), which returns keel_rc, for each matrix of the batch; T is the dtype.
template <class F>
keel_rc each_matrix(const keel_call& c, F f) {
  return typed<Floats>(c, in_type(c), [&](auto tag) -> keel_rc {
    for (int64_t b = 0; b < matrices(c); ++b) {
      if (cancelled(c)) return KEEL_CANCELLED;
      if (const keel_rc rc = f.template operator()<typename decltype(tag)::type>(b); rc != KEEL_OK) return rc;
    }
    return KEEL_OK;
  });
}
template <class T>
keel_rc store_nan(const keel_call& c, int64_t b) {
  for (uint32_t r = 0; r < c.n_out; ++r) {
    const int64_t size = keel_count(c.out[r]) / matrices(c);
    std::fill_n(out<T>(c, static_cast<int>(r)) + b * size, size,
                make<T>(std::numeric_limits<double>::quiet_NaN()));
  }
  return KEEL_OK;
}

}  // namespace reference
#endif
