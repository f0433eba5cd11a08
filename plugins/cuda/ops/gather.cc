// gather.cc: gather, gather_elements, gather_nd. An index out of range is stored in the fault bytes.
#include "op.h"

namespace keel_cuda {
namespace {

void Encode(Op& op, const char* kernel, const std::vector<int64_t>& more) {
  const keel_tensor y = op.Out(0), index = op.In(1);
  std::vector<int64_t> numbers = {keel_count(&y), index.dtype.bits / 8};
  numbers.insert(numbers.end(), more.begin(), more.end());
  op.Add("move", kernel + Width(y), Blocks(numbers[0]), {0, 1, op.Result()}, numbers);
}

void Gather(Op& op) {
  const keel_tensor x = op.In(0), index = op.In(1), y = op.Out(0);
  const Lines lines(x, op.Int("axis"));
  int64_t bits = x.dtype.bits, inner = lines.inner, count = keel_count(&y);
  for (; bits < 128 && inner % 2 == 0; bits *= 2) inner /= 2, count /= 2;  // rows as fewer, wider elements
  constexpr int64_t kEach = 4;  // elements of a thread, kernels/move.cu
  op.Add("move", "gather_b" + std::to_string(bits), Blocks(count, kThreads * kEach), {0, 1, op.Result()},
         {count, index.dtype.bits / 8, lines.size, keel_count(&index), inner});
}

void GatherElements(Op& op) {
  const keel_tensor x = op.In(0), index = op.In(1);
  int64_t strides[KEEL_MAX_RANK];
  row_major(x, strides);
  std::vector<int64_t> numbers = {index.ndim, op.Int("axis")};
  numbers.insert(numbers.end(), index.shape, index.shape + index.ndim);
  numbers.insert(numbers.end(), x.shape, x.shape + x.ndim);
  numbers.insert(numbers.end(), strides, strides + x.ndim);
  Encode(op, "gather_elements_", numbers);
}

void GatherRows(Op& op) {
  const keel_tensor x = op.In(0), index = op.In(1);
  const int64_t batch = op.Int("batch"), k = index.shape[index.ndim - 1];
  int64_t strides[KEEL_MAX_RANK];
  row_major(x, strides);
  std::vector<int64_t> numbers = {k, product(index.shape + batch, index.shape + index.ndim - 1),
                                  product(x.shape + batch + k, x.shape + x.ndim),
                                  product(x.shape + batch, x.shape + x.ndim)};
  numbers.insert(numbers.end(), x.shape + batch, x.shape + batch + k);
  numbers.insert(numbers.end(), strides + batch, strides + batch + k);
  Encode(op, "gather_nd_", numbers);
}

}  // namespace

Impls GatherImpls() {
  return {MovementRow<Gather>("gather", "gather"), MovementRow<GatherElements>("gather_elements", "gather"),
          MovementRow<GatherRows>("gather_nd", "gather")};
}

}  // namespace keel_cuda
