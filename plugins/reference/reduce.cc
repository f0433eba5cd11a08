// reduce.cc: reductions along axes, and ordering along one axis.
//
// fold() implements all reductions over several axes from an initial value, a step per element and a final
// step; Lines iterates along one axis for arg_max, top_k, cumsum and linear_recurrence.
#include <algorithm>
#include <numeric>
#include <vector>

#include "call.h"
#include "families.h"

namespace reference {
namespace {

struct AxesState {
  Dims axes;
  void read(Attributes& a) { axes = a.list("axes"); }
  bool has(int64_t d) const { return std::find(axes.v, axes.v + axes.n, d) != axes.v + axes.n; }
};

// Strides of the result at an index of the operand: 0 along reduced axes.
Dims kept_strides(const AxesState& s, const Dims& dims) {
  Dims strides = dims;
  int64_t step = 1;
  for (int32_t d = dims.n - 1; d >= 0; --d) {
    strides[d] = s.has(d) ? 0 : step;
    if (!s.has(d)) step *= dims[d];
  }
  return strides;
}
int64_t reduced_count(const AxesState& s, const Dims& dims) {
  int64_t count = 1;
  for (int32_t d = 0; d < dims.n; ++d) count *= s.has(d) ? dims[d] : 1;
  return count;
}

template <class T, class A, class Take, class Finish>
keel_rc fold(const AxesState& s, const keel_call& c, A begin, Take take, Finish finish) {
  const Dims dims = dims_of(*c.in[0]), strides = kept_strides(s, dims);
  std::vector<A> results(static_cast<size_t>(keel_count(c.out[0])), begin);
  const T* x = in<T>(c, 0);
  for (Odometer o(dims); o.valid(); o.next(), ++x) {
    A& result = results[static_cast<size_t>(dot(o.index, strides))];
    result = take(result, *x);
  }
  T* y = out<T>(c);
  for (const A& result : results) *y++ = finish(result);
  return KEEL_OK;
}

keel_rc reduce_sum(const AxesState& s, const keel_call& c) {
  return typed<Num>(c, in_type(c), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return fold<T>(
        s, c, Sum<T>(0), [](Sum<T> sum, T x) { return sum + wide(x); }, make<T, Sum<T>>);
  });
}
keel_rc reduce_prod(const AxesState& s, const keel_call& c) {
  return typed<Num>(c, in_type(c), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return fold<T>(
        s, c, Sum<T>(1), [](Sum<T> product, T x) { return product * wide(x); }, make<T, Sum<T>>);
  });
}

// The mean of integers is exact: the sum has 128 bits. Of no integers it is 0.
__extension__ typedef __int128 Exact;
template <class T>
using MeanSum = std::conditional_t<Float<T>, Sum<T>, Exact>;
template <class T>
keel_rc mean_typed(const AxesState& s, const keel_call& c) {
  using A = MeanSum<T>;
  const A count = static_cast<A>(reduced_count(s, dims_of(*c.in[0])));
  return fold<T>(
      s, c, A(0), [](A sum, T x) { return sum + static_cast<A>(value(x)); },
      [count](A sum) { return Integer<T> && count == 0 ? make<T>(A(0)) : make<T>(sum / count); });
}
keel_rc reduce_mean(const AxesState& s, const keel_call& c) {
  return typed<Num>(c, in_type(c), [&](auto tag) { return mean_typed<typename decltype(tag)::type>(s, c); });
}

keel_rc reduce_max(const AxesState& s, const keel_call& c) {
  return typed<Any>(c, in_type(c), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return fold<T>(s, c, lowest<T>(), greater_of<T>, [](T x) { return x; });
  });
}
keel_rc reduce_min(const AxesState& s, const keel_call& c) {
  return typed<Any>(c, in_type(c), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return fold<T>(s, c, highest<T>(), lesser_of<T>, [](T x) { return x; });
  });
}

// ---- along one axis

// A tensor viewed as [outer, n, inner]: a line is the n elements at one outer and inner index.
struct Lines {
  int64_t outer, n, inner;
  Lines(const Dims& d, int64_t axis)
      : outer(product(part(d, 0, axis))), n(d[axis]), inner(product(part(d, axis + 1, d.n))) {}
  int64_t count() const { return outer * inner; }
  int64_t start(int64_t line) const { return line / inner * n * inner + line % inner; }
};

