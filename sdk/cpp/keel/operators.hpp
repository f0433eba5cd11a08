// operators.hpp: operands, apply(), through which all ops run, and the operators.
//
// How to read it: Operand is a tensor, a weak literal or nothing, with the caller's source position;
// detail::apply() chooses the literals' dtypes, binds the op (once) and calls keel_apply, which runs it or,
// if an operand is symbolic, adds a node. Errors name the op, the types of the operands and the position.
#ifndef KEEL_OPERATORS_HPP
#define KEEL_OPERATORS_HPP
#include <atomic>

#include "ints.hpp"
#include "tensor.hpp"

namespace keel {

/// An omitted optional operand.
struct None {};
inline constexpr None none;

/// An argument of an op: a tensor (borrowed for the call), number, nested list, size or none. The conversions
/// are implicit; `where` is filled in by the compiler.
class Operand {
 public:
  Operand(const Tensor& t, const Place& where = Place::current()) : array_(t.get()), where_(where) {
    if (!array_) [[unlikely]]
      refuse();
  }
  template <Number T>
  Operand(T v, const Place& where = Place::current()) : kind_(kScalar), scalar_(v), where_(where) {}
  Operand(std::initializer_list<Literal> v, const Place& where = Place::current())
      : Operand(Literal(v), where) {}
  template <detail::NumberRange R>
  Operand(const R& v, const Place& where = Place::current()) : Operand(Literal(v), where) {}
  Operand(const Literal& v, const Place& where = Place::current())
      : kind_(kList), extra_(std::make_unique<Extra>(v)), where_(where) {}
  /// A size is a literal: an integer with the value that it has in the run.
  Operand(const Dim& v, const Place& where = Place::current())
      : kind_(v.symbolic() ? kSize : kScalar), where_(where) {
    if (v.symbolic())
      extra_ = std::make_unique<Extra>(Literal(), v);
    else if (std::in_range<int32_t>(v.number()))
      scalar_ = static_cast<int32_t>(v.number());
    else
      scalar_ = v.number();
  }
  /// A floating-point literal computed from sizes by the trace, in f64.
  static Operand computed(const Tensor& f64, const Place& where = Place::current()) {
    Operand out(none_, where);
    out.kind_ = kComputed;
    out.extra_ = std::make_unique<Extra>(Literal(), 0, f64);
    return out;
  }
  /// A class with its own conversion to Tensor.
  template <class T>
  requires(std::is_class_v<T> && !detail::NumberRange<T> && std::convertible_to<const T&, Tensor>)
      Operand(const T& t, const Place& where = Place::current())
      : own_(Tensor(t).array()), where_(where) {
    array_ = own_.get();
  }
  Operand(None, const Place& where = Place::current()) : kind_(kNone), where_(where) {}

  /// Whether it is a literal, without a dtype of its own.
  bool weak() const { return !array_ && kind_ != kNone; }
  keel_array* get() const { return array_; }
  const Place& where() const { return where_; }
  /// "f32[2, 3]", or the literal, for messages.
  std::string type() const {
    if (array_) {
      keel_tensor view;
      keel_array_tensor(array_, &view);
      return type_text(view);
    }
    if (kind_ == kSize) return "the size " + extra_->size.text();
    return kind_ == kNone     ? "none"
           : kind_ == kScalar ? scalar_.text()
           : kind_ == kList   ? "a literal list"
                              : "a literal";
  }
  detail::Weak::Kind kind() const {
    if (kind_ == kSize || kind_ == kComputed)
      return kind_ == kSize ? detail::Weak::kI32 : detail::Weak::kFloat;
    return kind_ == kScalar ? scalar_.kind : extra_->list.kind();
  }
  /// The literal as an array of that dtype; Error KEEL_INVALID if it does not fit.
  Array settle(keel_context* context, keel_dt dtype) const {
    if (kind_ == kList) return extra_->list.to_array(context, dtype);
    if (kind_ != kScalar) return settle_in_trace(context, dtype);
    return number(context, dtype, scalar_);
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(KEEL_INVALID, "an empty Tensor, made by Tensor(), cannot be an operand").within("", where_);
  }
  enum Kind : uint8_t { kTensor, kScalar, kList, kNone, kSize, kComputed };
  struct Extra {
    Extra(Literal list, Dim size = 0, Tensor computed = {})
        : list(std::move(list)), size(std::move(size)), computed(std::move(computed)) {}
    Literal list;
    Dim size;
    Tensor computed;
  };
  static constexpr None none_{};
  static Array number(keel_context* context, keel_dt dtype, const detail::Weak& v) {
    keel_array* out = nullptr;
    call(keel_array_new, context, dtype, static_cast<const int64_t*>(nullptr), 0, &out);
    Array array(out);
    v.store(dtype, array.data());
    return array;
  }
  Array settle_in_trace(keel_context* context, keel_dt dtype) const;
  keel_array* array_ = nullptr;
  Kind kind_ = kTensor;
  detail::Weak scalar_;
  std::unique_ptr<Extra> extra_;
  Array own_;
  Place where_;
};

/// Operands of a variadic op: {a, b, 1}, or a vector of tensors.
class Operands {
 public:
  Operands(std::initializer_list<Operand> list) {
    for (const Operand& o : list) all_.push_back(&o);  // the list outlives the call
  }
  Operands(const std::vector<Tensor>& tensors, const Place& where = Place::current()) {
    own_.reserve(tensors.size());
    for (const Tensor& t : tensors) all_.push_back(&own_.emplace_back(t, where));
  }
  const std::vector<const Operand*>& all() const { return all_; }

