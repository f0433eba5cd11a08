// lines.cc: ops along one axis: arg_max, arg_min, cumsum, linear_recurrence.
#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

// Threads for a line: one for a few elements, a warp, or a block.
int64_t GroupFor(const Lines& lines) {
  constexpr int64_t kFew = 64, kMedium = 4096;
  return lines.size <= kFew ? 1 : lines.size <= kMedium ? kWarp : kThreads;
}

void Arg(Op& op) {
  const keel_tensor x = op.In(0);
  const std::string name = op.host->node_op(op.node);
  const Lines lines(x, op.Int("axis"));
  const int64_t count = lines.outer * lines.inner, group = GroupFor(lines);
  const bool wide = group > 1 && lines.inner == 1 && lines.size * (x.dtype.bits / 8) % 16 == 0;
  if (!lines.size && count) op.work.fails = name + ": the dim has no elements";
  op.Add("lines", "arg_" + NameOf(keel::plugin::dtype_of(x)), Blocks(count, kThreads / group),
         {0, op.Result()},
         {count, lines.size, lines.inner, name == "arg_max", op.Int("last") != 0, group, wide});
}

void Cumsum(Op& op) {
  const keel_tensor x = op.In(0);
  const Lines lines(x, op.Int("axis"));
  const int64_t count = lines.outer * lines.inner;
  op.Add("lines", "cumsum_" + NameOf(keel::plugin::dtype_of(x)), Blocks(count), {0, op.Result()},
         {count, lines.size, lines.inner, op.Int("exclusive") != 0, op.Int("reverse") != 0});
}

void Recurrence(Op& op) {
  const keel_tensor a = op.In(0);
  const Lines lines(a, op.Int("axis"));
  const int64_t count = lines.outer * lines.inner;
  op.Add("lines", "recurrence_" + NameOf(keel::plugin::dtype_of(a)), Blocks(count), {0, 1, op.Result()},
         {count, lines.size, lines.inner, op.Int("reverse") != 0});
}

}  // namespace

Impls LineImpls() {
  return {Row<Arg>("arg_max", kNumTypes, "arg by blocks or threads"),
          Row<Arg>("arg_min", kNumTypes, "arg by blocks or threads"),
          Row<Cumsum>("cumsum", kNumTypes, "a thread for each line"),
          Row<Recurrence>("linear_recurrence", kNumTypes, "a thread for each line")};
}

}  // namespace keel_cuda
