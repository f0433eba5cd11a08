// suppress.cc: NonMaxSuppression: of boxes that overlap, those with the highest scores.
//
// In each row (a class of a batch) the candidates are sorted by score. A round of the loop selects the first
// live candidate of every row and ends the life of the candidates that overlap it. The rows are cut to the
// most candidates that one of them has, which only a run knows.
#include <limits>

#include "plugins/onnx/ops/choose.h"
#include "plugins/onnx/ops/loop.h"

namespace onnx_import {
namespace {

constexpr int64_t kCorners = 4, kParts = 5;  // two ends on each of two axes; and the area

struct Problem {
  Term boxes, scores, most, overlap;
  keel_dim batches, classes, n, rows;  // rows: batches * classes
  bool centers;
};

// Operand i, which is optional, as a scalar.
Term number_or(Call& c, size_t i, keel_dt dtype) {
  if (!c.has(i)) return {c.e, c.e.scalar(dtype, 0)};
  const Term x(c, i);
  const Dims dims = x.dims();
  if (dims.size() > 1 || (dims.size() == 1 && !c.e.may_be(dims[0], 1)))
    c.invalid(cat("operand ", i, " has ", dims.size(), " dims; expected one number"));
  if (x.dtype() != dtype)
    c.invalid(cat("operand ", i, " is ", dtype_name(x.dtype()), "; expected ", dtype_name(dtype)));
  return x.reshape({});
}

Problem problem(Call& c) {
  const int64_t centers = c.i("center_point_box", 0);
  if (centers != 0 && centers != 1) c.invalid(cat("center_point_box is ", centers, "; expected 0 or 1"));
  const Dims b = c.dims(0), s = c.dims(1);
  if (b.size() != 3) c.invalid(cat("boxes has ", b.size(), " dims; expected [batches, boxes, 4]"));
  if (s.size() != 3) c.invalid(cat("scores has ", s.size(), " dims; expected [batches, classes, boxes]"));
  if (!c.e.may_be(b[2], kCorners)) c.invalid("the last dim of boxes is not 4");
  if (!c.e.may_be(b[0], s[0])) c.invalid("boxes and scores have different numbers of batches");
  if (!c.e.may_be(b[1], s[2])) c.invalid("boxes and scores have different numbers of boxes");
  double overlap = 0;
  if (stored_number(c, 3, &overlap) && !(overlap >= 0 && overlap <= 1))
    c.invalid(cat("iou_threshold is ", overlap, "; expected a number from 0 to 1"));
  const Term scores(c, 1);
  return {Term(c, 0).to(KEEL_F32).reshape({s[0], s[2], kCorners}),
          scores.to(KEEL_F32),
          number_or(c, 2, KEEL_I64),
          number_or(c, 3, KEEL_F32),
          s[0],
          s[1],
          s[2],
          c.e.mul(s[0], s[1]),
          centers == 1};
}

// The lower and upper ends of boxes[..., 4] along both axes, and their areas: [..., 5].
Term corners(const Problem& p) {
  const auto column = [&](int64_t k) { return p.boxes.slice(2, k, k + 1); };
  std::vector<Term> low, high;
  for (int64_t k = 0; k < 2; k++) {
    const Term a = column(k), b = column(k + 2);
    const Term half = b / 2.0;
    low.push_back(p.centers ? a - half : a.op("minimum", b));
    high.push_back(p.centers ? a + half : a.op("maximum", b));
  }
  const Term area = (high[0] - low[0]) * (high[1] - low[1]);
  return concat({low[0], low[1], high[0], high[1], area}, 2);
}

struct Candidates {
  Term order, live;  // [rows, k]: the index of each box; whether it is a candidate
};

// The candidates of each row in the order of their scores. NaN is none.
Candidates candidates(Call& c, const Problem& p) {
  Edit& e = c.e;
  const Term scores = p.scores.reshape({p.rows, p.n});
  const bool cut = c.has(4);
  const Term chosen = cut ? scores.op("greater", number_or(c, 4, KEEL_F32)) : scores == scores;
  const Term counts = chosen.to(KEEL_I64).sum({1}, true);
  keel_dim k = p.n;
  if (cut) {
    const Term most = counts.reduced("reduce_max", {0, 1}).op("maximum", 0.0);  // of no rows it is negative
    k = counting_term(e, p.n, KEEL_I32).op("trim", most).dim(0);
  }
  const Term key = select(chosen, scores, -std::numeric_limits<double>::infinity());
  const Term order(e, e.ops("top_k", {key.v}, Attrs().dim("k", k), 2)[1]);
  return {order, chosen.op("gather_elements", order, Attrs().i("axis", 1))};
}

// The first live candidate of each row, [rows, 1]; k if there is none.
Term first_live(const Term& live) {
  const Term place = counting_term(live.edit(), live.dims(), 1, KEEL_I32);
  return select(live, place, place.size(live.dim(1))).reduced("reduce_min", {1}, true);
}

// Which of boxes[..., 5] overlap those of other by more than a limit; broadcasts.
Term overlaps(const Term& boxes, const Term& other, const Term& limit) {
  const auto part = [](const Term& b, int64_t k) {
    return b.slice(b.rank() - 1, k, k + 1).reshape(without(b.dims(), b.rank() - 1));
  };
  const auto shared = [&](int64_t axis) {
    const Term high = part(boxes, axis + 2).op("minimum", part(other, axis + 2));
    return (high - part(boxes, axis).op("maximum", part(other, axis))).op("maximum", 0.0);
  };
  const Term common = shared(0) * shared(1);
  return (common > 0) & (common / (part(boxes, 4) + part(other, 4) - common)).op("greater", limit);
}

keel_attr graph_of(Edit& e, const Terms& state, const Terms& fixed,
                   const std::function<Terms(const Terms&)>& body) {
  keel_attr graph = {KEEL_ATTR_GRAPH, 0, 0, 0, nullptr};
  Edit inner = e.new_graph(&graph.i);
  Terms in;
  for (const Terms* list : {&state, &fixed})
    for (const Term& t : *list) in.emplace_back(inner, inner.param(cat("p", in.size()), t.dtype(), t.dims()));
  for (size_t k = 0; const Term& y : body(in)) inner.result(cat("y", k++), y.v);
  return graph;
}

// The live candidates that no selected one overlaps, in rounds: bool[rows, k]. boxes: f32[rows, k, 5].
Term selected(const Problem& p, const Term& live, const Term& boxes) {
  Edit& e = live.edit();
  const Dims dims = live.dims();
  const Terms state = {live, filled(e, KEEL_BOOL, 0, dims), first_live(live), Term(e, e.scalar(KEEL_I64, 0))};
  const Terms fixed = {boxes, p.overlap, p.most};
  const auto test = [&](const Terms& in) {
    const Term first = in[2].reduced("reduce_min", {0, 1});
    return Terms{(first < first.size(dims[1])) & (in[3] < in[6])};
  };
  const auto body = [&](const Terms& in) {
    const Term &live = in[0], &next = in[2], &boxes = in[4];
    Edit& b = live.edit();
    const Term row = counting_term(b, {dims[0], 1}, 0, KEEL_I64) * Term(b, b.number(dims[1], KEEL_I64));
    const Term at = row + next.op("minimum", next.size(dims[1]) - 1).to(KEEL_I64);
    const Term box = boxes.reshape({b.mul(dims[0], dims[1]), kParts}).gather(at, 0);
    const Term hit = counting_term(b, dims, 1, KEEL_I32) == next;
    const Term left = live & (hit | overlaps(boxes, box, in[5])).op("logical_not");
    return Terms{left, in[1] | hit, first_live(left), in[3] + 1};
  };
  const keel_attr test_graph = graph_of(e, state, fixed, test), body_graph = graph_of(e, state, fixed, body);
  Ids in;
  for (const Terms* list : {&state, &fixed})
    for (const Term& t : *list) in.push_back(t.v);
  const auto carry = static_cast<uint32_t>(state.size());
  return {e, e.ops("while", in, Attrs().as("test", test_graph).as("body", body_graph).i("carry", carry),
                   carry)[1]};
}

// The boxes in the order of the candidates: f32[rows, k, 5]
Term ordered(const Problem& p, const Term& order) {
  Edit& e = order.edit();
  const Term rows = counting_term(e, {p.rows, 1}, 0, KEEL_I64);
  const Term batch = rows / rows.size(p.classes);
  const Term at = batch * rows.size(p.n) + order;
  return corners(p).reshape({e.mul(p.batches, p.n), kParts}).gather(at, 0);
}

void non_max_suppression(Call& c) {
  const Problem p = problem(c);
  const Candidates of = candidates(c, p);
  const Term keep = selected(p, of.live, ordered(p, of.order));
  const Term at = true_places(flattened(keep)), k = at.size(keep.dim(1));
  const Term box = flattened(of.order).gather(at, 0), row = at / k, classes = at.size(p.classes);
  const auto column = [](const Term& x) { return x.unsqueeze(1).v; };
  c.done("concat", {column(row / classes), column(row.op("mod", classes)), column(box)},
         Attrs().i("axis", 1));
}

constexpr Rule kRules[] = {
    {"NonMaxSuppression", 10, non_max_suppression, "center_point_box"},
};

}  // namespace

Rules suppress_rules() { return kRules; }

}  // namespace onnx_import
