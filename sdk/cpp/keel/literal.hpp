// literal.hpp: numbers and nested lists of numbers: 2, 0.5, {{1, 2}, {3, 4}}.
//
// How to read it: a Literal is weak: it has a shape and values, but takes the dtype of the tensor it is
// combined with. Its default is i32 (i64 for a wider C++ type), f32 if a number is floating-point, or bool.
#ifndef KEEL_LITERAL_HPP
#define KEEL_LITERAL_HPP
#include <cmath>
#include <initializer_list>
#include <ranges>
#include <string>
#include <vector>

#include "array.hpp"
#include "scalar.hpp"

namespace keel {

template <class T>
concept Number = std::is_arithmetic_v<T>;

class Literal;

namespace detail {

// A range of numbers, or of such ranges.
template <class T>
constexpr bool holds_numbers() {
  if constexpr (requires { typename T::is_no_range; }) {
    return false;
  } else if constexpr (Number<T> || std::same_as<T, Literal>) {
    return true;
  } else if constexpr (std::convertible_to<const T&, std::string_view> ||
                       !std::ranges::input_range<const T>) {
    return false;
  } else {
    using Inner = std::ranges::range_value_t<const T>;
    if constexpr (std::same_as<Inner, T>)  // rows of a tensor are tensors
      return false;
    else
      return holds_numbers<Inner>();
  }
}
template <class T>
concept NumberRange = !Number<T> && !std::same_as<T, Literal> && holds_numbers<T>();

// A contiguous range of numbers of one C++ type. (is_no_range keeps compilers from instantiating the row
// iterator of Tensor during overload resolution of its constructors.)
template <class R>
concept Elements = (!requires { typename R::is_no_range; }) &&
                   std::ranges::contiguous_range<R>&& Number<std::ranges::range_value_t<R>>;

/// One weak number.
struct Weak {
  enum Kind : uint8_t { kBool, kI32, kI64, kFloat };
  Kind kind = kI32;
  int64_t i = 0;
  double f = 0;

  Weak() = default;
  template <Number T>
  Weak(T v)
      : kind(std::is_same_v<T, bool>                       ? kBool
             : std::is_floating_point_v<T>                 ? kFloat
             : sizeof(T) * 8 + std::is_unsigned_v<T> <= 32 ? kI32
                                                           : kI64),
        i(std::is_floating_point_v<T> ? 0 : static_cast<int64_t>(v)),
        f(static_cast<double>(v)) {}

  std::string text() const {
    if (kind == kBool) return i ? "true" : "false";
    if (kind != kFloat) return std::to_string(i);
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", f);
    std::string out = digits;
    return out.find_first_of(".einEIN") == std::string::npos ? out + "." : out;
  }
  std::string name() const { return kind == kBool ? "bool" : kind == kFloat ? "a float" : "an integer"; }

  /// The code of the number in a storage dtype: rounded and saturated, as cast does, but whole numbers must
  /// fit.
  uint8_t code(keel_dt dtype) const {
    const bool whole = is_storage_integer(dtype);
    if (kind == kBool || (kind == kFloat && whole)) refuse(dtype);
    const uint8_t code = storage_code(dtype, kind == kFloat ? f : static_cast<double>(i), !whole);
    if (whole && storage_value(dtype, code) != static_cast<double>(i)) does_not_fit(dtype);
    return code;
  }

  [[noreturn]] void refuse(keel_dt dtype) const {
    throw Error(
        KEEL_INVALID,
        "the literal " + text() + " is " + name() + ", the other operand " + std::string(dtype_name(dtype)),
        "cast the tensor, as in keel::cast(x, KEEL_F32), or write a literal of its kind");
  }
  [[noreturn]] void does_not_fit(keel_dt dtype) const {
    throw Error(KEEL_INVALID, "the literal " + text() + " does not fit in " + std::string(dtype_name(dtype)));
  }

  /// Stores the number as an element of a dtype; Error KEEL_INVALID with a hint if it does not fit.
  void store(keel_dt dtype, void* to) const {
    const DtypeRow* row = find_dtype(dtype);
    char want = row ? row->kind : '?';
    if ((want == 'b') != (kind == kBool) || (kind == kFloat && want != 'f')) refuse(dtype);
    visit(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        if (!std::in_range<T>(i)) does_not_fit(dtype);
      T v;
      if constexpr (is_floating<T>)
        v = T(f);
      else
        v = static_cast<T>(i);
      std::memcpy(to, &v, sizeof v);
    });
  }
};

}  // namespace detail

class Literal {
 public:
  Literal() : dims_{0} {}
  template <Number T>
  Literal(T v) : values_{detail::Weak(v)} {}
  /// Rows of equal shape; Error KEEL_INVALID otherwise.
  Literal(std::initializer_list<Literal> rows) { stack(rows); }
  template <detail::NumberRange R>
  Literal(const R& range) {
    std::vector<Literal> rows;
    for (const auto& row : range) rows.emplace_back(static_cast<std::ranges::range_value_t<R>>(row));
    stack(rows);
  }

  /// Values in row-major order; as many as `shape` has elements.
  static Literal of(std::vector<int64_t> shape, std::vector<detail::Weak> values) {
    Literal out;
    out.dims_ = std::move(shape);
    out.values_ = std::move(values);
    return out;
  }

  const std::vector<int64_t>& shape() const { return dims_; }
  /// The default dtype.
  keel_dt dtype() const {
    static constexpr keel_dt kOwn[] = {KEEL_BOOL, KEEL_I32, KEEL_I64, KEEL_F32};
    return kOwn[kind()];
  }
  detail::Weak::Kind kind() const {
    detail::Weak::Kind kind = values_.empty() ? detail::Weak::kFloat : detail::Weak::kBool;
    for (const detail::Weak& v : values_) kind = std::max(kind, v.kind);
    return kind;
  }
  /// A new array of that dtype; Error KEEL_INVALID for a value that does not fit.
  Array to_array(keel_context* context, keel_dt dtype) const {
    keel_array* out = nullptr;
    call(keel_array_new, context, dtype, dims_.data(), static_cast<int32_t>(dims_.size()), &out);
    Array array(out);
    bool all_bool = kind() == detail::Weak::kBool;
    int64_t at = 0;
    for (detail::Weak v : values_) {
      if (v.kind == detail::Weak::kBool && !all_bool) v.kind = detail::Weak::kI32;  // {true, 2} are numbers
      if (is_storage(dtype))
        store_code(dtype, array.data(), at, v.code(dtype));
      else
        v.store(dtype, static_cast<char*>(array.data()) + at * dtype_size(dtype));
      at++;
    }
    return array;
  }

 private:
  template <class Rows>
  void stack(const Rows& rows) {
    dims_ = {static_cast<int64_t>(rows.size())};
    const Literal* first = nullptr;
    for (const Literal& row : rows) {
      if (!first) {
        first = &row;
        dims_.insert(dims_.end(), row.dims_.begin(), row.dims_.end());
      } else if (row.dims_ != first->dims_) {
        throw Error(KEEL_INVALID,
                    "rows of a literal differ in shape: " + text(first->dims_) + " and " + text(row.dims_));
      }
      values_.insert(values_.end(), row.values_.begin(), row.values_.end());
    }
  }
  static std::string text(const std::vector<int64_t>& dims) {
    std::string out;
    for (int64_t d : dims) out += (out.empty() ? "" : ", ") + std::to_string(d);
    return "[" + out + "]";
  }
  std::vector<int64_t> dims_;
  std::vector<detail::Weak> values_;
};

}  // namespace keel
#endif
