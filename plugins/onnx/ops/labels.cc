// labels.cc: LabelEncoder and CategoryMapper: the value of a key, both numbers or strings.
#include <cmath>

#include "plugins/onnx/ops/classes.h"
#include "plugins/onnx/ops/strings.h"

namespace onnx_import {
namespace {

// Names of the attributes that have one of the lists.
struct Names {
  const char *tensor, *floats, *ints, *strings;
};
constexpr Names kKeys = {"keys_tensor", "keys_floats", "keys_int64s", "keys_strings"};
constexpr Names kValues = {"values_tensor", "values_floats", "values_int64s", "values_strings"};

const Tensor* tensor_in(Call& c, const char* name) {
  const Attribute* a = c.attribute(name);
  return a ? a->tensor.get() : nullptr;
}

bool are_strings(Call& c, const Names& names) {
  const Tensor* t = tensor_in(c, names.tensor);
  return t ? t->type == kString : c.has_attribute(names.strings);
}

Term numbers_of(Call& c, const Names& names) {
  if (const Tensor* t = tensor_in(c, names.tensor)) {
    Value value;
    value.tensor = t;
    return Term(c.e, c.e.id(value)).reshape({-1});
  }
  if (c.has_attribute(names.floats)) return constant_of(c.e, KEEL_F32, c.floats(names.floats));
  if (c.has_attribute(names.ints)) return constant_of(c.e, c.ints(names.ints));
  c.invalid(cat("attributes ", names.tensor, ", ", names.floats, ", ", names.ints, " and ", names.strings,
                " are missing"));
}

// i64 keys as a list, to search; empty: others.
Ints listed_keys(Call& c) {
  if (!tensor_in(c, kKeys.tensor)) return c.has_attribute(kKeys.floats) ? Ints() : c.ints(kKeys.ints);
  Value value;
  value.tensor = tensor_in(c, kKeys.tensor);
  const Data& d = *c.e.data(value);
  Ints list;
  int64_t number = 0;
  for (int64_t i = 0; d.dtype == KEEL_I64 && i < d.count() && integer_at(d, i, &number); i++)
    list.push_back(number);
  return list;
}

// The place of the first equal key, or -1. Floats are compared with all keys; NaN equals NaN.
Term place_of_number(Call& c, const Term& x) {
  const Term keys = numbers_of(c, kKeys);
  if (keys.dtype() != x.dtype())
    c.invalid(cat("its operand is ", dtype_name(x.dtype()), " but its keys are ", dtype_name(keys.dtype())));
  if (const Ints list = listed_keys(c); !list.empty()) return places_of(x, list);
  const Term column = x.unsqueeze(x.rank());
  Term hit = column == keys;
  if (is_float(x.dtype())) hit = hit | (column.op("is_nan") & keys.op("is_nan"));
  const auto last = static_cast<int64_t>(x.rank());
  const Term place = hit.to(KEEL_I32).op("arg_max", Attrs().i("axis", last));
  return select(hit.reduced("reduce_max", {last}), place, -1.0);
}

struct Places {
  Term places;  // i64, of the operand's elements
  int64_t keys;
};

Places places_of_keys(Call& c) {
  if (!are_strings(c, kKeys)) {
    if (holds_strings(c, 0)) c.invalid("its operand holds strings, but its keys are numbers");
    const Dims keys = numbers_of(c, kKeys).dims();
    return {place_of_number(c, Term(c, 0)), keys[0]};
  }
  const Words keys = words_of(c, kKeys.strings, kKeys.tensor);
  const Strings x(c, 0);
  return {x.spread(Vocabulary(c.e, keys, cat(c.title(), ": the list of keys")).places(x.rows())),
          std::ssize(keys)};
}

Term default_number(Call& c, keel_dt dtype) {
  if (const Tensor* t = tensor_in(c, "default_tensor")) {
    Value value;
    value.tensor = t;
    return Term(c.e, c.e.id(value)).reshape({}).to(dtype);
  }
  const double number =
      is_float(dtype) ? c.f("default_float", -0.0) : static_cast<double>(c.i("default_int64", -1));
  return {c.e, c.e.scalar(dtype, number)};
}

std::string default_word(Call& c) {
  const Tensor* t = tensor_in(c, "default_tensor");
  if (!t) return c.s("default_string", "_Unused");
  if (t->type != kString) c.invalid("default_tensor has numbers, but the values are strings");
  const Words words = words_in(*t);
  if (words.size() != 1) c.invalid(cat("default_tensor has ", words.size(), " strings; expected one"));
  return words[0];
}

// The word at a place, or for -1 another one.
void give_word_or(Call& c, const Term& place, Words words, const std::string& otherwise) {
  const auto last = static_cast<double>(words.size());
  words.push_back(otherwise);
  give_words(c, 0, words, select(place < 0, last, place));
}

void expect_as_many(Call& c, int64_t keys, int64_t values) {
  if (keys != values) c.invalid(cat("it has ", keys, " keys and ", values, " values"));
}

// Version 1: a class's place for the class, or the reverse.
void encode_classes(Call& c) {
  const Words classes = c.strings("classes_strings");
  const auto count = static_cast<double>(classes.size());
  if (!holds_strings(c, 0)) {
    const Term x = Term(c, 0).to(KEEL_I64);
    return give_word_or(c, select((x < 0) | x.op("greater_equal", count), -1.0, x), classes,
                        c.s("default_string", "_Unused"));
  }
  const Strings x(c, 0);
  const Term place = Vocabulary(c.e, classes, cat(c.title(), ": classes_strings")).places(x.rows());
  c.set(0, x.spread(select(place < 0, static_cast<double>(c.i("default_int64", -1)), place)).v);
}

void label_encoder(Call& c) {
  if (c.has_attribute("classes_strings")) return encode_classes(c);
  const auto [place, keys] = places_of_keys(c);
  if (are_strings(c, kValues)) {
    const Words values = words_of(c, kValues.strings, kValues.tensor);
    expect_as_many(c, keys, std::ssize(values));
    return give_word_or(c, place, values, default_word(c));
  }
  const Term values = numbers_of(c, kValues);
  expect_as_many(c, keys, values.dim(0));
  if (const Tensor* t = tensor_in(c, "default_tensor"); t && t->type == kString)
    c.invalid("default_tensor has strings, but the values are numbers");
  const Term found = values.gather(place.op("maximum", 0), 0);
  c.set(0, select(place < 0, default_number(c, values.dtype()), found).v);
}

void category_mapper(Call& c) {
  const Words words = c.strings("cats_strings");
  const Ints numbers = c.ints("cats_int64s");
  expect_as_many(c, std::ssize(words), std::ssize(numbers));
  if (words.empty()) c.invalid("cats_strings is missing or empty");
  if (!holds_strings(c, 0)) {
    const Term place = places_of(Term(c, 0).to(KEEL_I64), numbers);
    return give_word_or(c, place, words, c.s("default_string", "_Unused"));
  }
  const Strings x(c, 0);
  const Term place = Vocabulary(c.e, words, cat(c.title(), ": cats_strings")).places(x.rows());
  const Term found = constant_of(c.e, numbers).gather(place.op("maximum", 0), 0);
  c.set(0, x.spread(select(place < 0, static_cast<double>(c.i("default_int64", -1)), found)).v);
}

#define ML "ai.onnx.ml."
constexpr Rule kRules[] = {
    {ML "LabelEncoder", 1, label_encoder,
     "classes_strings default_float default_int64 default_string default_tensor keys_floats keys_int64s "
     "keys_strings "
     "keys_tensor values_floats values_int64s values_strings values_tensor",
     0, false, false, true},
    {ML "CategoryMapper", 1, category_mapper, "cats_int64s cats_strings default_int64 default_string", 0,
     false, false, true},
};

}  // namespace

Rules label_rules() { return kRules; }

}  // namespace onnx_import
