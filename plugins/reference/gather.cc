// gather.cc: ops that pick and write elements by the values of an index operand.
//
// Each op is a function typed by the index type I (and by T if it computes), and a wrapper that selects the
// types. Every index is checked before use; negative ones are out of range.
#include <cstring>
#include <vector>

#include "call.h"
#include "families.h"

namespace reference {
namespace {

bool outside(int64_t i, int64_t n) { return i < 0 || i >= n; }

// All indices of gather and scatter_add refer to one dim of n entries.
template <class I>
keel_rc check_all(const keel_call& c, const I* i, int64_t count, int64_t n) {
  for (int64_t k = 0; k < count; ++k) {
    if (outside(i[k], n)) return bad_index(c, i[k], n);
  }
  return KEEL_OK;
}

struct AxisState {
  int64_t axis;
  void read(Attributes& a) { axis = a.i64("axis"); }
};

// y[p, r, q] = x[p, i[r], q]
template <class I>
keel_rc gather_typed(const AxisState& s, const keel_call& c) {
  const Dims dx = dims_of(*c.in[0]);
  const int64_t outer = product(part(dx, 0, s.axis)), n = dx[s.axis], count = keel_count(c.in[1]);
  const I* i = in<I>(c, 1);
  if (const keel_rc rc = check_all(c, i, count, n)) return rc;
  const size_t row = static_cast<size_t>(product(part(dx, s.axis + 1, dx.n))) * width(*c.in[0]);
  if (row == 0) return KEEL_OK;
  const char* x = in<char>(c, 0);
  char* y = out<char>(c);
  for (int64_t p = 0; p < outer; ++p) {
    for (int64_t r = 0; r < count; ++r, y += row) {
      std::memcpy(y, x + static_cast<size_t>(p * n + i[r]) * row, row);
    }
  }
  return KEEL_OK;
}
keel_rc gather(const AxisState& s, const keel_call& c) {
  return typed<Indices>(c, in_type(c, 1),
                        [&](auto tag) { return gather_typed<typename decltype(tag)::type>(s, c); });
}

// y[p, i[r], q] += u[p, r, q]. Sums stay wide until the end, one outer slice at a time.
template <class I, class T>
keel_rc scatter_add_typed(const AxisState& s, const keel_call& c) {
  const Dims dy = dims_of(*c.out[0]);
  const int64_t outer = product(part(dy, 0, s.axis)), n = dy[s.axis], count = keel_count(c.in[0]);
  const int64_t inner = product(part(dy, s.axis + 1, dy.n));
  const I* i = in<I>(c, 0);
  if (const keel_rc rc = check_all(c, i, count, n)) return rc;
  const T* u = in<T>(c, 1);
  T* y = out<T>(c);
  std::vector<Sum<T>> sums(static_cast<size_t>(n * inner));
  for (int64_t p = 0; p < outer; ++p) {
    sums.assign(sums.size(), Sum<T>(0));
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t q = 0; q < inner; ++q) sums[static_cast<size_t>(i[r] * inner + q)] += wide(*u++);
    }
    for (const Sum<T> sum : sums) *y++ = make<T>(sum);
  }
  return KEEL_OK;
}
keel_rc scatter_add(const AxisState& s, const keel_call& c) {
  return typed<Indices>(c, in_type(c, 0), [&](auto i) {
    return typed<Num>(c, in_type(c, 1), [&](auto t) {
      return scatter_add_typed<typename decltype(i)::type, typename decltype(t)::type>(s, c);
    });
  });
}

// y[j] = x[j with i[j] along axis]. In other dims j may be outside x, as i may be larger there.
template <class I>
keel_rc gather_elements_typed(const AxisState& s, const keel_call& c) {
  const Dims dx = dims_of(*c.in[0]), strides = strides_of(dx);
  const I* i = in<I>(c, 1);
  const size_t w = width(*c.in[0]);
  char* y = out<char>(c);
  for (Odometer o(dims_of(*c.in[1])); o.valid(); o.next(), y += w) {
    Dims place = o.index;
    place[s.axis] = *i++;
    for (int32_t d = 0; d < dx.n; ++d) {
      if (outside(place[d], dx[d])) return bad_index(c, place[d], dx[d]);
    }
    std::memcpy(y, in<char>(c, 0) + static_cast<size_t>(dot(place, strides)) * w, w);
  }
  return KEEL_OK;
}
keel_rc gather_elements(const AxisState& s, const keel_call& c) {
  return typed<Indices>(c, in_type(c, 1),
                        [&](auto tag) { return gather_elements_typed<typename decltype(tag)::type>(s, c); });
}

// The element offset of the slice that a row of k indices refers to; `dims` and `strides` of the indexed
// tensor exclude batch dims.
template <class I>
keel_rc locate(const keel_call& c, const I* row, int64_t k, const Dims& dims, const Dims& strides,
               int64_t* at) {
  *at = 0;
  for (int64_t d = 0; d < k; ++d) {
    if (outside(row[d], dims[d])) return bad_index(c, row[d], dims[d]);
    *at += row[d] * strides[d];
  }
  return KEEL_OK;
}

