// array.hpp: tensors in host memory, and ops applied to them eagerly.
//
// How to read it: Array shares a tensor (copying an Array copies no data); Op is an op with its device and
// attributes bound once, to be applied often.
#ifndef KEEL_ARRAY_HPP
#define KEEL_ARRAY_HPP
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "context.hpp"
#include "dtype.hpp"
#include "storage.hpp"

namespace keel {

/// A reference to a tensor in host or device memory; empty: none. Copies share the data. The reference count
/// is thread-safe; the elements are not guarded.
class Array {
 public:
  Array() = default;
  /// Takes over one reference, which the destructor drops.
  explicit Array(keel_array* take) : p_(take) {}
  Array(const Array& o) : p_(o.p_ ? keel_array_retain(o.p_) : nullptr) {}
  Array(Array&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Array& operator=(Array o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  /// Drops the reference; the data is freed with the last one.
  ~Array() { keel_array_free(p_); }

  /// A new contiguous row-major array of zeros.
  static Array zeros(const Context& context, keel_dt dtype, std::span<const int64_t> shape) {
    keel_array* out = nullptr;
    call(keel_array_new, context.get(), dtype, shape.data(), static_cast<int32_t>(shape.size()), &out);
    return Array(out);
  }
  /// A contiguous copy of a tensor of any strides.
  static Array copy_of(const Context& context, const keel_tensor& tensor) {
    keel_array* out = nullptr;
    call(keel_array_from_tensor, context.get(), &tensor, nullptr, nullptr, &out);
    return Array(out);
  }
  /// A contiguous copy of `values`, row by row; Error KEEL_INVALID unless their number is the number of
  /// elements of `shape`.
  template <class T>
  static Array of(const Context& context, std::span<const int64_t> shape, std::span<const T> values) {
    Array array = zeros(context, dtype_of<T>, shape);
    if (array.size() != static_cast<int64_t>(values.size()))
      throw Error(KEEL_INVALID, std::to_string(values.size()) + " values for a shape of " +
                                    std::to_string(array.size()) + " elements");
    if (!values.empty()) std::memcpy(array.data(), values.data(), values.size_bytes());
    return array;
  }

  explicit operator bool() const { return p_ != nullptr; }
  /// The C object, borrowed; nullptr if empty.
  keel_array* get() const { return p_; }
  /// Gives the reference up to the caller.
  keel_array* release() { return std::exchange(p_, nullptr); }

  /// A view, borrowed: valid while the array lives.
  keel_tensor tensor() const {
    keel_tensor t;
    keel_array_tensor(p_, &t);
    return t;
  }
  keel_dt dtype() const { return dtype_pack(tensor().dtype); }
  std::span<const int64_t> shape() const {
    keel_tensor t = tensor();
    return {t.shape, static_cast<size_t>(t.ndim)};
  }
  /// Number of elements.
  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : shape()) n *= d;
    return n;
  }
  /// Bytes of all elements without gaps.
  size_t bytes() const { return keel_bytes(dtype(), size()); }
  /// The first element; for an array on a device it is memory of the device.
  void* data() const {
    keel_tensor t = tensor();
    return static_cast<char*>(t.data) + t.byte_offset;
  }
  /// Whether the elements are row-major without gaps.
  bool contiguous() const {
    keel_tensor t = tensor();
    int64_t step = 1;
    for (int32_t d = t.ndim - 1; t.strides && d >= 0; d--) {
      if (t.shape[d] != 1 && t.strides[d] != step) return size() == 0;
      step *= t.shape[d];
    }
    return true;
  }
  /// "cuda:0"; "" for host memory.
  std::string device() const { return keel_array_device(p_); }
  /// A copy on a device, or with "" in host memory; the same array if it is already there.
  Array to(const Context& context, const std::string& device) const {
    keel_array* out = nullptr;
    call(keel_array_to, context.get(), p_, device.empty() ? nullptr : device.c_str(), &out);
    return Array(out);
  }
  /// The elements, borrowed; Error KEEL_INVALID unless the array is contiguous and its dtype is that of T,
  /// KEEL_PRECONDITION if it is in the memory of a device.
  template <class T>
  std::span<T> values() const {
    if (!device().empty())
      throw Error(KEEL_PRECONDITION, "values(): the array is in the memory of device " + device(),
                  "copy it to host memory first: array.to(context, \"\")");
    if (dtype() != dtype_of<T> || !contiguous())
      throw Error(KEEL_INVALID, "values(): the array is " + std::string(dtype_name(dtype())) +
                                    ", requested " + std::string(dtype_name(dtype_of<T>)) +
                                    " (the array must be contiguous, too)");
    return {static_cast<T*>(data()), static_cast<size_t>(size())};
  }
  /// The only element; Error KEEL_INVALID if there are more or none.
  template <class T>
  T item() const {
    std::span<T> all = values<T>();
    if (all.size() != 1)
      throw Error(KEEL_INVALID, "item(): the array has " + std::to_string(all.size()) + " elements");
    return all[0];
  }

