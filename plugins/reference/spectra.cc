// spectra.cc: eigh and svd, by rotations of two columns (Jacobi's methods), which are slow, and precise also
// for small values.
#include <numeric>

#include "families.h"
#include "matrix.h"

namespace reference {
namespace {

constexpr int kMostSweeps = 100;  // ten are usual; one more makes each rotation smaller

// Columns (or rows) i and j become c i - s j and s i + c j.
template <class W>
void rotate_columns(Matrix<W>& a, int64_t i, int64_t j, W c, W s) {
  for (int64_t r = 0; r < a.rows; ++r) {
    const W x = a(r, i), y = a(r, j);
    a(r, i) = c * x - s * y, a(r, j) = s * x + c * y;
  }
}
template <class W>
void rotate_rows(Matrix<W>& a, int64_t i, int64_t j, W c, W s) {
  for (int64_t k = 0; k < a.columns; ++k) {
    const W x = a(i, k), y = a(j, k);
    a(i, k) = c * x - s * y, a(j, k) = s * x + c * y;
  }
}
// The tangent of the angle, up to 45 degrees, whose rotation makes the symmetric [[p, q], [q, r]] diagonal.
template <class W>
W tangent(W p, W q, W r) {
  const W t = (r - p) / (2 * q);
  return (t < 0 ? -1 : 1) / (std::fabs(t) + std::hypot(W(1), t));
}

// Divides by the largest magnitude as a power of two, which is returned, so that squares do not overflow.
template <class W>
W take_scale(Matrix<W>& a) {
  W most = 0;
  for (const W x : a.elements) most = std::max(most, std::fabs(x));
  const W scale = most == 0 ? W(1) : std::ldexp(W(1), std::ilogb(most));
  for (W& x : a.elements) x /= scale;
  return scale;
}

// The order of values, the least first or (descending) last.
template <class W>
std::vector<int64_t> order_of(const std::vector<W>& values, bool descending) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](int64_t i) { return values[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return descending ? at(i) > at(j) : at(i) < at(j); });
  return order;
}

template <class W>
Matrix<W> picked(const Matrix<W>& a, const std::vector<int64_t>& columns) {
  Matrix<W> p(a.rows, static_cast<int64_t>(columns.size()));
  for (int64_t i = 0; i < p.rows; ++i)
    for (int64_t j = 0; j < p.columns; ++j) p(i, j) = a(i, columns[static_cast<size_t>(j)]);
  return p;
}
template <class W>
void scale_column(Matrix<W>& a, int64_t j, W by) {
  for (int64_t i = 0; i < a.rows; ++i) a(i, j) *= by;
}
// -1 if the first of the elements of column j above 0.9 of the largest magnitude is negative, else 1.
template <class W>
W sign_of(const Matrix<W>& v, int64_t j) {
  W most = 0;
  for (int64_t i = 0; i < v.rows; ++i) most = std::max(most, std::fabs(v(i, j)));
  for (int64_t i = 0; i < v.rows; ++i)
    if (std::fabs(v(i, j)) > W(0.9L) * most) return v(i, j) < 0 ? -1 : 1;
  return 1;
}

// ---- eigh

// v' a v becomes diagonal.
template <class W>
void diagonalise(Matrix<W>& a, Matrix<W>& v) {
  bool rotated = true;
  for (int sweep = 0; rotated && sweep < kMostSweeps; ++sweep) {
    rotated = false;
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = i + 1; j < a.rows; ++j) {
        const W q = a(i, j);  // elements are below 2
        if (std::fabs(q) <= std::numeric_limits<W>::epsilon()) continue;
        const W t = tangent(a(i, i), q, a(j, j)), c = 1 / std::hypot(W(1), t), s = t * c;
        rotate_columns(a, i, j, c, s), rotate_rows(a, i, j, c, s), rotate_columns(v, i, j, c, s);
        a(i, j) = a(j, i) = 0;
        rotated = true;
      }
  }
}

template <class T>
keel_rc eigh_of(const keel_call& c, int64_t b) {
  using W = Math<T>;
  auto a = load<T>(c, 0, b);
  keep_triangle(a, true);
  if (!finite(a)) return store_nan<T>(c, b);
  const int64_t n = a.rows;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) a(j, i) = a(i, j);
  const W scale = take_scale(a);
  auto v = unit_matrix<W>(n);
  diagonalise(a, v);
  std::vector<W> w;
  for (int64_t i = 0; i < n; ++i) w.push_back(a(i, i) * scale);
  const auto order = order_of(w, false);
  v = picked(v, order);
  for (int64_t j = 0; j < n; ++j) scale_column(v, j, sign_of(v, j));
  std::sort(w.begin(), w.end());
  store<T>(c, 0, b, w);
  store<T>(c, 1, b, v.elements);
  return KEEL_OK;
}
keel_rc eigh(const keel_call& c) {
  return each_matrix(c, [&]<class T>(int64_t b) { return eigh_of<T>(c, b); });
}

