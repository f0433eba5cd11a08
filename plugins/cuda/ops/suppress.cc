// suppress.cc: non_max_suppression.
#include "op.h"

namespace keel_cuda {
namespace {

void Suppress(Op& op) {
  const keel_tensor scores = op.In(1);
  const int64_t rows = scores.shape[0] * scores.shape[1], n = scores.shape[2], size = op.Int("size");
  const std::vector<uint32_t> uses = {0,           1, 2, 3, 4, op.Result(0), op.Result(1),
                                      op.Result(2)};  // the last: scratch
  const std::vector<int64_t> numbers = {rows, scores.shape[1],  n,
                                        size, op.Int("center"), op.In(2).dtype.bits / 8};
  op.work.scratch_bytes = sizeof(uint32_t) * static_cast<uint64_t>(rows * (n + 1 + size));
  op.Add("suppress", "suppress_begin", Blocks(std::max<int64_t>(1, rows * std::max(n, 3 * size))), uses,
         numbers);
  op.Add("suppress", "suppress_rounds", Blocks(rows, 1), uses, numbers);
  op.Add("suppress", "suppress_save", Blocks(rows * size), uses, numbers);
}

}  // namespace

Impls SuppressImpls() { return {NumbersRow<Suppress>("non_max_suppression", "block for each class")}; }

}  // namespace keel_cuda