 private:
  keel_array* p_ = nullptr;
};

/// The elements of a contiguous array in host memory as values of a C++ type (scalar.hpp: visit): in place,
/// or, of a storage dtype, copied to f32 or i32, which hold them exactly. The array must outlive it.
class PlainElements {
 public:
  explicit PlainElements(const Array& array) : dtype_(array.dtype()), data_(array.data()) {
    if (!is_storage(dtype_)) return;
    const bool whole = is_storage_integer(dtype_);
    for (int64_t i = 0; i < array.size(); i++) {
      const double v = storage_element(dtype_, array.data(), i);
      copied_.push_back(whole ? static_cast<uint32_t>(static_cast<int32_t>(v))
                              : std::bit_cast<uint32_t>(static_cast<float>(v)));
    }
    dtype_ = whole ? KEEL_I32 : KEEL_F32;
    data_ = copied_.data();
  }
  PlainElements(const PlainElements&) = delete;
  PlainElements& operator=(const PlainElements&) = delete;
  keel_dt dtype() const { return dtype_; }
  const void* data() const { return data_; }

 private:
  keel_dt dtype_;
  const void* data_;
  std::vector<uint32_t> copied_;
};

/// Raw pointers for a C call, borrowed from `arrays`.
inline std::vector<keel_array*> raw(std::span<const Array> arrays) {
  std::vector<keel_array*> out;
  for (const Array& a : arrays) out.push_back(a.get());
  return out;
}
/// Takes over the references that a C call returned.
inline std::vector<Array> take_arrays(const std::vector<keel_array*>& made) {
  std::vector<Array> out;
  out.reserve(made.size());
  for (keel_array* a : made) out.emplace_back(a);
  return out;
}

/// Named attributes of a node. Names, strings and lists are borrowed: they must outlive the call that reads
/// them.
class Attrs {
 public:
  Attrs& flag(const char* name, bool v) { return add(name, {KEEL_ATTR_BOOL, 0, v, 0, nullptr}); }
  Attrs& i64(const char* name, int64_t v) { return add(name, {KEEL_ATTR_I64, 0, v, 0, nullptr}); }
  Attrs& f64(const char* name, double v) { return add(name, {KEEL_ATTR_F64, 0, 0, v, nullptr}); }
  Attrs& dtype(const char* name, keel_dt v) { return add(name, {KEEL_ATTR_DTYPE, 0, v, 0, nullptr}); }
  /// `number`: Variable::number_in(module, ...) with the module of the node.
  Attrs& variable(const char* name, uint32_t number) {
    return add(name, {KEEL_ATTR_VAR, 0, number, 0, nullptr});
  }
  Attrs& str(const char* name, std::string_view v) {
    return add(name, {KEEL_ATTR_STR, static_cast<uint32_t>(v.size()), 0, 0, v.data()});
  }
  Attrs& i64s(const char* name, std::span<const int64_t> v) {
    return add(name, {KEEL_ATTR_I64S, static_cast<uint32_t>(v.size()), 0, 0, v.data()});
  }
  Attrs& dims(const char* name, std::span<const keel_dim> v) {
    return add(name, {KEEL_ATTR_DIMS, static_cast<uint32_t>(v.size()), 0, 0, v.data()});
  }
  const char* const* names() const { return names_.data(); }
  const keel_attr* data() const { return attrs_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(attrs_.size()); }

 private:
  Attrs& add(const char* name, keel_attr attr) {
    names_.push_back(name);
    attrs_.push_back(attr);
    return *this;
  }
  std::vector<const char*> names_;
  std::vector<keel_attr> attrs_;
};

/// An op of the catalogue bound to a device: Op add(context, "cpu", "add"); add({x, y})[0]. version 0: the
/// newest. Any number of threads may call it at a time.
class Op {
 public:
  Op(const Context& context, const std::string& device, const std::string& op, const Attrs& attrs = {},
     uint32_t version = 0) {
    keel_op* out = nullptr;
    call(keel_op_new, context.get(), device.c_str(), op.c_str(), version, attrs.names(), attrs.data(),
         attrs.size(), &out);
    handle_.reset(out);
  }
  keel_op* get() const { return handle_.get(); }
  /// An empty Array is an omitted optional operand.
  std::vector<Array> operator()(std::initializer_list<Array> in, uint32_t results = 1) const {
    std::vector<keel_array*> ins = raw({in.begin(), in.size()}), outs(results);
    call(keel_apply, handle_.get(), ins.data(), static_cast<uint32_t>(ins.size()), outs.data(), results);
    return take_arrays(outs);
  }

  /// The only result, of operands that are all present; copies no reference: add.one(x, y)
  template <class... Arrays>
  Array one(const Arrays&... in) const {
    keel_array* ins[] = {in.get()...};
    keel_array* out = nullptr;
    call(keel_apply, handle_.get(), ins, static_cast<uint32_t>(sizeof...(in)), &out, 1u);
    return Array(out);
  }

 private:
  Handle<keel_op, keel_op_free> handle_;
};

}  // namespace keel
#endif
