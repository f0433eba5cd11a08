// generate.cc: tensors from attributes and sizes: Constant, ConstantOfShape, Range, EyeLike, OneHot, Trilu.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/onnx/import/named.h"
#include "plugins/onnx/import/text.h"

namespace onnx_import {
namespace {

template <class T>
std::shared_ptr<Data> stored(keel_dt dtype, Ints dims, const std::vector<T>& numbers) {
  auto d = std::make_shared<Data>();
  d->dtype = dtype;
  d->dims = std::move(dims);
  d->own.resize(numbers.size() * sizeof(T));
  if (!numbers.empty()) std::memcpy(d->own.data(), numbers.data(), d->own.size());
  d->bytes = d->own.data();
  d->size = d->own.size();
  return d;
}

void constant(Call& c) {
  auto value = std::make_shared<Value>();
  value->name = c.name;
  const auto length = [](size_t n) { return Ints{static_cast<int64_t>(n)}; };
  if (const Attribute* a = c.attribute("value")) {
    if (!a->tensor) c.invalid("attribute 'value' has no tensor");
    value = tensor_value(*a->tensor, c.name);
  } else if (c.has_attribute("value_float")) {
    value->data = stored<float>(KEEL_F32, {}, {static_cast<float>(c.f("value_float", 0))});
  } else if (c.has_attribute("value_int")) {
    value->data = stored<int64_t>(KEEL_I64, {}, {c.i("value_int", 0)});
  } else if (const Attribute* floats = c.attribute("value_floats")) {
    value->data = stored(KEEL_F32, length(floats->floats.size()), floats->floats);
  } else if (const Attribute* ints = c.attribute("value_ints")) {
    value->data = stored(KEEL_I64, length(ints->ints.size()), ints->ints);
  } else if (c.has_attribute("value_string")) {
    value = words_value({c.s("value_string", "")}, {}, c.title());
  } else if (c.has_attribute("value_strings")) {
    const Words words = c.strings("value_strings");
    value = words_value(words, length(words.size()), c.title());
  } else {
    c.unsupported("a sparse tensor");
  }
  if (c.out.empty()) c.invalid("it has no result");
  value->name = c.name;
  c.out[0] = value;
}

void constant_of_shape(Call& c) {
  Value stored_value;
  const Attribute* a = c.attribute("value");
  if (a && !a->tensor) c.invalid("attribute 'value' has no tensor");
  keel_value v = KEEL_NO_VALUE;
  if (a) {
    stored_value.tensor = a->tensor.get();
    if (c.e.data(stored_value)->count() != 1) c.invalid("attribute value must have one element");
    v = c.e.id(stored_value);
    if (!c.e.dims(v).empty()) v = c.e.reshape(v, {});
  }
  c.done("fill", {a ? v : c.e.scalar(KEEL_F32, 0)}, Attrs().dims("dims", c.list(0)));
}

// The length of a range of stored numbers of any dtype, or of sizes.
keel_dim range_length(Call& c) {
  double start = 0, limit = 0, delta = 0;
  if (is_float(c.dtype(0)) && stored_number(c, 0, &start) && stored_number(c, 1, &limit) &&
      stored_number(c, 2, &delta)) {
    const double count = std::ceil((limit - start) / delta);
    if (!(count < 1e15)) c.invalid("the range has no end");
    return count > 0 ? static_cast<int64_t>(count) : 0;
  }
  const keel_dim from = c.list(0).at(0), to = c.list(1).at(0), step = c.list(2).at(0);
  const bool open = KEEL_DIM_IS_HANDLE(step);
  if (open ? !c.e.at_least(step, 0) : step == 0)
    c.unsupported("the step must be a number other than 0, or a size");
  const bool down = !open && step < 0;
  const keel_dim span = down ? c.e.sub(from, to) : c.e.sub(to, from),
                 width = open ? c.e.max(step, 1) : std::abs(step);
  const keel_dim count = c.e.div(c.e.add(span, c.e.sub(width, 1)), width);
  return c.e.at_least(count, 0) ? count : c.e.max(count, 0);
}

void range(Call& c) {
  const keel_dt dtype = c.dtype(0);
  const keel_value at = c.e.cast(c.e.iota(range_length(c), KEEL_I64), dtype);
  const Sizes *start = c.known(0), *delta = c.known(2);
  const bool from_zero = start && start->v.size() == 1 && start->v[0] == 0;
  const bool by_one = delta && delta->v.size() == 1 && delta->v[0] == 1;
  const auto operand = [&](size_t i) { return c.rank(i) ? c.e.reshape(c.in(i), {}) : c.in(i); };
  const keel_value scaled = by_one ? at : c.e.op("mul", {at, operand(2)});
  if (from_zero)
    c.set(0, scaled);
  else
    c.done("add", {scaled, operand(0)});
  if (start && delta && c.e.at_least(start->v.at(0), 0) && c.e.at_least(delta->v.at(0), 0))
    c.out.at(0)->nonneg = true;
}

void eye_like(Call& c) {
  const Dims dims = c.dims(0);
  if (dims.size() != 2) c.invalid("its operand must have 2 dims");
  Edit& e = c.e;
  const auto grid = [&](int64_t axis) {
    return e.op("iota", {}, Attrs().dims("dims", dims).i("axis", axis).dtype("dtype", KEEL_I64));
  };
  const keel_value row = e.op("add", {grid(0), e.scalar(KEEL_I64, static_cast<double>(c.i("k", 0)))});
  c.done("cast", {e.op("equal", {row, grid(1)})}, Attrs().dtype("to", c.type("dtype", c.dtype(0))));
}

void trilu(Call& c) {
  const int64_t k = c.has(1) ? c.numbers(1).at(0) : 0;
  c.done("triangle", {c.in(0)}, Attrs().flag("upper", c.i("upper", 1) != 0).i("k", k));
}

// values[1] at the given indices, values[0] elsewhere; indices may be floats.
void one_hot(Call& c) {
  Edit& e = c.e;
  double stored_depth = 0;
  const bool stored = stored_number(c, 1, &stored_depth);
  const keel_dim depth =
      stored ? static_cast<int64_t>(std::min(std::max(stored_depth, 0.0), 1e15)) : c.list(1).at(0);
  const int64_t axis = c.axis(c.i("axis", -1), c.rank(0) + 1);
  keel_value index = c.in(0);
  if (c.dtype(0) != KEEL_I32) index = e.cast(index, KEEL_I64);
  if (!never_negative(c, 0)) index = negative_index(e, index, e.number(depth, e.dtype(index)));
  const keel_value hot =
      e.op("one_hot", {index}, Attrs().dim("depth", depth).i("axis", axis).dtype("dtype", KEEL_BOOL));
  const Ids values = e.ops("split", {c.in(2)}, Attrs().dims("sizes", {1, 1}).i("axis", 0), 2);
  c.done("select", {hot, e.reshape(values[1], {}), e.reshape(values[0], {})});
}

// In inference, dropout is the identity.
constexpr Rule kRules[] = {
    {"Constant", 1, constant,
     "value value_float value_int value_floats value_ints value_string value_strings"},
    {"ConstantOfShape", 9, constant_of_shape, "value", bit(0)},
    {"Range", 11, range, "", bit(0) | bit(1) | bit(2)},
    {"EyeLike", 9, eye_like, "dtype k"},
    {"Trilu", 14, trilu, "upper", bit(1)},
    {"OneHot", 9, one_hot, "axis", bit(1)},
};

}  // namespace

Rules generate_rules() { return kRules; }

}  // namespace onnx_import
