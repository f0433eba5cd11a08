// classes.h: what the operators of ai.onnx.ml share: constant lists, labels of classes, transforms of scores.
#pragma once
#include <algorithm>

#include "plugins/onnx/ops/strings.h"

namespace onnx_import {

// Lists as vectors of constants.
Term constant_of(Edit& e, keel_dt dtype, const std::vector<double>& numbers);
Term constant_of(Edit& e, keel_dt dtype, const std::vector<float>& numbers);
Term constant_of(Edit& e, const Ints& numbers);
// A constant of f32, f64, i32 or i64.
Term stored(Edit& e, keel_dt dtype, const Ints& dims, const std::vector<double>& numbers);

// The labels of at least two classes, integers or strings.
struct Labels {
  Ints numbers;
  Words words;
  size_t size() const { return std::max(numbers.size(), words.size()); }
};
Labels class_labels(Call& c, const char* integers);
// Result 0 of a classifier: the label of the highest score in each row.
void give_labels(Call& c, const Labels& labels, const Term& scores);

// The attribute post_transform; refuses other words than NONE, SOFTMAX and LOGISTIC.
std::string transform_of(Call& c);
Term transformed(Call& c, const Term& scores);

}  // namespace onnx_import
