// strings.cc: see strings.h; and StringConcat, with the operators that take strings as well as numbers.
#include "plugins/onnx/ops/strings.h"

namespace onnx_import {

Strings::Strings(Call& c, size_t i) : e_(&c.e) {
  if (!holds_strings(c, i))
    c.invalid(cat("operand ", i, c.has(i) ? cat(" is ", dtype_name(c.dtype(i))) : " is missing",
                  "; expected a tensor of strings"));
  value_ = c.inputs()[i];
}

Term Strings::spread(const Term& of_rows) const {
  Dims dims = of_rows.dims();
  if (!value_->rows_in_order) return of_rows.gather(Term(*e_, e_->id(*value_)), 0);
  const Dims own = this->dims();
  dims.erase(dims.begin());
  dims.insert(dims.begin(), own.begin(), own.end());
  return of_rows.reshape(dims);
}

ValueP Strings::spread_rows(const Term& rows) const {
  auto made = std::make_shared<Value>(*value_);
  made->table = std::make_shared<Value>();
  made->table->id = rows.v;
  made->bytes = KEEL_NO_VALUE;
  return made;
}

Term byte_counts(const Term& bytes) {
  return bytes.op("not_equal", 0).to(KEEL_I64).sum({static_cast<int64_t>(bytes.rank()) - 1});
}

Term fitted(const Term& bytes, keel_dim width) {
  Edit& e = bytes.edit();
  const size_t last = bytes.rank() - 1;
  const keel_dim all = e.max(bytes.dim(last), width);
  const Term wide(e, widened(e, bytes.v, all));
  return e.is(all, width) ? wide : wide.slice(last, 0, width);
}

Term same_bytes(const Term& a, const Term& b) {
  Edit& e = a.edit();
  const keel_dim width = e.max(a.dims().back(), b.dims().back());
  const Term same = fitted(a, width) == fitted(b, width);
  return same.reduced("reduce_min", {static_cast<int64_t>(same.rank()) - 1});
}

void give_strings(Call& c, size_t k, const Term& bytes) { c.set(k, strings_value(c.e, bytes.v)); }

void give_words(Call& c, size_t k, const Words& words, const Term& places) {
  auto made = std::make_shared<Value>();
  made->id = places.v;
  made->table = table_of(words, c.title());
  c.set(k, std::move(made));
}

Words words_of(Call& c, const char* list, const char* tensor) {
  const Attribute* a = c.attribute(tensor);
  if (!a || !a->tensor) return c.strings(list);
  return words_in(*a->tensor);
}

void concat_strings(Call& c) {
  const int64_t axis = c.axis(c.required("axis"), c.rank(0));
  const Joined all = joined(c, c.inputs());
  c.set(0, c.e.op("concat", all.indices, Attrs().i("axis", axis)));
  c.out.at(0)->table = all.table;
}

void where_strings(Call& c) {
  c.value(1), c.value(2);  // refuses a missing operand
  const Joined both = joined(c, {c.inputs()[1], c.inputs()[2]});
  c.set(0, c.e.op("select", {c.in(0), both.indices[0], both.indices[1]}));
  c.out.at(0)->table = both.table;
}

void equal_strings(Call& c) {
  const Term a = Strings(c, 0).bytes(), b = Strings(c, 1).bytes();
  c.set(0, same_bytes(a, b).v);
}

namespace {

// The bytes of the second string follow the last byte of the first.
void string_concat(Call& c) {
  const Strings first(c, 0), second(c, 1);
  Term a = first.bytes(), b = second.bytes();
  Edit& e = c.e;
  Dims dims = broadcast(e, first.dims(), second.dims());
  const keel_dim left = a.dims().back(), right = b.dims().back(), width = e.add(left, right);
  const auto with = [&](keel_dim last) {
    Dims all = dims;
    all.push_back(last);
    return all;
  };
  a = a.broadcast(with(left)), b = b.broadcast(with(right));
  const auto rank = static_cast<int64_t>(dims.size());
  const Term at = counting_term(e, width, KEEL_I64), end = byte_counts(a).unsqueeze(dims.size());
  const Term index = (at - end).clamp(at.n(0), at.size(right));
  const Term after =
      fitted(b, e.add(right, 1)).op("gather_elements", index, Attrs().i("axis", rank));  // beyond the end: 0
  give_strings(c, 0, select(at < end, fitted(a, width), after));
}

constexpr Rule kRules[] = {
    {"StringConcat", 20, string_concat, "", 0, false, false, true},
};

}  // namespace

Rules string_rules() { return kRules; }

}  // namespace onnx_import
