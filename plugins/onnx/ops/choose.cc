// choose.cc: the elements that a condition chooses, whose number only a run knows: NonZero, Compress, Unique,
// NonMaxSuppression.
#include <algorithm>
#include <cmath>

#include "plugins/onnx/ops/loop.h"
#include "plugins/onnx/ops/strings.h"

namespace onnx_import {
namespace {

// The places of the true elements of a bool[n]: i64[m].
Term true_places(const Term& mask) {
  const Term found = mask.op("nonzero");
  return found.reshape({found.dim(1)});
}

Term flattened(const Term& x) { return x.reshape({x.edit().product(x.dims())}); }

void nonzero(Call& c) {
  if (c.rank(0) == 0) c.unsupported("its operand has no dims");
  c.done("nonzero", {c.in(0)});
}

void compress(Call& c) {
  Term x(c, 0);
  const bool flat = !c.has_attribute("axis");
  const int64_t axis = flat ? 0 : c.axis(c.i("axis", 0), c.rank(0));
  if (flat) x = flattened(x);
  c.done("gather", {x.v, true_places(Term(c, 1)).v}, Attrs().i("axis", axis));
}

// The different entries of an operand in order: the first place of each, its number for each entry, and how
// often it occurs.
struct Different {
  Term first, inverse, counts;
};

Different different_numbers(const Term& x) {
  Edit& e = x.edit();
  const Ids found = e.ops("unique", {x.v}, {}, 4);
  return {Term(e, found[1]), Term(e, found[2]), Term(e, found[3])};
}

// The slices x[:, i] of x[m, n] in lexicographic order: stable sorts by their elements, from the last to the
// first.
Different different_slices(const Term& x) {
  Edit& e = x.edit();
  const keel_dim n = x.dim(1);
  const Term places = counting_term(e, n, KEEL_I64);
  const auto body = [](const Terms& carried, const Terms&, const Terms& scanned) {
    const Term& order = carried[0];
    return Terms{order.gather(scanned[0].gather(order, 0).op("argsort"), 0)};
  };
  const Term order =
      scan(e, {.carried = {places}, .invariants = {}, .scanned = {x}, .reverse = true}, body)[0];
  const Term values = x.gather(order, 1), before = values.gather(places.op("sub", 1).op("maximum", 0), 1);
  const Term is_new = places.op("equal", 0) | values.op("not_equal", before).reduced("reduce_max", {0});
  const Term group = is_new.to(KEEL_I64).op("cumsum") - 1, first = order.gather(true_places(is_new), 0);
  return {first, order.op("scatter_add", group, Attrs().dim("size", n)),
          group.op("scatter_add", filled(e, KEEL_I64, 1, {n}), Attrs().dim("size", first.dim(0)))};
}

// x with `axis` behind all other dims, which are one: [m, n].
Term slices(const Term& x, int64_t axis) {
  Ints to = counting(0, static_cast<int64_t>(x.rank()));
  to.erase(to.begin() + axis);
  to.push_back(axis);
  const auto at = static_cast<size_t>(axis);
  const keel_dim n = x.dim(at), m = x.edit().product(without(x.dims(), at));
  return x.transpose(to).reshape({m, n});
}

// Strings are in the order of their bytes.
Term byte_columns(Call& c, bool flat, int64_t axis) {
  const Term bytes = Strings(c, 0).bytes();
  return flat ? slices(bytes.reshape({c.e.product(c.dims(0)), bytes.dims().back()}), 0) : slices(bytes, axis);
}

// With sorted=0 the different entries are in the order of their first occurrences.
void unique(Call& c) {
  const bool flat = !c.has_attribute("axis");
  const Term x = flat ? flattened(Term(c, 0)) : Term(c, 0);
  const int64_t axis = c.axis(c.i("axis", 0), static_cast<int64_t>(x.rank()));
  auto [first, inverse, counts] =
      holds_strings(c, 0) ? different_slices(byte_columns(c, flat, axis))
      : x.rank() == 1     ? different_numbers(x)
                          : different_slices(slices(x.dtype() == KEEL_BOOL ? x.to(KEEL_U8) : x, axis));
  if (!c.i("sorted", 1)) {
    const Term turn = first.op("argsort");
    first = first.gather(turn, 0);
    inverse = turn.op("argsort").gather(inverse, 0);
    counts = counts.gather(turn, 0);
  }
  c.done("gather", {x.v, first.v}, Attrs().i("axis", axis));
  if (c.out[0]) c.out[0]->table = c.value(0).table;
  const Term* results[] = {&first, &inverse, &counts};
  for (size_t i = 0; i < 3; i++)
    if (c.wants(i + 1)) c.set(i + 1, results[i]->v);
}

// Optional operand i, one number.
Term number_or(Call& c, size_t i, keel_dt dtype, double otherwise) {
  if (!c.has(i)) return {c.e, c.e.scalar(dtype, otherwise)};
  const Term x(c, i);
  const Dims dims = x.dims();
  if (dims.size() > 1 || (dims.size() == 1 && !c.e.may_be(dims[0], 1)))
    c.invalid(cat("operand ", i, " has ", dims.size(), " dims; expected one number"));
  if (x.dtype() != dtype)
    c.invalid(cat("operand ", i, " is ", dtype_name(x.dtype()), "; expected ", dtype_name(dtype)));
  return x.reshape({});
}

void check_threshold(Call& c) {
  constexpr Text kExpected = "expected a number from 0 to 1";
  double known = 0;
  if (!c.has(3)) return;
  if (stored_number(c, 3, &known)) {
    if (!(known >= 0 && known <= 1)) c.invalid(cat("iou_threshold is ", known, "; ", kExpected));
    return;
  }
  const Term fed = number_or(c, 3, KEEL_F32, 0);
  (fed == fed.clamp(0, 1)).demand(cat(c.title(), ": iou_threshold; ", kExpected), {fed.v});
}

void check_boxes(Call& c, const Dims& boxes, const Dims& scores) {
  const auto may_be = [&](keel_dim a, keel_dim b) { return c.e.may_be(a, b); };
  if (boxes.size() != 3) c.invalid(cat("boxes has ", boxes.size(), " dims; expected [batches, boxes, 4]"));
  if (scores.size() != 3)
    c.invalid(cat("scores has ", scores.size(), " dims; expected [batches, classes, boxes]"));
  if (!may_be(boxes[2], 4)) c.invalid("the last dim of boxes is not 4");
  if (!may_be(boxes[0], scores[0])) c.invalid("boxes and scores have different numbers of batches");
  if (!may_be(boxes[1], scores[2])) c.invalid("boxes and scores have different numbers of boxes");
  check_threshold(c);
}

// The op takes NaN for no limit of the scores; in ONNX no score is above it.
Term lowest_score(Call& c) {
  const Term low = number_or(c, 4, KEEL_F32, NAN);
  return c.has(4) ? select(low == low, low, INFINITY) : low;
}

void non_max_suppression(Call& c) {
  const int64_t centers = c.i("center_point_box", 0);
  if (centers != 0 && centers != 1) c.invalid(cat("center_point_box is ", centers, "; expected 0 or 1"));
  const Dims scores = c.dims(1);
  check_boxes(c, c.dims(0), scores);
  const Term boxes = Term(c, 0).reshape({scores[0], scores[2], 4}), most = number_or(c, 2, KEEL_I64, 0);
  double limit = 0;
  keel_dim size = scores[2];
  if (!c.has(2) || stored_number(c, 2, &limit))
    size = c.e.min(size, static_cast<int64_t>(std::clamp(limit, 0.0, 1e15)));
  const Ids found = c.e.ops("non_max_suppression",
                            {boxes.v, c.in(1), most.v, number_or(c, 3, KEEL_F32, 0).v, lowest_score(c).v},
                            Attrs().dim("size", size).flag("center", centers == 1), 2);
  c.done("trim", found);
}

constexpr Rule kRules[] = {
    {"NonZero", 9, nonzero},
    {"Compress", 9, compress, "axis", 0, true},
    {"Unique", 11, unique, "axis sorted", 0, false, false, true},
    {"NonMaxSuppression", 10, non_max_suppression, "center_point_box"},
};

}  // namespace

Rules choose_rules() { return kRules; }

}  // namespace onnx_import
