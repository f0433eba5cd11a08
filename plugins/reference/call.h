// call.h: helpers of all impls: dims and iteration, errors, attributes, table rows.
//
// Dims and Odometer (all loops over elements) come first, then typed views, fail(), Attributes, and the row()
// functions that wrap a function, with or without state from attributes, as a keel_impl.
#ifndef KEEL_REFERENCE_CALL_H
#define KEEL_REFERENCE_CALL_H
#include <cstdarg>
#include <cstdio>
#include <new>
#include <span>
#include <stdexcept>
#include <string_view>

#include "types.h"

namespace reference {

// ---- dims

struct Dims {  // also strides, and an index
  int32_t n = 0;
  int64_t v[KEEL_MAX_RANK] = {};
  int64_t& operator[](int64_t d) { return v[d]; }
  int64_t operator[](int64_t d) const { return v[d]; }
  void push(int64_t x) { v[n++] = x; }
};

inline Dims dims_of(const keel_tensor& t) {
  Dims d;
  for (int32_t i = 0; i < t.ndim; ++i) d.push(t.shape[i]);
  return d;
}
inline Dims part(const Dims& d, int64_t from, int64_t to) {
  Dims p;
  for (int64_t i = from; i < to; ++i) p.push(d[i]);
  return p;
}
inline int64_t product(const Dims& d) {
  int64_t p = 1;
  for (int32_t i = 0; i < d.n; ++i) p *= d[i];
  return p;
}
// Row-major strides, in elements.
inline Dims strides_of(const Dims& d) {
  Dims s = d;
  int64_t step = 1;
  for (int32_t i = d.n - 1; i >= 0; --i) {
    s[i] = step;
    step *= d[i];
  }
  return s;
}
// Strides that read an operand of dims `from` at an index of the broadcast dims `to`.
inline Dims broadcast_strides(const Dims& from, const Dims& to) {
  const Dims s = strides_of(from);
  Dims b = to;
  for (int32_t i = 0; i < to.n; ++i) {
    const int32_t j = i - (to.n - from.n);
    b[i] = j < 0 || from[j] == 1 ? 0 : s[j];
  }
  return b;
}
inline int64_t dot(const Dims& index, const Dims& strides) {
  int64_t sum = 0;
  for (int32_t i = 0; i < index.n; ++i) sum += index[i] * strides[i];
  return sum;
}

// Visits every index of `dims` in row-major order; rank 0 has one, the empty index.
class Odometer {
 public:
  explicit Odometer(const Dims& dims) : index(dims), dims_(dims) {
    for (int32_t i = 0; i < dims.n; ++i) {
      valid_ = valid_ && dims[i] > 0;
      index[i] = 0;
    }
  }
  bool valid() const { return valid_; }
  void next() {
    for (int32_t i = dims_.n - 1; i >= 0; --i) {
      if (++index[i] < dims_[i]) return;
      index[i] = 0;
    }
    valid_ = false;
  }
  Dims index;

