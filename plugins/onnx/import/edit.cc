// edit.cc: calls into Keel, arithmetic on dims, and materialising values as data.
#include "plugins/onnx/import/edit.h"

#include <cstring>

#include "plugins/onnx/import/failure.h"

namespace onnx_import {
namespace {

// smaller constants are copied, which costs less than keeping a file mapped
constexpr uint64_t kCopyBelow = 256;
constexpr int64_t kMostSizes = 256;  // longer lists of integers are data, not sizes

void drop_mapping(void* arg) { delete static_cast<std::shared_ptr<void>*>(arg); }

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

}  // namespace

void Edit::check(keel_rc rc) const {
  if (rc != KEEL_OK) throw Failure{rc, ""};
}

bool Edit::compute(int32_t op, int64_t a, int64_t b, int64_t* out) {
  bool good = true;
  if (op == KEEL_DIM_ADD)
    good = !__builtin_add_overflow(a, b, out);
  else if (op == KEEL_DIM_SUB)
    good = !__builtin_sub_overflow(a, b, out);
  else if (op == KEEL_DIM_MUL)
    good = !__builtin_mul_overflow(a, b, out);
  else if (op == KEEL_DIM_MAX)
    *out = a > b ? a : b;
  else if (op == KEEL_DIM_MIN)
    *out = a < b ? a : b;
  else if ((good = b != 0))
    *out = floor_div(a, b);
  return good && !KEEL_DIM_IS_HANDLE(*out);
}

keel_dim Edit::math(int32_t op, keel_dim a, keel_dim b) {
  keel_dim out = 0;
  if (!KEEL_DIM_IS_HANDLE(a) && !KEEL_DIM_IS_HANDLE(b)) {
    if (!compute(op, a, b, &out))
      refuse(KEEL_INVALID, cat("size arithmetic overflows or divides by zero: operands ", a, " and ", b));
    return out;
  }
  const bool additive = op == KEEL_DIM_ADD || op == KEEL_DIM_SUB;
  if (b == (additive ? 0 : 1) && op <= KEEL_DIM_FLOORDIV) return a;
  if (op == KEEL_DIM_FLOORDIV && b == 0) refuse(KEEL_INVALID, "size arithmetic divides by zero");
  check(host_->dim_op(edit_, op, a, b, &out));
  return out;
}

keel_dim Edit::product(const Dims& dims, size_t from, size_t to) {
  keel_dim p = 1;
  for (size_t i = from; i < dims.size() && i < to; i++) p = mul(p, dims[i]);
  return p;
}

int32_t Edit::compare(keel_dim a, keel_dim b) {
  if (a == b) return KEEL_EQUAL;
  if (KEEL_DIM_IS_HANDLE(a) || KEEL_DIM_IS_HANDLE(b)) return host_->dim_compare(edit_, a, b);
  return a < b ? KEEL_LESS : KEEL_GREATER;
}

bool Edit::may_be(keel_dim a, keel_dim b) {
  const int32_t order = compare(a, b);
  return order != KEEL_LESS && order != KEEL_GREATER;
}

keel_dim Edit::symbol(const std::string& name) {
  keel_dim out = 0;
  check(host_->dim_symbol(edit_, name.c_str(), &out));
  return out;
}

std::string Edit::text(keel_dim d) const {
  if (!KEEL_DIM_IS_HANDLE(d)) return std::to_string(d);
  const char* made = host_->dim_text(edit_, d);
  return made ? made : "?";
}

std::string Edit::type_text(keel_dt dtype, const Dims& dims) const {
  std::string list;
  for (keel_dim d : dims) list += cat(list.empty() ? "" : ", ", text(d));
  return cat(dtype_name(dtype), "[", list, "]");
}

const char* Edit::unique(const std::string& name) {
  return !name.empty() && names_.insert(name).second ? name.c_str() : nullptr;
}

Ids Edit::ops(const char* op, const Ids& in, const Attrs& attrs, uint32_t n_out, const std::string& name) {
  keel_node_spec spec = {};
  spec.struct_size = sizeof spec;
  spec.op = op;
  spec.name = unique(name);
  spec.in = in.data();
  spec.attr_names = attrs.names().data();
  spec.attrs = attrs.values().data();
  spec.n_in = static_cast<uint32_t>(in.size());
  spec.n_attrs = static_cast<uint32_t>(attrs.names().size());
  Ids outs(n_out, KEEL_NO_VALUE);
  check(host_->add_node(edit_, &spec, outs.data(), n_out));
  return outs;
}

Ids Edit::gradient(keel_value y, const Ids& xs) {
  Ids dxs(xs.size(), KEEL_NO_VALUE);
  check(host_->edit_gradient(edit_, y, xs.data(), static_cast<uint32_t>(xs.size()), dxs.data()));
  return dxs;
}

keel_attr Edit::variable(const std::string& name, uint64_t initial) {
  keel_tensor t = {};
  t.data = &initial;
  t.device = {1, 0};
  t.dtype = {KEEL_U64 & 0xff, KEEL_U64 >> 8 & 0xff, 1};
  uint32_t number = 0;
  check(host_->edit_variable(edit_, cat(name, ".", (*variables_)++).c_str(), &t, &number));
  keel_attr a = {KEEL_ATTR_VAR, 0, 0, 0, nullptr};
  a.i = number;
  return a;
}

namespace {

// Keel names constants without a name c0, c1 ...; a "_" keeps a model's own constant of such a name apart.
std::string apart(const std::string& name) {
  const bool like =
      name.size() > 1 && name[0] == 'c' && name.find_first_not_of("0123456789", 1) == std::string::npos;
  return like ? name + "_" : name;
}

}  // namespace

keel_value Edit::constant(const Data& d, const std::string& name) {
  const std::string own = apart(name);
  keel_tensor t = {};
  std::vector<int64_t> shape = d.dims;
  t.data = const_cast<uint8_t*>(d.bytes);
  t.device = {1, 0};
  t.ndim = static_cast<int32_t>(shape.size());
  t.dtype = {static_cast<uint8_t>(d.dtype & 0xff), static_cast<uint8_t>(d.dtype >> 8 & 0xff), 1};
  t.shape = shape.data();
  const bool aligned = reinterpret_cast<uintptr_t>(d.bytes) % width_of(d.dtype) == 0;
  void (*release)(void*) = nullptr;
  void* arg = nullptr;
  if (aligned && d.size >= kCopyBelow && d.in_source) {
    arg = source_->retain(source_);
    if (!arg) throw std::bad_alloc();
    release = source_->release;
  } else if (aligned && d.size >= kCopyBelow && d.mapping) {
    arg = new std::shared_ptr<void>(d.mapping);
    release = drop_mapping;
  }
  keel_value out = KEEL_NO_VALUE;
  check(host_->constant(edit_, is_body_ ? nullptr : unique(own), &t, release, arg,
                        &out));  // Keel calls release from here on
  return out;
}

keel_value Edit::scalar(keel_dt dtype, double number) {
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  const auto key = std::make_pair(dtype, bits);
  if (const auto found = scalars_.find(key); found != scalars_.end()) return found->second;
  const keel_dt made = dtype == KEEL_F32 ? KEEL_F32 : is_float(dtype) ? KEEL_F64 : KEEL_I64;
  const auto d = store(made, {}, {number});
  return scalars_[key] = cast(constant(*d, ""), dtype);
}

keel_value Edit::number(keel_dim d, keel_dt dtype) {
  if (KEEL_DIM_IS_HANDLE(d)) return op("dim", {}, Attrs().dim("of", d).dtype("dtype", dtype));
  return array({dtype, {}, {d}});
}

keel_value Edit::array(const Sizes& s, const std::string& name) {
  bool numbers = true;
  for (keel_dim d : s.v) {
    numbers = numbers && !KEEL_DIM_IS_HANDLE(d);
    if (d == KEEL_DIM_HANDLES) refuse(KEEL_UNIMPLEMENTED, "size arithmetic has an operand below -2^62");
  }
  if (numbers) {
    Data d;
    d.dtype = KEEL_I64;
    d.dims = s.shape;
    d.size = s.v.size() * sizeof(int64_t);
    d.bytes = reinterpret_cast<const uint8_t*>(s.v.data());
    return s.dtype == KEEL_I64 ? constant(d, name) : cast(constant(d, ""), s.dtype);
  }
  Ids parts;
  for (keel_dim d : s.v) parts.push_back(number(d, s.dtype));
  if (s.shape.empty()) return parts[0];
  for (auto& part : parts) part = reshape(part, {1});
  const keel_value row = parts.size() == 1 ? parts[0] : op("concat", parts, Attrs().i("axis", 0));
  return s.shape.size() == 1 ? row : reshape(row, s.shape);
}

keel_value Edit::param(const std::string& name, keel_dt dtype, const Dims& dims) {
  keel_value out = KEEL_NO_VALUE;
  names_.insert(name);
  check(host_->param(edit_, name.c_str(), dtype, dims.data(), static_cast<int32_t>(dims.size()), &out));
  return out;
}

void Edit::result(const std::string& name, keel_value v) { check(host_->result(edit_, name.c_str(), v)); }
void Edit::metadata(const std::string& key, const std::string& value) {
  check(host_->metadata(edit_, key.c_str(), value.c_str()));
}

Edit Edit::new_graph(int64_t* number) {
  keel_edit* made = nullptr;
  check(host_->edit_new_graph(edit_, cat("body_", ++*graphs_).c_str(), &made, number));
  Edit body(host_, source_, made);
  body.graphs_ = graphs_;
  body.is_body_ = true;
  return body;
}

Dims Edit::dims(keel_value v) {
  keel_tensor t = {};
  check(host_->value_type(edit_, v, &t));
  return t.ndim > 0 ? Dims(t.shape, t.shape + t.ndim) : Dims();
}

keel_dt Edit::dtype(keel_value v) {
  keel_tensor t = {};
  check(host_->value_type(edit_, v, &t));
  return keel_dt_of(&t);
}

const Data* Edit::data(Value& v) {
  if (!v.data && v.tensor) v.data = std::make_shared<Data>(decode(*v.tensor, *source_));
  return v.data.get();
}

const Sizes* Edit::sizes(Value& v) {
  if (v.table) return nullptr;
  if (v.sizes) return &*v.sizes;
  if (v.unsized || !data(v)) return nullptr;
  const Data& d = *v.data;
  const int64_t count = d.count();
  v.unsized = true;
  Sizes s = {d.dtype, d.dims, {}};
  v.nonneg = is_integer(d.dtype);
  for (int64_t i = 0, n = 0; i < count; i++) {
    if (!integer_at(d, i, &n)) return nullptr;
    v.nonneg = v.nonneg && n >= 0;
    if (count <= kMostSizes) s.v.push_back(n < KEEL_DIM_HANDLES ? KEEL_DIM_HANDLES : n);
  }
  const bool whole = d.dtype == KEEL_I64 || d.dtype == KEEL_I32 || d.dtype == KEEL_BOOL;
  if (count > kMostSizes || !whole) return nullptr;
  v.sizes = std::move(s);
  return &*v.sizes;
}

keel_value Edit::id(Value& v) {
  if (v.id != KEEL_NO_VALUE) return v.id;
  if (data(v))
    v.id = constant(*v.data, v.name);
  else if (v.sizes)
    v.id = array(*v.sizes, v.name);
  else if (v.list || v.absent)
    refuse(KEEL_INVALID,
           cat("'", v.name, "' is ", v.list ? "a sequence" : "an absent optional", "; expected a tensor"));
  else
    refuse(KEEL_INTERNAL, cat("value '", v.name, "' has no content"));
  return v.id;
}

Dims Edit::dims(Value& v) {
  if (v.id != KEEL_NO_VALUE) return dims(v.id);
  if (v.sizes) return v.sizes->shape;
  return data(v) ? v.data->dims : dims(id(v));
}

keel_dt Edit::dtype(Value& v) {
  if (v.id != KEEL_NO_VALUE) return dtype(v.id);
  if (v.sizes) return v.sizes->dtype;
  return data(v) ? v.data->dtype : dtype(id(v));
}

}  // namespace onnx_import
