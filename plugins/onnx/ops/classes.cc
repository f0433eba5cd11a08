// classes.cc: see classes.h.
#include "plugins/onnx/ops/classes.h"

namespace onnx_import {

Term stored(Edit& e, keel_dt dtype, const Ints& dims, const std::vector<double>& numbers) {
  Value value;
  value.data = store(dtype, dims, numbers);
  return Term(e, e.id(value));
}
Term constant_of(Edit& e, keel_dt dtype, const std::vector<double>& numbers) {
  return stored(e, KEEL_F64, {std::ssize(numbers)}, numbers).to(dtype);
}
Term constant_of(Edit& e, keel_dt dtype, const std::vector<float>& numbers) {
  return stored(e, KEEL_F32, {std::ssize(numbers)}, {numbers.begin(), numbers.end()}).to(dtype);
}
Term constant_of(Edit& e, const Ints& numbers) {
  Value value;
  value.data = store({std::ssize(numbers)}, numbers);
  return {e, e.id(value)};
}

Labels class_labels(Call& c, const char* integers) {
  Labels labels = {c.ints(integers), c.strings("classlabels_strings")};
  if (!labels.numbers.empty() && !labels.words.empty())
    c.invalid(cat("it has ", integers, " and classlabels_strings; expected one of them"));
  if (labels.size() < 2) c.unsupported(cat(labels.size(), " class labels; expected two or more"));
  return labels;
}

void give_labels(Call& c, const Labels& labels, const Term& scores) {
  const Term best = scores.op("arg_max", Attrs().i("axis", 1));
  if (!labels.words.empty()) return give_words(c, 0, labels.words, best);
  c.set(0, constant_of(c.e, labels.numbers).gather(best, 0).v);
}

std::string transform_of(Call& c) {
  std::string after = c.s("post_transform", "NONE");
  if (after != "NONE" && after != "SOFTMAX" && after != "LOGISTIC")
    c.unsupported(cat("post_transform '", after, "'; expected NONE, SOFTMAX or LOGISTIC"));
  return after;
}

Term transformed(Call& c, const Term& scores) {
  const std::string after = transform_of(c);
  return after == "NONE" ? scores : scores.op(after == "SOFTMAX" ? "softmax" : "sigmoid");
}

}  // namespace onnx_import
