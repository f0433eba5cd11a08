// linear_algebra.cc: cholesky, triangular_solve, solve, det and qr, by the textbook: rows, then columns, with
// more digits than the result.
#include "families.h"
#include "matrix.h"

namespace reference {
namespace {

keel_rc bad_matrix(const keel_call& c, int64_t b, const char* why) {
  return fail(c.env->host, KEEL_RANGE, "matrix %lld is %s", static_cast<long long>(b), why);
}

// ---- cholesky

template <class W>
bool factored(Matrix<W>& a) {  // in place; false: not positive definite
  for (int64_t j = 0; j < a.rows; ++j) {
    for (int64_t i = j; i < a.rows; ++i)
      for (int64_t k = 0; k < j; ++k) a(i, j) -= a(i, k) * a(j, k);
    if (!(a(j, j) > 0)) return false;
    a(j, j) = std::sqrt(a(j, j));
    for (int64_t i = j + 1; i < a.rows; ++i) a(i, j) /= a(j, j);
  }
  return true;
}
keel_rc cholesky(const keel_call& c) {
  return each_matrix(c, [&]<class T>(int64_t b) -> keel_rc {
    auto a = load<T>(c, 0, b);
    keep_triangle(a, true);
    if (!finite(a)) return store_nan<T>(c, b);
    if (!factored(a)) return bad_matrix(c, b, "not positive definite");
    store<T>(c, 0, b, a.elements);
    return KEEL_OK;
  });
}

// ---- triangular_solve

struct TriangularState {
  bool lower, ta, unit;
  void read(Attributes& a) { lower = a.boolean("lower"), ta = a.boolean("ta"), unit = a.boolean("unit"); }
};

// b becomes the x with a x = b.
template <class W>
void substitute(const Matrix<W>& a, bool lower, bool unit, Matrix<W>& b) {
  const int64_t n = a.rows;
  for (int64_t s = 0; s < n; ++s) {
    const int64_t i = lower ? s : n - 1 - s;
    for (int64_t c = 0; c < b.columns; ++c) {
      for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k) b(i, c) -= a(i, k) * b(k, c);
      if (!unit) b(i, c) /= a(i, i);
    }
  }
}
keel_rc triangular_solve(const TriangularState& s, const keel_call& c) {
  return each_matrix(c, [&]<class T>(int64_t b) -> keel_rc {
    auto a = load<T>(c, 0, b), x = load<T>(c, 1, b);
    keep_triangle(a, s.lower);
    for (int64_t i = 0; s.unit && i < a.rows; ++i) a(i, i) = 1;
    if (!finite(a) || !finite(x)) return store_nan<T>(c, b);
    for (int64_t i = 0; i < a.rows; ++i)
      if (a(i, i) == 0)
        return fail(c.env->host, KEEL_RANGE, "matrix %lld is singular: element %lld of its diagonal is 0",
                    static_cast<long long>(b), static_cast<long long>(i));
    substitute(s.ta ? transposed(a) : a, s.lower != s.ta, s.unit, x);
    store<T>(c, 0, b, x.elements);
    return KEEL_OK;
  });
}

// ---- solve, det

// Gaussian elimination with partial pivoting of [a, b]: a becomes upper triangular. Returns the sign of the
// permutation; 0: a is singular.
template <class W>
int eliminate(Matrix<W>& a, Matrix<W>& b) {
  int sign = 1;
  for (int64_t j = 0; j < a.rows; ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; i < a.rows; ++i)
      if (std::fabs(a(i, j)) > std::fabs(a(best, j))) best = i;
    if (a(best, j) == 0) return 0;
    if (best != j) swap_rows(a, best, j), swap_rows(b, best, j), sign = -sign;
    for (int64_t i = j + 1; i < a.rows; ++i) {
      const W f = a(i, j) / a(j, j);
      for (int64_t k = j; k < a.columns; ++k) a(i, k) -= f * a(j, k);
      for (int64_t k = 0; k < b.columns; ++k) b(i, k) -= f * b(j, k);
    }
  }
  return sign;
}