 private:
  Dims dims_;
  bool valid_ = true;
};

// ---- tensors and errors

template <class T>
const T* in(const keel_call& c, int i) {
  return static_cast<const T*>(keel_ptr(c.in[i]));
}
template <class T>
T* out(const keel_call& c, int i = 0) {
  return static_cast<T*>(keel_ptr(c.out[i]));
}
inline size_t width(const keel_tensor& t) { return t.dtype.bits / 8; }
inline keel_dt in_type(const keel_call& c, int i = 0) { return keel_dt_of(c.in[i]); }

__attribute__((format(printf, 3, 4))) inline keel_rc fail(const keel_host* host, keel_rc code,
                                                          const char* format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return host->fail(code, text);
}
inline keel_rc bad_index(const keel_call& c, int64_t i, int64_t n) {
  return fail(c.env->host, KEEL_RANGE, "index %lld is not in [0, %lld)", static_cast<long long>(i),
              static_cast<long long>(n));
}
inline bool cancelled(const keel_call& c) { return c.env->cancelled && *c.env->cancelled; }

// visit() for a body that returns keel_rc.
template <class Set, class F>
keel_rc typed(const keel_call& c, keel_dt dt, F f) {
  keel_rc rc = KEEL_OK;
  if (visit<Set>(dt, [&](auto tag) { rc = f(tag); })) return rc;
  return fail(c.env->host, KEEL_UNIMPLEMENTED, "reference: this op does not allow dtype code %u of %u bits",
              static_cast<unsigned>(dt & 255), static_cast<unsigned>(dt >> 8 & 255));
}

// ---- attributes: read in prepare; the first missing or mistyped one fails it

class Attributes {
 public:
  Attributes(const keel_host* host, const keel_node* node) : host_(host), node_(node) {}
  int64_t i64(const char* name) { return get(name, KEEL_ATTR_I64, KEEL_ATTR_DIM).i; }
  bool boolean(const char* name) { return get(name, KEEL_ATTR_BOOL, KEEL_ATTR_BOOL).i != 0; }
  double f64(const char* name) { return get(name, KEEL_ATTR_F64, KEEL_ATTR_F64).f; }
  std::string_view text(const char* name) {
    const keel_attr a = get(name, KEEL_ATTR_STR, KEEL_ATTR_STR);
    return {static_cast<const char*>(a.p), a.count};
  }
  Dims list(const char* name) {
    const keel_attr a = get(name, KEEL_ATTR_I64S, KEEL_ATTR_DIMS);
    Dims d;
    if (a.count > KEEL_MAX_RANK) {
      rc_ = fail(host_, KEEL_INTERNAL, "attribute %s has %u entries; expected at most %d", name, a.count,
                 KEEL_MAX_RANK);
      return d;
    }
    for (uint32_t i = 0; i < a.count; ++i) d.push(static_cast<const int64_t*>(a.p)[i]);
    return d;
  }
  keel_rc rc() const { return rc_; }

 private:
  keel_attr get(const char* name, int32_t kind, int32_t other) {
    keel_attr a = {};
    const keel_rc rc = host_->node_attr(node_, name, &a);
    if (rc == KEEL_OK && (a.kind == kind || a.kind == other)) return a;
    if (rc_ == KEEL_OK) {
      rc_ = rc ? rc : fail(host_, KEEL_INTERNAL, "attribute %s has kind %d; expected %d", name, a.kind, kind);
    }
    return {};
  }
  const keel_host* host_;
  const keel_node* node_;
  keel_rc rc_ = KEEL_OK;
};

// ---- rows of the table

// No exception may cross the C boundary; only std::vector throws here.
template <class F>
keel_rc guarded(const keel_host* host, F f) noexcept {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return host->fail(KEEL_OOM, "reference: no memory for a temporary of the op");
  } catch (const std::length_error&) {
    return host->fail(KEEL_OOM, "reference: a temporary of the op is larger than memory");
  }
}
template <keel_rc (*RUN)(const keel_call&)>
keel_rc run_plain(const keel_call* c) {
  return guarded(c->env->host, [&] { return RUN(*c); });
}
template <class State, keel_rc (*RUN)(const State&, const keel_call&)>
keel_rc run_state(const keel_call* c) {
  return guarded(c->env->host, [&] { return RUN(*static_cast<const State*>(c->state), *c); });
}
// State is initialised from the attributes by its member `void read(Attributes&)`.
template <class State, keel_rc (*RUN)(const State&, const keel_call&)>
keel_rc prepare(keel_dev, const keel_host* host, const keel_node* node, keel_launch* launch) {
  State* state = new (std::nothrow) State();
  if (!state) return host->fail(KEEL_OOM, "reference: no memory for the state of a node");
  Attributes attributes(host, node);
  state->read(attributes);
  if (attributes.rc() != KEEL_OK) {
    delete state;
    return attributes.rc();
  }
  launch->state = state;
  launch->release = [](keel_dev, void* s) { delete static_cast<State*>(s); };
  launch->run = run_state<State, RUN>;
  return KEEL_OK;
}

// The name of an impl from the name of its op.
#define REFERENCE_OP(op) op, "reference " op

template <keel_rc (*RUN)(const keel_call&)>
constexpr keel_impl row(const char* op, const char* name, uint32_t flags = KEEL_IMPL_ANY_DIMS) {
  return {op, 1, 1, nullptr, name, 0, flags, nullptr, nullptr, run_plain<RUN>};
}
// For attributes that contain dims pass flags 0: these impls are prepared for each shape.
template <class State, keel_rc (*RUN)(const State&, const keel_call&)>
constexpr keel_impl row(const char* op, const char* name, uint32_t flags) {
  return {op, 1, 1, nullptr, name, 0, flags, nullptr, prepare<State, RUN>, run_state<State, RUN>};
}

}  // namespace reference
#endif
