// common.h: shared by all files of the CPU plugin: C++ types of dtypes, reading nodes, reporting errors,
// ownership of launch state. Each family (elementwise/binary.cc, reduce/reduce.cc ...) exports one span of
// impls, which plugin.cc joins. Loops that profit from wide vectors are in *_loops.inc (see simd/simd.h).
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "abi/keel_plugin.h"
#include "plugins/cpu/simd/half.h"

namespace keel_cpu {

using Dims = std::vector<int64_t>;

// An error for keel_host.fail; thrown inside the plugin, caught in Prepare and Guard.
struct Error {
  keel_rc code;
  std::string text;
};
struct Reported {  // the host has the text already
  keel_rc code;
};
[[noreturn]] void Throw(keel_rc code, std::string text);

// A node as prepare sees it. Dims of its tensors are numbers, or -1 for impls marked KEEL_IMPL_ANY_DIMS.
struct Node {
  const keel_host* host;
  const keel_node* node;

  keel_tensor In(uint32_t i) const;  // data is null unless the operand is a constant
  keel_tensor Out(uint32_t i) const;
  uint32_t InCount() const;
  bool Has(uint32_t i) const;  // operand i is given
  keel_attr Attr(const char* name) const;
  int64_t Int(const char* name) const { return Attr(name).i; }
  bool Flag(const char* name) const { return Attr(name).i != 0; }
  double Real(const char* name) const { return Attr(name).f; }
  std::string Word(const char* name) const;
  Dims List(const char* name) const;
};

inline Dims DimsOf(const keel_tensor& t) { return Dims(t.shape, t.shape + t.ndim); }
// Whether all are numbers.
inline bool HasDims(const keel_tensor& t) {
  for (int d = 0; d < t.ndim; d++)
    if (t.shape[d] < 0) return false;
  return true;
}
int64_t Product(const int64_t* dims, int64_t n);
inline keel_dtype DtypeOf(keel_dt dt) {
  return {static_cast<uint8_t>(dt), static_cast<uint8_t>(dt >> 8), static_cast<uint16_t>(dt >> 16)};
}
inline keel_dt TypeOf(const keel_tensor& t) { return keel_dt_of(&t); }
inline int64_t ItemSize(const keel_tensor& t) { return t.dtype.bits / 8; }

template <class T>
const T* In(const keel_call* c, int i) {
  return static_cast<const T*>(keel_ptr(c->in[i]));
}
template <class T>
T* Out(const keel_call* c, int i) {
  return static_cast<T*>(keel_ptr(c->out[i]));
}
template <class S>
const S& State(const keel_call* c) {
  return *static_cast<const S*>(c->state);
}

using Run = keel_rc (*)(const keel_call*);

// Moves the prepared state into the launch, which owns it.
template <class S>
keel_rc Keep(keel_launch* launch, S state, Run run, uint64_t scratch_bytes = 0) {
  launch->state = new S(std::move(state));
  launch->release = [](keel_dev, void* p) { delete static_cast<S*>(p); };
  launch->run = run;
  launch->scratch_bytes = scratch_bytes;
  return KEEL_OK;
}
// The same for a constant table, which is not released.
template <class S>
keel_rc KeepTable(keel_launch* launch, const S* table, Run run) {
  launch->state = const_cast<S*>(table);
  launch->run = run;
  return KEEL_OK;
}

keel_rc Report(const keel_host* host, std::exception_ptr error);

// The C boundary: no exception leaves the plugin.
template <keel_rc (*F)(const Node&, keel_launch*)>
keel_rc Prepare(keel_dev, const keel_host* host, const keel_node* node, keel_launch* launch) {
  try {
    return F(Node{host, node}, launch);
  } catch (...) {
    return Report(host, std::current_exception());
  }
}
template <keel_rc (*F)(const keel_call*)>
keel_rc Guard(const keel_call* call) {
  try {
    return F(call);
  } catch (...) {
    return Report(call->env->host, std::current_exception());
  }
}

// Calls f.operator()<T>() with the C++ type of a dtype. VisitAll passes bool as uint8_t (0 or 1); callers
// that must distinguish them (cast, max of bools) check the dtype.
template <class F>
decltype(auto) VisitInts(keel_dt dt, F&& f) {
  switch (dt) {
    case KEEL_I8:
      return f.template operator()<int8_t>();
    case KEEL_I16:
      return f.template operator()<int16_t>();
    case KEEL_I32:
      return f.template operator()<int32_t>();
    case KEEL_I64:
      return f.template operator()<int64_t>();
    case KEEL_U8:
      return f.template operator()<uint8_t>();
    case KEEL_U16:
      return f.template operator()<uint16_t>();
    case KEEL_U32:
      return f.template operator()<uint32_t>();
    case KEEL_U64:
      return f.template operator()<uint64_t>();
    default:
      Throw(KEEL_UNIMPLEMENTED, "the CPU device has no loop for dtype code " + std::to_string(dt));
  }
}
template <class F>
decltype(auto) VisitFloats(keel_dt dt, F&& f) {
  switch (dt) {
    case KEEL_F16:
      return f.template operator()<F16>();
    case KEEL_BF16:
      return f.template operator()<BF16>();
    case KEEL_F64:
      return f.template operator()<double>();
    case KEEL_F32:
      return f.template operator()<float>();
    default:
      Throw(KEEL_UNIMPLEMENTED,
            "the CPU device expects a floating-point dtype here, not dtype code " + std::to_string(dt));
  }
}
template <class F>
decltype(auto) VisitAll(keel_dt dt, F&& f) {
  if (dt == KEEL_BOOL) return f.template operator()<uint8_t>();
  const bool is_float = (dt & 255) == 2 || (dt & 255) == 4;
  return is_float ? VisitFloats(dt, f) : VisitInts(dt, f);
}
// For ops that only move elements: the type depends on the element size alone.
template <class F>
decltype(auto) VisitSize(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      Throw(KEEL_UNIMPLEMENTED, "elements of " + std::to_string(bytes) + " bytes");
  }
}

