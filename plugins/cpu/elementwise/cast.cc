// cast.cc: conversions between all dtypes but those of storage.cc; the loops are in cast_loops.inc.
#include "plugins/cpu/common.h"
#include "plugins/cpu/elementwise/cast_loops.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {
namespace {

struct Cast {
  UnaryLoop loop;
  int64_t size_in, size_out;  // bytes per element
};

keel_rc RunCast(const keel_call* call) {
  const Cast& s = State<Cast>(call);
  const char* x = In<char>(call, 0);
  char* y = Out<char>(call, 0);
  ParallelFor(call, call->count, 2, [&](int64_t begin, int64_t end) {
    s.loop(x + begin * s.size_in, y + begin * s.size_out, end - begin);
  });
  return Done(call);
}

keel_rc PrepareCast(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), y = node.Out(0);
  const UnaryLoop loop = FindCast(keel_dt_of(&x), keel_dt_of(&y));
  if (!loop) return node.host->fail(KEEL_UNIMPLEMENTED, "a storage dtype");
  return Keep(launch, Cast{loop, ItemSize(x), ItemSize(y)}, RunCast);
}

constexpr keel_impl kImpls[] = {
    Impl("cast", "loop cast", Prepare<PrepareCast>, KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE),
};

}  // namespace

Impls CastImpls() { return kImpls; }

}  // namespace keel_cpu
