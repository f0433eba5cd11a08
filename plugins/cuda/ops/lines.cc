// lines.cc: ops along one axis: arg_max, arg_min, cumsum.
#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

constexpr int64_t kFewElements = 64;  // of a line: a thread looks at them

void Arg(Op& op) {
  const keel_tensor x = op.In(0);
  const std::string name = op.host->node_op(op.node);
  const Lines lines(x, op.Int("axis"));
  const int64_t count = lines.outer * lines.inner, group = lines.size <= kFewElements ? 1 : kThreads;
  if (!lines.size && count) op.work.fails = name + ": the dim has no elements";
  op.Add("lines", "arg_" + NameOf(keel::plugin::dtype_of(x)), Blocks(count, group == 1 ? kThreads : 1),
         {0, op.Result()}, {count, lines.size, lines.inner, name == "arg_max", op.Int("last") != 0, group});
}

void Cumsum(Op& op) {
  const keel_tensor x = op.In(0);
  const Lines lines(x, op.Int("axis"));
  const int64_t count = lines.outer * lines.inner;
  op.Add("lines", "cumsum_" + NameOf(keel::plugin::dtype_of(x)), Blocks(count), {0, op.Result()},
         {count, lines.size, lines.inner, op.Int("exclusive") != 0, op.Int("reverse") != 0});
}

}  // namespace

Impls LineImpls() {
  return {Row<Arg>("arg_max", kNumTypes, "arg by blocks or threads"),
          Row<Arg>("arg_min", kNumTypes, "arg by blocks or threads"),
          Row<Cumsum>("cumsum", kNumTypes, "a thread for each line")};
}

}  // namespace keel_cuda
