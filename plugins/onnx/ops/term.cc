// term.cc: see term.h.
#include "plugins/onnx/ops/term.h"

namespace onnx_import {

Term Term::slice(size_t axis, keel_dim from, keel_dim until, int64_t step) const {
  Dims start(rank(), 0), stop = dims();
  Ints steps(rank(), 1);
  start.at(axis) = from, stop.at(axis) = until, steps.at(axis) = step;
  return op("slice", Attrs().dims("start", start).dims("stop", stop).ints("step", steps));
}

Term Term::unsqueeze(size_t at) const {
  Dims to = dims();
  to.insert(to.begin() + static_cast<ptrdiff_t>(at), 1);
  return reshape(to);
}

Term counting_term(Edit& e, Dims dims, int64_t axis, keel_dt dtype) {
  return {e, e.op("iota", {}, Attrs().dims("dims", std::move(dims)).i("axis", axis).dtype("dtype", dtype))};
}

Term filled(Edit& e, keel_dt dtype, double number, Dims dims) {
  return {e, e.op("fill", {e.scalar(dtype, number)}, Attrs().dims("dims", std::move(dims)))};
}

Term concat(const std::vector<Term>& parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  Ids ids;
  for (const Term& part : parts) ids.push_back(part.v);
  Edit& e = parts.at(0).edit();
  return {e, e.op("concat", ids, Attrs().i("axis", axis))};
}

Dims without(Dims dims, size_t axis) {
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  return dims;
}

int64_t static_dim(Call& c, keel_dim d, const char* what) {
  if (KEEL_DIM_IS_HANDLE(d)) c.unsupported(cat(what, " is symbolic; give it a number with --dim or --shape"));
  return d;
}

void expect_matrices(Call& c, size_t a, size_t b) {
  if (c.rank(a) < 2 || c.rank(b) < 2)
    c.unsupported("vectors as operands; expected matrices or stacks of them");
}

}  // namespace onnx_import