// f16 and bf16 are computed in f32; all other dtypes in themselves.
template <class T>
struct ComputeOf {
  using Type = T;
};
template <>
struct ComputeOf<F16> {
  using Type = float;
};
template <>
struct ComputeOf<BF16> {
  using Type = float;
};
template <class T>
using Compute = typename ComputeOf<T>::Type;

// Whether an impl serves a node; not if that cannot be read.
template <bool (*F)(const Node&)>
int32_t Match(keel_dev, const keel_host* host, const keel_node* node) {
  try {
    return F(Node{host, node});
  } catch (...) {
    return 0;
  }
}

// One row of a table of impls.
constexpr keel_impl Impl(const char* op, const char* name, decltype(keel_impl::prepare) prepare,
                         uint32_t flags = 0, const char* types = nullptr, int32_t priority = 0,
                         decltype(keel_impl::match) match = nullptr) {
  return {op, 1, 1, types, name, priority, flags, match, prepare, nullptr};
}

// Calls f(n), with the usual numbers as compile-time constants, so that loops of so many or with such a step
// are unrolled and vectorised. Always inlined, so that f is inlined in the loops of a SIMD level, too.
template <int64_t... kUsual, class F>
[[gnu::always_inline]] inline void WithUsual(int64_t n, F&& f) {
  const bool is_usual = ((n == kUsual && (f(std::integral_constant<int64_t, kUsual>()), true)) || ...);
  if (!is_usual) f(n);
}

// Prepares a copy of 4-byte elements between two layouts of these dims, given by their strides
// (shape/permute.cc).
keel_rc KeepLayoutCopy(Dims dims, Dims from, Dims to, keel_launch* launch);

// Prepares the column sums of an f32 matrix (reduce/reduce.cc).
keel_rc KeepColumnSums(int64_t rows, int64_t columns, keel_launch* launch);

using Impls = std::span<const keel_impl>;
Impls ElementwiseImpls();
Impls UnaryImpls();
Impls SelectImpls();
Impls CastImpls();
Impls StorageImpls();
Impls ShapeImpls();
Impls PermuteImpls();
Impls GatherImpls();
Impls ScatterImpls();
Impls ReduceImpls();
Impls ArgImpls();
Impls TopKImpls();
Impls SuppressImpls();
Impls TreeImpls();
Impls DftImpls();
Impls NormImpls();
Impls MatmulImpls();
Impls Int8Impls();
Impls BlockImpls();
Impls ConvImpls();
Impls ConvIntegerImpls();
Impls ConvGradImpls();
Impls ConvLoopImpls();
Impls LinearAlgebraImpls();
Impls PoolImpls();
Impls RandomImpls();
Impls RegionImpls();
Impls AllImpls();  // all families, joined in plugin.cc
Impls MapImpls();
Impls MapReduceImpls();
Impls ChainImpls();
Impls WhileImpls();
Impls RecurrentImpls();
Impls AttentionImpls();

}  // namespace keel_cpu
