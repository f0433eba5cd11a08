// tensor.hpp: Tensor, the value type of programs: concrete (numbers) or symbolic (in a trace).
//
//   keel::Tensor x = {{1.f, 2.f}, {3.f, 4.f}}, b = 5.5;   // f32[2, 2], f32[]; ints are i32, bools bool
//   keel::Tensor y = x * x + 1;                           // 1 takes the dtype of x * x
//   std::cout << y[0] << y[{keel::all, -1}];              // [2. 5.] [ 5. 17.]
//   for (keel::Tensor row : y) ...
//
// How to read it: constructors, properties, access. Tensors are immutable and share their data when copied.
// Operators are in operators.hpp, all other ops in ops.hpp, indexing in index.hpp, printing in format.hpp.
#ifndef KEEL_TENSOR_HPP
#define KEEL_TENSOR_HPP
#include <cstring>
#include <iterator>
#include <ranges>
#include <string>
#include <vector>

#include "dim.hpp"
#include "literal.hpp"
#include "scope.hpp"

namespace keel {

class Index;
class Operand;

/// Copies are cheap and thread-safe; concrete tensors may be used from any thread, symbolic ones belong to
/// the thread that writes their trace.
class Tensor {
 public:
  using is_no_range = void;  // its elements are tensors, not numbers
  Tensor() = default;
  explicit Tensor(Array array) : array_(std::move(array)) {}
  template <Number T>
  Tensor(T v) : Tensor(Literal(v)) {}
  Tensor(std::initializer_list<Literal> rows) : Tensor(Literal(rows)) {}
  explicit Tensor(const Literal& literal)
      : Tensor(literal.to_array(detail::here().context(), literal.dtype())) {}
  /// One dim, with the dtype of the range's type: std::vector<double> becomes f64. Copies the values.
  template <detail::Elements R>
  explicit Tensor(const R& values) : Tensor(values, {static_cast<int64_t>(std::ranges::size(values))}) {}
  /// Row-major values of that shape; Error KEEL_INVALID unless their numbers agree.
  template <detail::Elements R>
  Tensor(const R& values, std::vector<int64_t> shape) {
    using T = std::ranges::range_value_t<R>;
    keel_array* out = nullptr;
    call(keel_array_new, detail::here().context(), dtype_of<T>, shape.data(),
         static_cast<int32_t>(shape.size()), &out);
    array_ = Array(out);
    if (static_cast<size_t>(array_.size()) != std::ranges::size(values))
      throw Error(KEEL_INVALID, "got " + std::to_string(std::ranges::size(values)) + " values for " +
                                    type_text(array_.tensor()));
    if (size()) std::memcpy(array_.data(), std::ranges::data(values), array_.bytes());
  }

  const Array& array() const { return array_; }
  keel_array* get() const { return array_.get(); }
  bool empty() const { return !array_; }  // made by Tensor()
  /// A value of a trace: it has a dtype and dims (-1: unknown), but no elements.
  bool symbolic() const { return keel_array_symbolic(get()) != 0; }
  keel_dt dtype() const { return need().dtype(); }
  std::span<const int64_t> shape() const { return need().shape(); }
  int64_t ndim() const { return static_cast<int64_t>(shape().size()); }
  /// Number of elements; in a trace as Dim::number().
  int64_t size() const {
    if (std::ranges::all_of(shape(), [](int64_t d) { return d >= 0; })) return need().size();
    Dim all = 1;
    for (int64_t d = 0; d < ndim(); d++) all = all * dim(d);
    return all.number();
  }
  /// The size of an axis (-1: the last), known or symbolic.
  Dim dim(int64_t axis) const {
    keel_text* out = nullptr;
    call(keel_array_dim, need().get(), axis, &out);
    return Dim::parse(take_text(out));
  }
  /// "f32[2, 3]".
  std::string type() const { return type_text(need().tensor()); }
  /// "cuda:0"; "" for host memory.
  std::string device() const { return keel_array_device(need().get()); }
  /// A copy on a device, or with "" in host memory; the same tensor if it is already there.
  Tensor to(const std::string& name) const {
    keel_array* out = nullptr;
    call(keel_array_to, detail::here().context(), need().get(), name.empty() ? nullptr : name.c_str(), &out);
    return Tensor(Array(out));
  }

