// forms.h: sequences and optionals, which exist only while importing: a list of values whose length is known,
// and a value that is there or absent. Operators on them move values and add no nodes.
#pragma once
#include "plugins/onnx/import/call.h"

namespace onnx_import {

constexpr int64_t kMostElements = 4096;  // of one sequence: as many as the operands of an op

inline ValueP list_value(std::vector<ValueP> elements, keel_dt dtype) {
  auto value = std::make_shared<Value>();
  value->list = std::make_shared<const List>(List{std::move(elements), dtype});
  return value;
}
// Of a sequence's elements, by ONNX's number.
inline keel_dt elements_dtype(int64_t type, const std::string& what) {
  return type == kString ? kStrings : dtype_of(type, what);
}
inline ValueP sizes_value(Sizes sizes) {
  auto value = std::make_shared<Value>();
  value->sizes = std::move(sizes);
  return value;
}
inline ValueP absent_value() {
  auto value = std::make_shared<Value>();
  value->absent = true;
  return value;
}

// "a sequence of 2", for messages and comparisons.
std::string form_of(const Value& v);
void expect_tensor(Call& c, size_t i);  // refuses a sequence or an absent optional as operand i
const List& list_of(Call& c, size_t i);

// Calls `work` for each tensor of a value, in order; of strings for the indices and then the table.
template <class F>
void each_tensor(const ValueP& v, F&& work) {
  if (v->absent) return;
  if (v->list) {
    for (const ValueP& element : v->list->elements) each_tensor(element, work);
    return;
  }
  work(v);
  if (v->table) work(v->table);
}

// A value of the same form, with work(tensor) in place of each tensor.
template <class F>
ValueP rebuilt(const ValueP& v, F&& work) {
  if (v->absent) return v;
  if (!v->list) {
    ValueP made = work(v);
    if (v->table) made->table = work(v->table);
    return made;
  }
  std::vector<ValueP> elements;
  for (const ValueP& element : v->list->elements) elements.push_back(rebuilt(element, work));
  ValueP made = list_value(std::move(elements), v->list->dtype);
  made->name = v->name;
  return made;
}

// Tensors as one: along a new axis, or along an axis that they have.
ValueP stacked(Call& c, const std::vector<ValueP>& parts, int64_t axis);
ValueP concatenated(Call& c, const std::vector<ValueP>& parts, int64_t axis);

}  // namespace onnx_import
