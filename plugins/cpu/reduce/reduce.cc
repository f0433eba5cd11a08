// reduce.cc: reductions of tensors over any axes; the traversals are in reduce.h.
#include "plugins/cpu/reduce/reduce.h"

namespace keel_cpu {
namespace {

struct Reduction {
  const ReduceOp* op;
  Dims axes;
};

// An operand in memory.
struct Stored {
  const char* x;
  int64_t size, cost = 1, most = kPiece, deep = kPiece, columns = kReduceColumns;
  struct Part {
    explicit Part(const Stored& s) : stored(s) {}
    const char* Get(int64_t first, int64_t, int64_t, int64_t*) { return stored.x + first * stored.size; }
    const Stored& stored;
  };
};

keel_rc RunReduce(const keel_call* call) {
  const Reduction& r = State<Reduction>(call);
  if (call->count == 0) return KEEL_OK;
  const keel_tensor& x = *call->in[0];
  const ReduceShape shape = ShapeOfReduction(x.shape, x.ndim, r.axes);
  Reducer(call, *r.op, shape, Stored{In<char>(call, 0), r.op->size}).Run();
  return Done(call);
}

struct ColumnSums {
  const ReduceOp* op;
  ReduceShape shape;
};
keel_rc RunColumnSums(const keel_call* call) {
  const auto& s = State<ColumnSums>(call);
  Reducer(call, *s.op, s.shape, Stored{In<char>(call, 0), s.op->size}).Run();
  return Done(call);
}

keel_rc PrepareReduce(const Node& node, keel_launch* launch) {
  const char* op = node.host->node_op(node.node);
  const keel_tensor x = node.In(0);
  if (const ReduceOp* row = FindReduction(op, keel_dt_of(&x)))
    return Keep(launch, Reduction{row, node.List("axes")}, Guard<RunReduce>);
  Throw(KEEL_UNIMPLEMENTED, std::string(op) + " has no CPU loop for this dtype");
}

constexpr keel_impl kImpls[] = {
    Impl("reduce_sum", "loop sum", Prepare<PrepareReduce>, KEEL_IMPL_ANY_DIMS),
    Impl("reduce_mean", "loop mean", Prepare<PrepareReduce>, KEEL_IMPL_ANY_DIMS),
    Impl("reduce_prod", "loop prod", Prepare<PrepareReduce>, KEEL_IMPL_ANY_DIMS),
    Impl("reduce_max", "loop max", Prepare<PrepareReduce>, KEEL_IMPL_ANY_DIMS),
    Impl("reduce_min", "loop min", Prepare<PrepareReduce>, KEEL_IMPL_ANY_DIMS),
};

}  // namespace

ReduceShape ShapeOfReduction(const int64_t* dims, int ndim, const Dims& axes) {
  bool is_reduced[KEEL_MAX_RANK] = {};
  for (int64_t a : axes) is_reduced[a] = true;
  int64_t steps[KEEL_MAX_RANK], step = 1;
  for (int d = ndim - 1; d >= 0; d--) {
    steps[d] = step;
    step *= dims[d];
  }
  ReduceShape s;
  for (int d = 0; d < ndim; d++) {
    if (is_reduced[d]) s.count *= dims[d];
    if (dims[d] != 1) s.last_reduced = is_reduced[d];
    AppendDim<1>(is_reduced[d] ? &s.reduced : &s.kept, dims[d], {steps[d]});
  }
  return s;
}

keel_rc KeepColumnSums(int64_t rows, int64_t columns, keel_launch* launch) {
  ReduceShape s;
  AppendDim<1>(&s.reduced, rows, {columns});
  AppendDim<1>(&s.kept, columns, {1});
  s.count = rows;
  return Keep(launch, ColumnSums{FindReduction("reduce_sum", KEEL_F32), s}, Guard<RunColumnSums>);
}

Impls ReduceImpls() { return kImpls; }

}  // namespace keel_cpu
