// lengths.cc: see lengths.h.
#include "plugins/onnx/ops/lengths.h"

#include <optional>

namespace onnx_import {
namespace {

// The elements, up to symbols; null: a run has them.
std::optional<Dims> known_lengths(Call& c, size_t operand) {
  if (const Sizes* sizes = c.known(operand)) return sizes->v;
  const Data* d = c.e.data(c.value(operand));
  if (!d) return std::nullopt;
  Dims list(static_cast<size_t>(d->count()));
  for (size_t i = 0; i < list.size(); i++)
    if (!integer_at(*d, static_cast<int64_t>(i), &list[i]) || KEEL_DIM_IS_HANDLE(list[i]))
      return std::nullopt;
  return list;
}

}  // namespace

Term checked_lengths(Call& c, size_t operand, keel_dt dtype, keel_dim batch, keel_dim steps) {
  Edit& e = c.e;
  const std::string what = cat("sequence_lens ('", c.value(operand).name, "')");
  const Dims dims = c.dims(operand);
  if (c.dtype(operand) != dtype || dims.size() != 1 || !e.may_be(dims[0], batch))
    c.invalid(cat(what, " is ", e.type(c.value(operand)), "; expected ", e.type_text(dtype, {batch})));
  const std::optional<Dims> known = known_lengths(c, operand);
  bool sure = known.has_value();
  for (size_t i = 0; known && i < known->size(); i++) {
    const keel_dim length = (*known)[i];
    const int32_t order = e.compare(length, steps);
    if (order == KEEL_GREATER || e.compare(length, 0) == KEEL_LESS)
      c.invalid(cat(what, " has ", e.text(length), " at index ", i, "; expected lengths from 0 to ",
                    e.text(steps), ", the sequence's"));
    sure = sure && order != KEEL_UNCERTAIN && e.at_least(length, 0);
  }
  const Term lengths = Term(c, operand).to(KEEL_I64);
  if (sure) return lengths;
  // A wrong length is an index that does not exist; the node's name is part of the message.
  const Term all = counting_term(e, e.add(steps, 1), KEEL_I64);
  return {e, e.op("gather", {all.v, lengths.v}, Attrs().i("axis", 0), cat(c.title(), ": ", what))};
}

}  // namespace onnx_import
