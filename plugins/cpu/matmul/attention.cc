// attention.cc: softmax(q k' * scale + mask) v as one launch: its impls, and how one is prepared.
// attention_run.cc computes it.
#include "plugins/cpu/matmul/attention.h"

#include <cmath>

#include "plugins/cpu/matmul/attention_state.h"
#include "plugins/cpu/matmul/shape.h"
#include "plugins/cpu/parallel/fetch.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

void ReadMask(const Node& node, Attention* w) {
  const keel_tensor mask = node.In(3), y = node.Out(0);
  int64_t steps[KEEL_MAX_RANK] = {}, step = 1;
  for (int d = mask.ndim - 1; d >= 0; d--) {
    steps[d + y.ndim - mask.ndim] = mask.shape[d] == 1 ? 0 : step;
    step *= mask.shape[d];
  }
  w->mask_row = steps[y.ndim - 2];
  w->mask_column = steps[y.ndim - 1];
  for (int64_t head = 0; head < w->heads; head++) {
    int64_t start = 0;
    for (int64_t d = y.ndim - 3, rest = head; d >= 0; d--) {
      start += rest % y.shape[d] * steps[d];
      rest /= y.shape[d];
    }
    w->mask_start.push_back(start);
  }
}

template <class T>
void FindHidden(const Node& node, Attention* w) {
  const keel_tensor mask = node.In(3);
  HiddenColumns hidden(w->l, w->s, Attention::kRows, w->multiply->panel);
  int64_t last = -1;
  for (int64_t start : w->mask_start)
    if (start != std::exchange(last, start))
      hidden.Add(Mask<T>{static_cast<const T*>(keel_ptr(&mask)) + start, w->mask_row, w->mask_column});
  if (hidden.AreAny()) w->hidden = std::move(hidden);
}

void ReadRows(const Node& node, const AttentionForm& form, Attention* w) {
  const keel_tensor y = node.Out(0);
  const int64_t heads = y.ndim > 2 ? y.shape[y.ndim - 3] : 1;
  const auto rows_of = [&](const AttentionRows& from, int64_t columns) {
    JoinedRows to;
    for (const AttentionRows::Part& p : from.parts)
      to.parts.emplace_back(p.operand, p.turned, heads, p.rows, columns);
    return to;
  };
  w->q = rows_of(form.q, w->d).parts[0];
  w->k = rows_of(form.k, w->d);
  w->v = rows_of(form.v, w->e);
  w->y = HeadRows(0, form.result_turned, heads, w->l, w->e);
  w->mask = form.mask;
}

// The loops for this dtype.
Attention LoopsFor(keel_dt dtype) {
  Attention w = {};
  w.multiply = MatmulLoops(dtype);
  for (int i = 0; i < Norms().n; i++)
    if (Norms().dtypes[i].dtype == dtype) w.norm = &Norms().dtypes[i];
  if (w.multiply == nullptr || w.norm == nullptr)
    Throw(KEEL_UNIMPLEMENTED, "attention has no CPU loop for this dtype");
  return w;
}

// Whether k and v are packed, hidden columns, threads: all that depends on the sizes.
void ChooseWay(const Node& node, Attention* w) {
  w->in_place = w->multiply->dots != nullptr && AreDots(w->l, w->d) &&
                w->l * w->s * std::max(w->d, w->e) <= Attention::kMostInPlace;
  const auto together = [](const HeadRows& rows) { return rows.AreTogether(); };
  w->fetches = w->in_place && w->heads * w->s * (w->d + w->e) * w->multiply->size > FetchedByAttention() &&
               std::all_of(w->k.parts.begin(), w->k.parts.end(), together) &&
               std::all_of(w->v.parts.begin(), w->v.parts.end(), together);
  // Twice the panels and rows of a head: rows of 12x512x64, which do not fit 1 MiB, took 1.02 of the time.
  if (!w->in_place)
    w->fetches = w->d < w->multiply->long_sum && w->k.parts.size() == 1 && w->v.parts.size() == 1 &&
                 6 * w->HeadBytes() <= SecondLevelCache();
  if (node.Has(3) && node.In(3).data != nullptr && !w->in_place && !w->causal)
    w->multiply->size == 4 ? FindHidden<float>(node, w) : FindHidden<double>(node, w);
  w->threads = Budget();
  w->together = w->in_place ? std::max<int64_t>(w->heads, 1) : w->Together();
}

keel_rc PrepareAttention(const Node& node, keel_launch* launch) {
  const keel_tensor q = node.In(0), v = node.In(2);
  const auto operand = [](int i, const keel_tensor& t) {
    return AttentionRows{{{i, t.shape[t.ndim - 2], false}}};
  };
  const AttentionForm form = {operand(0, q), operand(1, v), operand(2, v), node.Has(3) ? 3 : -1, false};
  return KeepAttention(node, form, launch);
}

constexpr keel_impl kImpls[] = {
    Impl("attention", "blocks of rows", Prepare<PrepareAttention>, 0, "T=f32|f64"),
    Impl("call", "attention of rows where they are", Prepare<PrepareAttentionCall>, 0, nullptr, 0,
         Match<IsAttentionCall>)};

}  // namespace

// A panel's columns are known by the distance of rows: a head must end with its last panel.
bool CanTurnResult(const Node& attention) {
  const keel_tensor y = attention.Out(0);
  const MatmulOp* op = MatmulLoops(keel_dt_of(&y));
  return op != nullptr && y.shape[y.ndim - 1] % op->panel == 0;
}

keel_rc KeepAttention(const Node& node, const AttentionForm& form, keel_launch* launch) {
  const keel_tensor q = node.In(0), v = node.In(2), y = node.Out(0);
  Attention w = LoopsFor(keel_dt_of(&q));
  w.heads = Product(y.shape, y.ndim - 2);
  w.l = y.shape[y.ndim - 2];
  w.e = y.shape[y.ndim - 1];
  w.s = v.shape[v.ndim - 2];
  w.d = q.shape[q.ndim - 1];
  ReadRows(node, form, &w);
  w.scale = node.Real("scale");
  if (w.scale == 0) w.scale = 1 / std::sqrt(static_cast<double>(w.d));
  w.causal = node.Flag("causal");
  w.zero_nan = node.Flag("zero_nan");
  if (node.Has(3)) ReadMask(node, &w);
  ChooseWay(node, &w);
  const auto bytes = static_cast<uint64_t>(w.WorkspaceBytes());
  return Keep(launch, std::move(w), RunAttention, bytes);
}

Impls AttentionImpls() { return kImpls; }

}  // namespace keel_cpu
