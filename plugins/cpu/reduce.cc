// reduce.cc: reductions over any axes. The dims are merged into kept and reduced ones. If the last dim
// is reduced, rows are brought to one accumulator each; else rows are added into a row of accumulators.
#include "broadcast.h"
#include "parallel.h"
#include "reduce_loops.h"

namespace keel_cpu {
namespace {

struct Reduction {
  const ReduceOp* op;
  Dims axes;
};

struct Shape {
  Walk<1> kept, reduced;  // over the operand
  bool last_reduced = false;
  int64_t count = 1;  // elements that make one result
};

Shape Split(const keel_tensor& x, const Dims& axes) {
  bool is_reduced[KEEL_MAX_RANK] = {};
  for (int64_t a : axes) is_reduced[a] = true;
  int64_t steps[KEEL_MAX_RANK], step = 1;
  for (int d = x.ndim - 1; d >= 0; d--) {
    steps[d] = step;
    step *= x.shape[d];
  }
  Shape s;
  for (int d = 0; d < x.ndim; d++) {
    if (is_reduced[d]) s.count *= x.shape[d];
    if (x.shape[d] != 1) s.last_reduced = is_reduced[d];
    AppendDim<1>(is_reduced[d] ? &s.reduced : &s.kept, x.shape[d], {steps[d]});
  }
  return s;
}

// An inner dim of 1, so that Rows() visits all real dims.
void AllOuter(Walk<1>* w) {
  w->dims[w->rank] = 1;
  w->steps[0][w->rank++] = 0;
}

// The last dims alone: each line of x makes one element.
void ReduceLines(const keel_call* call, const ReduceOp& op, int64_t lines, int64_t n) {
  const char* x = In<char>(call, 0);
  char* y = Out<char>(call, 0);
  ParallelFor(call, lines, n + 4, [&](int64_t begin, int64_t end) {
    for (; Pieces(n) > 1 && begin < end; begin++) {
      alignas(kAccumulatorSize) char acc[kAccumulatorSize];
      op.start(acc, 1);
      ReduceRow(call, op, x + begin * n * op.size, n, acc);
      op.finish(acc, 1, n, y + begin * op.size);
    }
    op.lines(x + begin * n * op.size, end - begin, n, y + begin * op.size);
  });
}

void ReduceRows(const keel_call* call, const ReduceOp& op, Shape s) {
  AllOuter(&s.kept);
  const char* x = In<char>(call, 0);
  char* y = Out<char>(call, 0);
  const int64_t n = s.reduced.Inner(), rows = s.reduced.Rows();
  ParallelFor(call, s.kept.Rows(), s.count + 4, [&](int64_t begin, int64_t end) {
    s.kept.Rows(begin, end, [&](int64_t r, const int64_t* at) {
      alignas(kAccumulatorSize) char acc[kAccumulatorSize];
      op.start(acc, 1);
      InChunks(call, 0, rows, n + 2, [&](int64_t first, int64_t last) {
        s.reduced.Rows(first, last, [&](int64_t, const int64_t* in) {
          ReduceRow(call, op, x + (at[0] + in[0]) * op.size, n, acc);
        });
      });
      op.finish(acc, 1, s.count, y + r * op.size);
    });
  });
}

void ReduceColumns(const keel_call* call, const ReduceOp& op, const Shape& s) {
  constexpr int64_t kChunk = 512, kDeep = 1024;  // columns, rows: a multiple of what is summed at once
  const char* x = In<char>(call, 0);
  char* y = Out<char>(call, 0);
  const int64_t n = s.kept.Inner(), chunks = (n + kChunk - 1) / kChunk, outer = s.reduced.Rows();
  const int64_t rows = s.reduced.Inner(), stride = s.reduced.InnerStep(0);
  ParallelFor(
      call, s.kept.Rows() * chunks, s.count * std::min(n, kChunk) * 2, [&](int64_t begin, int64_t end) {
        alignas(64) char acc[kChunk * kAccumulatorSize];
        for (int64_t unit = begin; unit < end; unit++) {
          const int64_t row = unit / chunks, first = unit % chunks * kChunk, m = std::min(kChunk, n - first);
          s.kept.Rows(row, row + 1, [&](int64_t, const int64_t* at) {
            op.start(acc, m);
            InChunks(call, 0, outer, rows * m, [&](int64_t from, int64_t to) {
              s.reduced.Rows(from, to, [&](int64_t, const int64_t* in) {
                const char* column = x + (at[0] + in[0] + first) * op.size;
                InChunks(call, 0, (rows + kDeep - 1) / kDeep, kDeep * (m + 4), [&](int64_t a, int64_t b) {
                  op.column(column + a * kDeep * stride * op.size, std::min(rows, b * kDeep) - a * kDeep,
                            stride, m, acc);
                });
              });
            });
            op.finish(acc, m, s.count, y + (row * n + first) * op.size);
          });
        }
      });
}

keel_rc RunReduce(const keel_call* call) {
  const Reduction& r = State<Reduction>(call);
  if (call->count == 0) return KEEL_OK;
  const Shape s = Split(*call->in[0], r.axes);
  if (s.count == 0) {
    alignas(kAccumulatorSize) char acc[kAccumulatorSize];
    r.op->start(acc, 1);
    for (int64_t i = 0; i < call->count; i++) r.op->finish(acc, 1, 0, Out<char>(call, 0) + i * r.op->size);
  } else if (s.last_reduced && s.reduced.rank == 1 && s.kept.rank <= 1) {
    ReduceLines(call, *r.op, call->count, s.count);
  } else if (s.last_reduced) {
    ReduceRows(call, *r.op, s);
  } else {
    ReduceColumns(call, *r.op, s);
  }
  return Done(call);
}

struct ColumnSums {
  const ReduceOp* op;
  Shape shape;
};
keel_rc RunColumnSums(const keel_call* call) {
  const auto& s = State<ColumnSums>(call);
  ReduceColumns(call, *s.op, s.shape);
  return Done(call);
}

keel_rc PrepareReduce(const Node& node, keel_launch* launch) {
  const char* op = node.host->node_op(node.node);
  const keel_tensor x = node.In(0);
  if (const ReduceOp* row = FindReduction(op, keel_dt_of(&x)))
    return Keep(launch, Reduction{row, node.List("axes")}, RunReduce);
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

void ReduceRow(const keel_call* call, const ReduceOp& op, const char* x, int64_t n, void* acc) {
  if (Pieces(n) == 1) return op.row(x, n, acc);
  for (int64_t i = 0; i < n && !Cancelled(call); i += kPiece)
    op.row(x + i * op.size, std::min(kPiece, n - i), acc);
}

keel_rc KeepColumnSums(int64_t rows, int64_t columns, keel_launch* launch) {
  Shape s;
  AppendDim<1>(&s.reduced, rows, {columns});
  AppendDim<1>(&s.kept, columns, {1});
  s.count = rows;
  return Keep(launch, ColumnSums{FindReduction("reduce_sum", KEEL_F32), s}, RunColumnSums);
}

Impls ReduceImpls() { return kImpls; }

}  // namespace keel_cpu