struct BatchState {
  int64_t batch;
  void read(Attributes& a) { batch = a.i64("batch"); }
};
template <class I>
keel_rc gather_nd_typed(const BatchState& s, const keel_call& c) {
  const Dims dx = dims_of(*c.in[0]), di = dims_of(*c.in[1]);
  const Dims each = part(dx, s.batch, dx.n), strides = strides_of(each);
  const int64_t batches = product(part(dx, 0, s.batch)), rows = product(part(di, s.batch, di.n - 1));
  const int64_t k = di[di.n - 1];
  const size_t w = width(*c.in[0]), slice = static_cast<size_t>(product(part(each, k, each.n))) * w;
  const I* i = in<I>(c, 1);
  char* y = out<char>(c);
  for (int64_t b = 0; b < batches; ++b) {
    const char* x = in<char>(c, 0) + static_cast<size_t>(b * product(each)) * w;
    for (int64_t r = 0; r < rows; ++r, i += k, y += slice) {
      int64_t at;
      if (const keel_rc rc = locate(c, i, k, each, strides, &at)) return rc;
      if (slice != 0) std::memcpy(y, x + static_cast<size_t>(at) * w, slice);
    }
  }
  return KEEL_OK;
}
keel_rc gather_nd(const BatchState& s, const keel_call& c) {
  return typed<Indices>(c, in_type(c, 1),
                        [&](auto tag) { return gather_nd_typed<typename decltype(tag)::type>(s, c); });
}

// ---- scatter_nd: updates in row order, each rounded to T

enum class Mode { kSet, kAdd, kMul, kMax, kMin };
struct ScatterState {
  Mode mode = Mode::kSet;
  void read(Attributes& a) {
    const std::string_view name = a.text("mode");
    if (name == "add") mode = Mode::kAdd;
    if (name == "mul") mode = Mode::kMul;
    if (name == "max") mode = Mode::kMax;
    if (name == "min") mode = Mode::kMin;
  }
};
// For booleans, add and max are "or", mul and min are "and".
template <class T>
T combine(Mode mode, T old, T now) {
  if (mode == Mode::kSet) return now;
  if (mode == Mode::kMax) return greater_of(old, now);
  if (mode == Mode::kMin) return lesser_of(old, now);
  return mode == Mode::kAdd ? make<T>(arith(old) + arith(now)) : make<T>(arith(old) * arith(now));
}
template <class I, class T>
keel_rc scatter_nd_typed(const ScatterState& s, const keel_call& c) {
  const Dims dx = dims_of(*c.in[0]), di = dims_of(*c.in[1]), strides = strides_of(dx);
  const int64_t k = di[di.n - 1], rows = product(part(di, 0, di.n - 1)), slice = product(part(dx, k, dx.n));
  const int64_t total = product(dx);
  const I* i = in<I>(c, 1);
  const T *x = in<T>(c, 0), *u = in<T>(c, 2);
  T* y = out<T>(c);
  for (int64_t e = 0; e < total; ++e) y[e] = x[e];
  for (int64_t r = 0; r < rows; ++r, i += k) {
    int64_t at;
    if (const keel_rc rc = locate(c, i, k, dx, strides, &at)) return rc;
    for (int64_t e = 0; e < slice; ++e) y[at + e] = combine(s.mode, y[at + e], *u++);
  }
  return KEEL_OK;
}
keel_rc scatter_nd(const ScatterState& s, const keel_call& c) {
  return typed<Indices>(c, in_type(c, 1), [&](auto i) {
    return typed<Any>(c, in_type(c, 0), [&](auto t) {
      return scatter_nd_typed<typename decltype(i)::type, typename decltype(t)::type>(s, c);
    });
  });
}

// y[p, d, q] = (i[p, q] == d)
template <class I, class T>
keel_rc one_hot_typed(const AxisState& s, const keel_call& c) {
  const Dims dy = dims_of(*c.out[0]);
  const int64_t inner = product(part(dy, s.axis + 1, dy.n));
  const int64_t outer = product(part(dy, 0, s.axis));
  const I* i = in<I>(c, 0);
  T* y = out<T>(c);
  for (int64_t p = 0; p < outer; ++p) {
    for (int64_t d = 0; d < dy[s.axis]; ++d) {
      for (int64_t q = 0; q < inner; ++q) *y++ = convert<T>(Bool{i[p * inner + q] == d});
    }
  }
  return KEEL_OK;
}
keel_rc one_hot(const AxisState& s, const keel_call& c) {
  return typed<Indices>(c, in_type(c, 0), [&](auto i) {
    return typed<Any>(c, keel_dt_of(c.out[0]), [&](auto t) {
      return one_hot_typed<typename decltype(i)::type, typename decltype(t)::type>(s, c);
    });
  });
}

constexpr uint32_t kAny = KEEL_IMPL_ANY_DIMS;
constexpr keel_impl kImpls[] = {
    row<AxisState, gather>(REFERENCE_OP("gather"), kAny),
    row<AxisState, scatter_add>(REFERENCE_OP("scatter_add"), kAny),
    row<AxisState, gather_elements>(REFERENCE_OP("gather_elements"), kAny),
    row<BatchState, gather_nd>(REFERENCE_OP("gather_nd"), kAny),
    row<ScatterState, scatter_nd>(REFERENCE_OP("scatter_nd"), kAny),
    row<AxisState, one_hot>(REFERENCE_OP("one_hot"), kAny),
};

}  // namespace

std::span<const keel_impl> gather_impls() { return kImpls; }

}  // namespace reference
