// coupling.cc: see coupling.h. The second method of Wu, Lin and Weng (Probability estimates for multi-class
// classification by pairwise coupling, 2004), with libsvm's limits: the p that minimises p' Q p, found by
// rounds over the classes. Each row stops by itself, so a row's result does not depend on the others.
#include "plugins/onnx/ops/coupling.h"

#include "plugins/onnx/ops/classes.h"
#include "plugins/onnx/ops/loop.h"

namespace onnx_import {
namespace {

constexpr int64_t kRounds = 100;
constexpr double kError = 0.005;  // divided by the number of classes: where rounds end

// [n, classes, classes]: entry i, j is the probability of i against j, 0 on the diagonal.
Term square(const Term& pairs, int64_t k) {
  const int64_t count = k * (k - 1) / 2, zero = 2 * count;  // columns: pairs, the opposite of pairs, zero
  Ints from(static_cast<size_t>(k * k), zero);
  for (int64_t i = 0, pair = 0; i < k; i++)
    for (int64_t j = i + 1; j < k; j++, pair++) {
      from[static_cast<size_t>(i * k + j)] = pair;
      from[static_cast<size_t>(j * k + i)] = count + pair;
    }
  Edit& e = pairs.edit();
  const keel_dim n = pairs.dim(0);
  const Term columns = concat({pairs, 1.0 - pairs, filled(e, pairs.dtype(), 0, {n, 1})}, 1);
  return columns.gather(constant_of(e, from), 1).reshape({n, k, k});
}

Term matrix_q(const Term& r, int64_t k) {
  Edit& e = r.edit();
  const Term diagonal = counting_term(e, {k, k}, 0, KEEL_I64) == counting_term(e, {k, k}, 1, KEEL_I64);
  return select(diagonal, (r * r).sum({1}, true), -(r * r.transpose({0, 2, 1})));
}

// One round of a row's p: [n, k]; q: [n, k, k].
Terms coupling_round(const Term& p, const Term& going, const Term& q, int64_t k) {
  const keel_dim n = p.dim(0);
  Term qp = q.op("matmul", p.unsqueeze(2)).reshape({n, k});
  Term sum = (p * qp).sum({1}, true);
  const Term error = (qp - sum).op("abs").reduced("reduce_max", {1}, true);
  const Term goes = going & (error < kError / static_cast<double>(k)).op("logical_not");
  Term next = p;
  for (int64_t i = 0; i < k; i++) {
    const Term row = q.slice(1, i, i + 1).reshape({n, k}), own = row.slice(1, i, i + 1);
    const Term step = (sum - qp.slice(1, i, i + 1)) / own, grown = step + 1;
    sum = (sum + step * (step * own + qp.slice(1, i, i + 1) * 2)) / grown / grown;
    qp = (qp + step * row) / grown;
    const Term at = counting_term(p.edit(), {1, k}, 1, KEEL_I64) == static_cast<double>(i);
    next = (next + select(at, step, 0.0)) / grown;
  }
  return {select(goes, next, p), goes};
}

}  // namespace

Term coupled(const Term& pairs, int64_t classes) {
  Edit& e = pairs.edit();
  const keel_dim n = pairs.dim(0);
  const Term q = matrix_q(square(pairs, classes), classes);
  const Term even = filled(e, pairs.dtype(), 1.0 / static_cast<double>(classes), {n, classes});
  ScanOperands in;
  in.carried = {even, filled(e, KEEL_BOOL, 1, {n, 1})};
  in.invariants = {q};
  in.scanned = {counting_term(e, kRounds, KEEL_I64)};
  return scan(e, in, [&](const Terms& carried, const Terms& invariants, const Terms&) {
    return coupling_round(carried[0], carried[1], invariants[0], classes);
  })[0];
}

}  // namespace onnx_import