// ---- svd

template <class W>
W product_of(const Matrix<W>& a, int64_t i, const Matrix<W>& b, int64_t j) {  // of two columns
  W sum = 0;
  for (int64_t r = 0; r < a.rows; ++r) sum += a(r, i) * b(r, j);
  return sum;
}

// a v has orthogonal columns (Hestenes).
template <class W>
void make_orthogonal(Matrix<W>& a, Matrix<W>& v) {
  const W least = std::numeric_limits<W>::epsilon() * static_cast<W>(a.rows);
  bool rotated = true;
  for (int sweep = 0; rotated && sweep < kMostSweeps; ++sweep) {
    rotated = false;
    for (int64_t i = 0; i < a.columns; ++i)
      for (int64_t j = i + 1; j < a.columns; ++j) {
        const W p = product_of(a, i, a, i), q = product_of(a, i, a, j), r = product_of(a, j, a, j);
        if (std::fabs(q) <= least * std::sqrt(p) * std::sqrt(r)) continue;
        const W t = tangent(p, q, r), c = 1 / std::hypot(W(1), t);
        rotate_columns(a, i, j, c, t * c), rotate_columns(v, i, j, c, t * c);
        rotated = true;
      }
  }
}

// Column j becomes a unit vector orthogonal to columns 0 to j - 1, made from the axis farthest from their
// span.
template <class W>
void complete(Matrix<W>& u, int64_t j) {
  int64_t best = 0;
  W least = std::numeric_limits<W>::infinity();  // of the part inside, squared
  for (int64_t i = 0; i < u.rows; ++i) {
    W inside = 0;
    for (int64_t k = 0; k < j; ++k) inside += u(i, k) * u(i, k);
    if (inside < least) least = inside, best = i;
  }
  for (int64_t i = 0; i < u.rows; ++i) u(i, j) = i == best;
  for (int turn = 0; turn < 2; ++turn)  // again: a rounding error is left
    for (int64_t k = 0; k < j; ++k) {
      const W along = product_of(u, k, u, j);
      for (int64_t i = 0; i < u.rows; ++i) u(i, j) -= along * u(i, k);
    }
  scale_column(u, j, 1 / std::sqrt(product_of(u, j, u, j)));
}

// a, of no more columns than rows, becomes u; returns s and v.
template <class W>
std::pair<std::vector<W>, Matrix<W>> svd_of_tall(Matrix<W>& a) {
  const W scale = take_scale(a);
  auto v = unit_matrix<W>(a.columns);
  make_orthogonal(a, v);
  std::vector<W> s;
  for (int64_t j = 0; j < a.columns; ++j) s.push_back(std::sqrt(product_of(a, j, a, j)));
  const auto order = order_of(s, true);
  a = picked(a, order), v = picked(v, order);
  std::sort(s.rbegin(), s.rend());
  for (int64_t j = 0; j < a.columns; ++j) {
    W& length = s[static_cast<size_t>(j)];
    if (length == 0)
      complete(a, j);
    else
      scale_column(a, j, 1 / length);
    length *= scale;
  }
  return {s, v};
}

template <class T>
keel_rc svd_of(const keel_call& c, int64_t b) {
  auto u = load<T>(c, 0, b);
  if (!finite(u)) return store_nan<T>(c, b);
  const bool wide = u.columns > u.rows;
  if (wide) u = transposed(u);
  auto [s, v] = svd_of_tall(u);
  if (wide) std::swap(u, v);
  for (int64_t j = 0; j < v.columns; ++j) {
    const auto sign = sign_of(v, j);
    scale_column(u, j, sign), scale_column(v, j, sign);
  }
  store<T>(c, 0, b, u.elements);
  store<T>(c, 1, b, s);
  store<T>(c, 2, b, transposed(v).elements);
  return KEEL_OK;
}
keel_rc svd(const keel_call& c) {
  return each_matrix(c, [&]<class T>(int64_t b) { return svd_of<T>(c, b); });
}

constexpr keel_impl kImpls[] = {row<eigh>(REFERENCE_OP("eigh")), row<svd>(REFERENCE_OP("svd"))};

}  // namespace

std::span<const keel_impl> spectra_impls() { return kImpls; }

}  // namespace reference