 private:
  std::vector<Operand> own_;
  std::vector<const Operand*> all_;
};

namespace detail {

struct In : std::span<const Operand* const> {
  using std::span<const Operand* const>::span;
  In(std::initializer_list<const Operand*> list) : span(list.begin(), list.size()) {}
};

[[noreturn]] inline void fail(OpId id, const Error& error, In in, const Place& where) {
  std::string doing = std::string(info(id).name) + "(";
  for (size_t k = 0; k < in.size(); k++) doing += (k ? ", " : "") + in[k]->type();
  std::string said = error.what();
  for (const std::string& known : {std::string("node 'v0': "), std::string(info(id).name) + ": "})
    if (said.starts_with(known)) said.erase(0, known.size());
  throw error.within(doing + ")", where, &said);
}

inline keel_dt dtype_of_array(const keel_array* array) {
  keel_tensor view;
  keel_array_tensor(array, &view);
  return dtype_pack(view.dtype);
}

/// The dtype of the literal at operand `at`: that of the tensors with the same type variable, else the
/// default.
inline keel_dt literal_dtype(OpId id, In in, size_t at) {
  auto group = [&](size_t k) {
    std::string_view groups = info(id).groups;
    return groups[std::min(k, groups.size() - 1)];
  };
  char mine = group(at);
  if (mine == 'b') return KEEL_BOOL;
  if (mine == 'u') return KEEL_U64;
  Weak::Kind kind = Weak::kBool;
  for (size_t k = 0; k < in.size(); k++) {
    if (group(k) != mine) continue;
    if (in[k]->get()) return dtype_of_array(in[k]->get());
    if (in[k]->weak()) kind = std::max(kind, in[k]->kind());
  }
  static constexpr keel_dt kOwn[] = {KEEL_BOOL, KEEL_I32, KEEL_I64, KEEL_F32};
  return info(id).floats && mine == 'T' ? keel_dt{KEEL_F32} : kOwn[kind];
}

/// Under no_record() stops the gradient through symbolic results, since an outer tape may differentiate the
/// trace.
inline keel_rc cut(std::span<keel_array*> made, keel_error** error) {
  if (!this_tape || this_tape->handle) return KEEL_OK;
  for (keel_array*& array : made) {
    if (!keel_array_symbolic(array)) continue;
    Array open(array);
    keel_array* in = std::exchange(array, nullptr);
    if (keel_rc rc = keel_apply(here().op(OpId::stop_gradient), &in, 1, &array, 1, error); rc != KEEL_OK)
      return rc;
  }
  return KEEL_OK;
}

/// Whether the op becomes a node although no operand is symbolic. While a function is traced every op does,
/// so that values computed from captured arrays are recomputed in each call, and gradients flow through them.
/// In a GraphScope only ops with an effect or with symbolic sizes do.
inline bool belongs_to_trace(OpId id, bool of_its_sizes) {
  return this_trace && (trace_takes_all || of_its_sizes || info(id).effect) && writes();
}
inline keel_rc apply_op(keel_op* op, bool to_trace, keel_array* const* in, size_t n,
                        std::span<keel_array*> out, keel_error** error) {
  auto n_in = static_cast<uint32_t>(n), n_out = static_cast<uint32_t>(out.size());
  if (to_trace) return keel_trace_apply(this_trace, nullptr, op, in, n_in, out.data(), n_out, error);
  if (keel_tape* tape = tape_handle())
    return keel_trace_apply(nullptr, tape, op, in, n_in, out.data(), n_out, error);
  return keel_apply(op, in, n_in, out.data(), n_out, error);
}

/// Whether an op has met an operand in device memory. Until then quick() does not ask each operand where it
/// is.
inline std::atomic<bool> met_device_memory{false};

/// Where an op on these operands runs: in a Scope on its device, otherwise on the device that holds an
/// operand. Nodes of a trace have the current device.
inline Home& home_of(std::span<keel_array* const> in, bool to_trace) {
  Home& home = here();
  if (this_home || to_trace) return home;
  const char* device = "";
  for (size_t k = 0; k < in.size() && !*device; k++) device = keel_array_device(in[k]);
  if (!*device) [[likely]]
    return home;
  for (keel_array* a : in)
    if (keel_array_symbolic(a)) return home;
  met_device_memory.store(true, std::memory_order_relaxed);
  return home.family().at(home.context(), device);
}

/// Any operands and number of results.
inline void apply(OpId id, In in, const Attributes& attributes, std::span<keel_array*> out,
                  const Place& where) {
  keel_rc rc = KEEL_OK;
  keel_error* error = nullptr;
  try {
    std::array<Array, 4> few;
    std::vector<Array> more;
    std::array<keel_array*, 8> arrays;
    std::vector<keel_array*> many;
    if (in.size() > few.size()) more.resize(in.size());
    if (in.size() > arrays.size()) many.resize(in.size());
    std::span<Array> settled = more.empty() ? std::span(few) : std::span(more);
    std::span<keel_array*> raw = many.empty() ? std::span(arrays.data(), in.size()) : std::span(many);
    for (size_t k = 0; k < in.size(); k++) {
      if (in[k]->weak()) settled[k] = in[k]->settle(here().context(), literal_dtype(id, in, k));
      raw[k] = in[k]->weak() ? settled[k].get() : in[k]->get();
    }
    const bool to_trace = belongs_to_trace(id, attributes.symbolic());
    if (this_trace) note_place(this_trace, where);
    keel_op* op = home_of(raw, to_trace).op(id, attributes);
    rc = apply_op(op, to_trace, raw.data(), raw.size(), out, &error);
    if (rc == KEEL_OK) rc = cut(out, &error);
    if (rc != KEEL_OK) throw Error::take(rc, std::exchange(error, nullptr));
  } catch (const Error& e) {
    fail(id, e, in, where);
  }
}

/// The fast path of `a + b`: one result, tensors only, no attributes; else apply().
template <class... Operands>
Tensor quick(OpId id, const Place& where, const Operands&... in) {
  keel_array* out = nullptr;
  if ((... && (in.get() != nullptr)) && (!this_tape || this_tape->handle)) [[likely]] {
    keel_array* raw[] = {in.get()...};
    const bool to_trace = belongs_to_trace(id, false);
    if (this_trace) [[unlikely]]
      note_place(this_trace, where);
    Home& home = met_device_memory.load(std::memory_order_relaxed) ? home_of(raw, to_trace) : here();
    keel_op* op = home.op(id);
    if (apply_op(op, to_trace, raw, sizeof...(in), {&out, 1}, nullptr) == KEEL_OK) [[likely]]
      return Tensor(Array(out));
  }
  const Operand* all[] = {&in...};
  apply(id, In(all), {}, {&out, 1}, where);  // reports the error, too
  return Tensor(Array(out));
}

inline Tensor one(OpId id, In in, const Attributes& attributes, const Place& where) {
  if (attributes.empty() && in.size() == 2) return quick(id, where, *in[0], *in[1]);
  if (attributes.empty() && in.size() == 1) return quick(id, where, *in[0]);
  keel_array* out = nullptr;
  apply(id, in, attributes, {&out, 1}, where);
  return Tensor(Array(out));
}

inline std::vector<Tensor> many(OpId id, In in, size_t results, const Attributes& attributes,
                                const Place& where) {
  std::vector<keel_array*> out(results);
  apply(id, in, attributes, out, where);
  std::vector<Tensor> tensors;
  for (Array& a : take_arrays(out)) tensors.emplace_back(std::move(a));
  return tensors;
}

template <size_t n>
std::array<Tensor, n> several(OpId id, In in, const Attributes& attributes, const Place& where) {
  std::array<keel_array*, n> out{};
  apply(id, in, attributes, out, where);
  std::array<Tensor, n> tensors;
  for (size_t k = 0; k < n; k++) tensors[k] = Tensor(Array(out[k]));
  return tensors;
}

// The logical op for bool, the bitwise op for integers.
inline OpId bits(const Operand& a, const Operand& b, OpId logical, OpId bitwise) {
  keel_array* typed = a.get() ? a.get() : b.get();
  return typed && dtype_of_array(typed) == KEEL_BOOL ? logical : bitwise;
}

}  // namespace detail

// A size becomes a number only for dtypes that might not hold it, so that the range is checked.
inline Array Operand::settle_in_trace(keel_context* context, keel_dt dtype) const {
  const DtypeRow* row = find_dtype(dtype);
  Tensor value = extra_->computed;
  if (kind_ == kSize) {
    if (row->kind == 'b' || (row->kind != 'f' && row->size < 4))
      return number(context, dtype, extra_->size.number());
    detail::Attributes at;
    at.dim("of", extra_->size.handle());
    value = detail::one(OpId::dim, {}, at, where_);
  } else if (row->kind != 'f') {
    throw Error(KEEL_INVALID,
                "a floating-point literal computed from sizes; the other operand is " +
                    std::string(dtype_name(dtype)),
                "cast the tensor, as in keel::cast(x, KEEL_F32), or write a literal of its kind");
  }
  if (value.dtype() == dtype) return value.array();
  Operand operand(value, where_);
  detail::Attributes at;
  at.dtype("to", dtype);
  return detail::one(OpId::cast, {&operand}, at, where_).array();
}

/// A new tensor of zeros on the host. Symbolic sizes make it a node of their trace.
inline Tensor zeros(const Ints& shape, keel_dt dtype = KEEL_F32, const Place& where = Place::current()) {
  if (!shape.sizes.empty()) {
    Tensor zero = tensor(0, dtype);
    Operand operand(zero, where);
    detail::Attributes at;
    detail::ints(at, "dims", KEEL_ATTR_DIMS, Ints(shape.sizes));
    return detail::one(OpId::fill, {&operand}, at, where);
  }
  keel_array* out = nullptr;
  call(keel_array_new, detail::here().context(), dtype, shape.list.data(),
       static_cast<int32_t>(shape.list.size()), &out);
  return Tensor(Array(out));
}

inline Tensor operator+(const Operand& a, const Operand& b) {
  return detail::quick(OpId::add, a.where(), a, b);
}
inline Tensor operator-(const Operand& a, const Operand& b) {
  return detail::quick(OpId::sub, a.where(), a, b);
}
inline Tensor operator*(const Operand& a, const Operand& b) {
  return detail::quick(OpId::mul, a.where(), a, b);
}
inline Tensor operator/(const Operand& a, const Operand& b) {
  return detail::quick(OpId::div, a.where(), a, b);
}
inline Tensor operator%(const Operand& a, const Operand& b) {
  return detail::quick(OpId::mod, a.where(), a, b);
}
inline Tensor operator-(const Operand& x) { return detail::quick(OpId::neg, x.where(), x); }
/// Elementwise; the result is a bool tensor. same() compares whole tensors.
inline Tensor operator<(const Operand& a, const Operand& b) {
  return detail::quick(OpId::less, a.where(), a, b);
}
inline Tensor operator<=(const Operand& a, const Operand& b) {
  return detail::quick(OpId::less_equal, a.where(), a, b);
}
inline Tensor operator>(const Operand& a, const Operand& b) {
  return detail::quick(OpId::greater, a.where(), a, b);
}
inline Tensor operator>=(const Operand& a, const Operand& b) {
  return detail::quick(OpId::greater_equal, a.where(), a, b);
}
inline Tensor operator==(const Operand& a, const Operand& b) {
  return detail::quick(OpId::equal, a.where(), a, b);
}
inline Tensor operator!=(const Operand& a, const Operand& b) {
  return detail::quick(OpId::not_equal, a.where(), a, b);
}
// &, |, ^, ~ are logical for bool, bitwise for integers. !t, t && u and t || u are C++'s, for one element.
inline Tensor operator&(const Operand& a, const Operand& b) {
  return detail::quick(detail::bits(a, b, OpId::logical_and, OpId::bit_and), a.where(), a, b);
}
inline Tensor operator|(const Operand& a, const Operand& b) {
  return detail::quick(detail::bits(a, b, OpId::logical_or, OpId::bit_or), a.where(), a, b);
}
inline Tensor operator^(const Operand& a, const Operand& b) {
  return detail::quick(detail::bits(a, b, OpId::logical_xor, OpId::bit_xor), a.where(), a, b);
}
inline Tensor operator~(const Operand& x) {
  return detail::quick(detail::bits(x, x, OpId::logical_not, OpId::bit_not), x.where(), x);
}

inline Tensor& Tensor::operator+=(const Operand& b) { return *this = Operand(*this, b.where()) + b; }
inline Tensor& Tensor::operator-=(const Operand& b) { return *this = Operand(*this, b.where()) - b; }
inline Tensor& Tensor::operator*=(const Operand& b) { return *this = Operand(*this, b.where()) * b; }
inline Tensor& Tensor::operator/=(const Operand& b) { return *this = Operand(*this, b.where()) / b; }

}  // namespace keel
#endif