struct SolveState {
  bool ta;
  void read(Attributes& a) { ta = a.boolean("ta"); }
};
keel_rc solve(const SolveState& s, const keel_call& c) {
  return each_matrix(c, [&]<class T>(int64_t b) -> keel_rc {
    auto a = load<T>(c, 0, b), x = load<T>(c, 1, b);
    if (!finite(a) || !finite(x)) return store_nan<T>(c, b);
    if (s.ta) a = transposed(a);
    if (eliminate(a, x) == 0) return bad_matrix(c, b, "singular");
    substitute(a, false, false, x);
    store<T>(c, 0, b, x.elements);
    return KEEL_OK;
  });
}

keel_rc det(const keel_call& c) {
  return each_matrix(c, [&]<class T>(int64_t b) -> keel_rc {
    auto a = load<T>(c, 0, b);
    if (!finite(a)) return store_nan<T>(c, b);
    Matrix<Math<T>> none(a.rows, 0);
    Math<T> d = eliminate(a, none);
    for (int64_t i = 0; d != 0 && i < a.rows; ++i) d *= a(i, i);
    store<T>(c, 0, b, {d});
    return KEEL_OK;
  });
}

// ---- qr

// Column j of a, from row j on, is reflected to a multiple of the first unit vector; a and q (transposed)
// take part.
template <class W>
void reflect(Matrix<W>& a, Matrix<W>& q, int64_t j) {
  std::vector<W> h;  // the normal of the mirror
  W norm = 0, square = 0;
  for (int64_t i = j; i < a.rows; ++i) norm = std::hypot(norm, a(i, j)), h.push_back(a(i, j));
  if (norm == 0) return;
  for (W& x : h) x /= norm;
  h[0] += std::signbit(h[0]) ? -1 : 1;
  for (const W x : h) square += x * x;
  for (Matrix<W>* m : {&a, &q})
    for (int64_t c = 0; c < m->columns; ++c) {
      W sum = 0;
      for (int64_t i = j; i < a.rows; ++i) sum += h[static_cast<size_t>(i - j)] * (*m)(i, c);
      for (int64_t i = j; i < a.rows; ++i) (*m)(i, c) -= 2 * sum / square * h[static_cast<size_t>(i - j)];
    }
}
keel_rc qr(const keel_call& c) {
  return each_matrix(c, [&]<class T>(int64_t b) -> keel_rc {
    auto r = load<T>(c, 0, b), q = unit_matrix<Math<T>>(r.rows);
    if (!finite(r)) return store_nan<T>(c, b);
    const int64_t k = std::min(r.rows, r.columns);
    for (int64_t j = 0; j < k; ++j) reflect(r, q, j);
    for (int64_t j = 0; j < k; ++j) {
      const int sign = r(j, j) < 0 ? -1 : 1;
      for (int64_t i = 0; i < r.columns; ++i) r(j, i) = i < j ? 0 : sign * r(j, i);
      for (int64_t i = 0; i < r.rows; ++i) q(j, i) *= static_cast<Math<T>>(sign);
    }
    q.elements.resize(static_cast<size_t>(k * r.rows)), q.rows = k;
    r.elements.resize(static_cast<size_t>(k * r.columns));
    store<T>(c, 0, b, transposed(q).elements);
    store<T>(c, 1, b, r.elements);
    return KEEL_OK;
  });
}

constexpr keel_impl kImpls[] = {
    row<cholesky>(REFERENCE_OP("cholesky")),
    row<TriangularState, triangular_solve>(REFERENCE_OP("triangular_solve"), KEEL_IMPL_ANY_DIMS),
    row<SolveState, solve>(REFERENCE_OP("solve"), KEEL_IMPL_ANY_DIMS),
    row<det>(REFERENCE_OP("det")),
    row<qr>(REFERENCE_OP("qr")),
};

}  // namespace

std::span<const keel_impl> linear_algebra_impls() { return kImpls; }

}  // namespace reference