struct ArgState {
  int64_t axis;
  bool last;
  void read(Attributes& a) {
    axis = a.i64("axis");
    last = a.boolean("last");
  }
};
// before(a, b): a is preferred to b.
template <class T, class Before>
keel_rc arg(const ArgState& s, const keel_call& c, const char* op, Before before) {
  const Lines lines(dims_of(*c.in[0]), s.axis);
  if (lines.n == 0 && lines.count() > 0)
    return fail(c.env->host, KEEL_RANGE, "%s: the dim has no elements", op);
  int64_t* y = out<int64_t>(c);
  for (int64_t line = 0; line < lines.count(); ++line) {
    const T* x = in<T>(c, 0) + lines.start(line);
    int64_t best = 0;
    for (int64_t i = 1; i < lines.n; ++i) {
      const T now = x[i * lines.inner], found = x[best * lines.inner];
      if (s.last ? !before(found, now) : before(now, found)) best = i;
    }
    y[line] = best;
  }
  return KEEL_OK;
}
keel_rc arg_max(const ArgState& s, const keel_call& c) {
  return typed<Num>(c, in_type(c), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return arg<T>(s, c, "arg_max", [](T a, T b) { return less_nan_high(b, a); });
  });
}
keel_rc arg_min(const ArgState& s, const keel_call& c) {
  return typed<Num>(c, in_type(c), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return arg<T>(s, c, "arg_min", [](T a, T b) { return less_nan_low(a, b); });
  });
}

struct TopState {
  bool largest;
  void read(Attributes& a) { largest = a.boolean("largest"); }
};
// As in arg_max and arg_min NaN comes first, for both `largest` values.
template <class T>
keel_rc top_k_typed(const TopState& s, const keel_call& c) {
  const Dims dims = dims_of(*c.in[0]);
  const int64_t n = dims[dims.n - 1], rows = product(part(dims, 0, dims.n - 1));
  const int64_t k = c.out[0]->shape[c.out[0]->ndim - 1];
  T* values = out<T>(c, 0);
  int64_t* places = out<int64_t>(c, 1);
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = in<T>(c, 0) + r * n;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return s.largest ? less_nan_high(x[b], x[a]) : less_nan_low(x[a], x[b]);
    });
    for (int64_t i = 0; i < k; ++i) {
      *places++ = order[static_cast<size_t>(i)];
      *values++ = x[order[static_cast<size_t>(i)]];
    }
  }
  return KEEL_OK;
}
keel_rc top_k(const TopState& s, const keel_call& c) {
  return typed<Num>(c, in_type(c), [&](auto tag) { return top_k_typed<typename decltype(tag)::type>(s, c); });
}

// Calls f<T>(now, at, first) for each element of each line in order, or from the end: now is 0 before the
// first one; at is the element's place.
template <class F>
keel_rc along_lines(const keel_call& c, int64_t axis, bool reverse, F f) {
  return typed<Num>(c, in_type(c), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Lines lines(dims_of(*c.in[0]), axis);
    for (int64_t line = 0; line < lines.count(); ++line) {
      Sum<T> now = 0;
      for (int64_t i = 0; i < lines.n; ++i)
        f.template operator()<T>(now, lines.start(line) + (reverse ? lines.n - 1 - i : i) * lines.inner,
                                 i == 0);
    }
    return KEEL_OK;
  });
}

struct CumsumState {
  int64_t axis;
  bool exclusive, reverse;
  void read(Attributes& a) {
    axis = a.i64("axis");
    exclusive = a.boolean("exclusive");
    reverse = a.boolean("reverse");
  }
};
keel_rc cumsum(const CumsumState& s, const keel_call& c) {
  return along_lines(c, s.axis, s.reverse, [&]<class T>(Sum<T>& sum, int64_t at, bool) {
    const Sum<T> with = sum + wide(in<T>(c, 0)[at]);
    out<T>(c)[at] = make<T>(s.exclusive ? sum : with);
    sum = with;
  });
}

struct RecurrenceState {
  int64_t axis;
  bool reverse;
  void read(Attributes& a) {
    axis = a.i64("axis");
    reverse = a.boolean("reverse");
  }
};
keel_rc linear_recurrence(const RecurrenceState& s, const keel_call& c) {
  return along_lines(c, s.axis, s.reverse, [&]<class T>(Sum<T>& y, int64_t at, bool first) {
    const Sum<T> b = wide(in<T>(c, 1)[at]);
    y = first ? b : wide(in<T>(c, 0)[at]) * y + b;
    out<T>(c)[at] = make<T>(y);
  });
}

constexpr uint32_t kAny = KEEL_IMPL_ANY_DIMS;
constexpr keel_impl kImpls[] = {
    row<AxesState, reduce_sum>(REFERENCE_OP("reduce_sum"), kAny),
    row<AxesState, reduce_mean>(REFERENCE_OP("reduce_mean"), kAny),
    row<AxesState, reduce_prod>(REFERENCE_OP("reduce_prod"), kAny),
    row<AxesState, reduce_max>(REFERENCE_OP("reduce_max"), kAny),
    row<AxesState, reduce_min>(REFERENCE_OP("reduce_min"), kAny),
    row<ArgState, arg_max>(REFERENCE_OP("arg_max"), kAny),
    row<ArgState, arg_min>(REFERENCE_OP("arg_min"), kAny),
    row<TopState, top_k>(REFERENCE_OP("top_k"), kAny),
    row<CumsumState, cumsum>(REFERENCE_OP("cumsum"), kAny),
    row<RecurrenceState, linear_recurrence>(REFERENCE_OP("linear_recurrence"), kAny),
};

}  // namespace

std::span<const keel_impl> reduce_impls() { return kImpls; }

}  // namespace reference
