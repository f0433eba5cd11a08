// unary.cc: ops with one operand; the loops are in unary_loops.inc.
#include <cstring>

#include "plugins/cpu/common.h"
#include "plugins/cpu/elementwise/unary_loops.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/parallel/stream.h"

namespace keel_cpu {
namespace {

// n elements past the caches.
void Stream(const UnaryOp& op, const char* x, char* y, int64_t n) {
  const auto part = [&](UnaryLoop loop) {
    return [&op, x, loop](int64_t begin, int64_t end, char* to) {
      loop(x + begin * op.size_in, to, end - begin);
    };
  };
  if (op.stream != nullptr && BeforeLine(y) % op.size_out == 0)
    return EachPast(y, op.size_out, n, part(op.loop), part(op.stream));
  EachTile(y, op.size_out, n, [&](int64_t begin, int64_t end, char* to) {
    FetchAhead(x + begin * op.size_in, (end - begin) * op.size_in);
    op.loop(x + begin * op.size_in, to, end - begin);
  });
}

keel_rc RunUnary(const keel_call* call) {
  const UnaryOp& op = State<UnaryOp>(call);
  const char* x = In<char>(call, 0);
  char* y = Out<char>(call, 0);
  const bool streams = Streams(call, 0, call->count * op.size_out);
  ParallelFor(call, call->count, op.cost, [&](int64_t first, int64_t last) {
    const char* from = x + first * op.size_in;
    char* out = y + first * op.size_out;
    if (streams)
      Stream(op, from, out, last - first);
    else
      op.loop(from, out, last - first);
  });
  return Done(call);
}

keel_rc PrepareUnary(const Node& node, keel_launch* launch) {
  if (const UnaryOp* row = FindUnary(node)) return KeepTable(launch, row, RunUnary);
  Throw(KEEL_UNIMPLEMENTED, std::string(node.host->node_op(node.node)) + " has no CPU loop for this dtype");
}

constexpr uint32_t kFlags = KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE;
constexpr keel_impl kImpls[] = {
    Impl("neg", "loop neg", Prepare<PrepareUnary>, kFlags),
    Impl("abs", "loop abs", Prepare<PrepareUnary>, kFlags),
    Impl("sign", "loop sign", Prepare<PrepareUnary>, kFlags),
    Impl("bit_not", "loop bit_not", Prepare<PrepareUnary>, kFlags),
    Impl("logical_not", "loop not", Prepare<PrepareUnary>, kFlags),
    Impl("sqrt", "loop sqrt", Prepare<PrepareUnary>, kFlags),
    Impl("rsqrt", "loop rsqrt", Prepare<PrepareUnary>, kFlags),
    Impl("reciprocal", "loop reciprocal", Prepare<PrepareUnary>, kFlags),
    Impl("exp", "vector exp", Prepare<PrepareUnary>, kFlags),
    Impl("log", "vector log", Prepare<PrepareUnary>, kFlags),
    Impl("log1p", "vector log1p", Prepare<PrepareUnary>, kFlags),
    Impl("sin", "vector sin", Prepare<PrepareUnary>, kFlags),
    Impl("cos", "vector cos", Prepare<PrepareUnary>, kFlags),
    Impl("tanh", "vector tanh", Prepare<PrepareUnary>, kFlags),
    Impl("erf", "vector erf", Prepare<PrepareUnary>, kFlags),
    Impl("floor", "loop floor", Prepare<PrepareUnary>, kFlags),
    Impl("ceil", "loop ceil", Prepare<PrepareUnary>, kFlags),
    Impl("round", "loop round", Prepare<PrepareUnary>, kFlags),
    Impl("relu", "loop relu", Prepare<PrepareUnary>, kFlags),
    Impl("is_nan", "loop is_nan", Prepare<PrepareUnary>, kFlags),
    Impl("is_inf", "loop is_inf", Prepare<PrepareUnary>, kFlags),
    Impl("is_finite", "loop is_finite", Prepare<PrepareUnary>, kFlags),
    Impl("sigmoid", "vector sigmoid", Prepare<PrepareUnary>, kFlags),
    Impl("silu", "vector silu", Prepare<PrepareUnary>, kFlags),
    Impl("softplus", "vector softplus", Prepare<PrepareUnary>, kFlags),
    Impl("square", "loop square", Prepare<PrepareUnary>, kFlags),
    Impl("gelu", "vector gelu", Prepare<PrepareUnary>, kFlags),
};

}  // namespace

const UnaryOp* FindUnary(const Node& node) {
  const char* op = node.host->node_op(node.node);
  if (std::strcmp(op, "gelu") == 0 && node.Flag("tanh")) op = "gelu.tanh";
  const keel_tensor x = node.In(0);
  const keel_dt dt = keel_dt_of(&x);
  for (int i = 0; i < Unary().n; i++) {
    const UnaryOp& row = Unary().ops[i];
    if (row.dtype == dt && std::strcmp(row.op, op) == 0) return &row;
  }
  return nullptr;
}

Impls UnaryImpls() { return kImpls; }

}  // namespace keel_cpu