  /// The elements in row-major order, copied; Error KEEL_INVALID unless T is the C++ type of the dtype.
  template <class T>
  std::vector<T> values() const {
    Array here = rows();  // keeps a copy from a device alive
    std::span<T> all = here.template values<T>();
    return {all.begin(), all.end()};
  }
  /// The only element, converted to T; Error KEEL_INVALID if there are more or none.
  template <Number T>
  T item() const {
    Array here = rows();
    if (here.size() != 1)
      throw Error(KEEL_INVALID,
                  "item() of a tensor with " + std::to_string(here.size()) + " elements, " + type(),
                  "reduce it first, as with keel::reduce_max(t), or pick one: t[{0, 1}]");
    T out{};
    const PlainElements elements(here);
    visit(elements.dtype(), [&](auto tag) {
      typename decltype(tag)::type v;
      std::memcpy(&v, elements.data(), sizeof v);
      out = static_cast<T>(v);
    });
    return out;
  }
  /// `if (t > 0)`, `double d{t}`: item().
  template <Number T>
  explicit operator T() const {
    return item<T>();
  }
  /// The tensor in host memory, contiguous; Error KEEL_PRECONDITION with a hint for a symbolic tensor.
  Array rows() const {
    if (symbolic())
      throw Error(KEEL_PRECONDITION,
                  "a tensor of a trace has no value yet: " + type() +
                      " cannot be read, printed or used in an `if` of C++",
                  "use keel::select(p, a, b) or keel::cond(); or run the function eagerly "
                  "to inspect values");
    Array here = device().empty() ? need() : to("").array_;
    if (here.contiguous()) return here;
    keel_tensor view = here.tensor();
    keel_array* out = nullptr;
    call(keel_array_from_tensor, detail::here().context(), &view, nullptr, nullptr, &out);
    return Array(out);
  }

  /// See index.hpp: t[1], t[-1], t[keel::Slice{0, 2}], t[{keel::all, 3}], t[other].
  Tensor operator[](const Index& index) const;
  Tensor operator[](std::initializer_list<Index> indices) const;
  /// Iterates over the first dim: for (keel::Tensor row : t).
  class Row;
  Row begin() const;
  Row end() const;

  Tensor& operator+=(const Operand& b);
  Tensor& operator-=(const Operand& b);
  Tensor& operator*=(const Operand& b);
  Tensor& operator/=(const Operand& b);

 private:
  const Array& need() const {
    if (!array_) throw Error(KEEL_INVALID, "an empty Tensor, made by Tensor(), has no type and no value");
    return array_;
  }
  Array array_;
};

class Tensor::Row {
 public:
  using is_no_range = void;
  using iterator_category = std::input_iterator_tag;
  using value_type = Tensor;
  using difference_type = std::ptrdiff_t;
  Row() = default;
  Row(Tensor of, int64_t at) : of_(std::move(of)), at_(at) {}
  Tensor operator*() const;
  Row& operator++() {
    at_++;
    return *this;
  }
  Row operator++(int) {
    Row before = *this;
    at_++;
    return before;
  }
  friend bool operator==(const Row& a, const Row& b) { return a.at_ == b.at_; }

 private:
  Tensor of_;
  int64_t at_ = 0;
};

/// A literal with an explicit dtype: keel::f64({{1, 2}, {3, 4}}), keel::i64(7), keel::tensor(7, KEEL_U8).
inline Tensor tensor(const Literal& v, keel_dt dtype) {
  return Tensor(v.to_array(detail::here().context(), dtype));
}
inline Tensor i32(const Literal& v) { return tensor(v, KEEL_I32); }
inline Tensor i64(const Literal& v) { return tensor(v, KEEL_I64); }
inline Tensor f32(const Literal& v) { return tensor(v, KEEL_F32); }
inline Tensor f64(const Literal& v) { return tensor(v, KEEL_F64); }
/// Equal dtype, shape and bytes: NaN equals NaN, 0.0 differs from -0.0.
inline bool same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !std::ranges::equal(a.shape(), b.shape())) return false;
  Array x = a.rows(), y = b.rows();
  return x.size() == 0 || std::memcmp(x.data(), y.data(), x.bytes()) == 0;
}

}  // namespace keel
#endif
