// binary.cc: ops with two operands: selects the loop of arith_loops.inc or compare_loops.inc by op and dtype
// and runs it over flat or broadcast operands.
#include <atomic>
#include <cstdio>
#include <cstring>

#include "plugins/cpu/elementwise/binary_loops.h"
#include "plugins/cpu/elementwise/broadcast.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/parallel/stream.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

struct Operands {
  const char* a;
  const char* b;
  char* c;
  bool streams = false;  // c is stored past the caches

  // From an element on, for a loop of this kind.
  Operands From(int64_t at, const BinaryOp& op, int kind) const {
    return {kind == 1 ? a : a + at * op.size_in, kind == 2 ? b : b + at * op.size_in, c + at * op.size_out,
            streams};
  }
};

// The smallest index at which any thread's loop failed.
class Failure {
 public:
  void Note(int64_t at) {
    for (int64_t old = at_; at < old && !at_.compare_exchange_weak(old, at);) continue;
  }
  int64_t At() const { return at_ == kNone ? -1 : at_.load(); }

 private:
  static constexpr int64_t kNone = INT64_MAX;
  std::atomic<int64_t> at_ = kNone;
};

// Not with the fetches of tiles, 0.75 of the time of sums without them on a Xeon; there it was not measured.
bool StreamsInPlace(const BinaryOp& op, int kind) {
  static const bool foresees = ThisChip() == Chip::kAmd;
  return foresees && op.streams[kind] != nullptr;
}

// n contiguous elements past the caches; the index of the first that fails, or -1. Apart from RunPart, which
// runs for each short row.
__attribute__((noinline)) int64_t StreamPart(const BinaryOp& op, int kind, const Operands& p, int64_t n) {
  if (StreamsInPlace(op, kind) && BeforeLine(p.c) % op.size_out == 0) {
    const auto part = [&](BinaryLoop loop) {
      return [&, loop](int64_t begin, int64_t end, char* to) {
        const Operands from = p.From(begin, op, kind);
        loop(from.a, from.b, to, end - begin);
      };
    };
    EachPast(p.c, op.size_out, n, part(op.loops[kind]), part(op.streams[kind]));
    return -1;
  }
  int64_t failed = -1;
  EachTile(p.c, op.size_out, n, [&](int64_t begin, int64_t end, char* to) {
    const Operands from = p.From(begin, op, kind);
    if (kind != 1) FetchAhead(from.a, (end - begin) * op.size_in);
    if (kind != 2) FetchAhead(from.b, (end - begin) * op.size_in);
    const int64_t at = op.loops[kind](from.a, from.b, to, end - begin);
    if (at >= 0 && failed < 0) failed = begin + at;
  });
  return failed;
}
int64_t RunPart(const BinaryOp& op, int kind, const Operands& p, int64_t n) {
  return p.streams ? StreamPart(op, kind, p, n) : op.loops[kind](p.a, p.b, p.c, n);
}

// n contiguous elements, on several threads if worthwhile.
int64_t RunFlat(const keel_call* call, const BinaryOp& op, int kind, Operands p, int64_t n) {
  if (n * op.cost < kParallelCost) return op.loops[kind](p.a, p.b, p.c, n);
  Failure failure;
  ParallelFor(call, n, op.cost, [&](int64_t begin, int64_t end) {
    const int64_t at = RunPart(op, kind, p.From(begin, op, kind), end - begin);
    if (at >= 0) failure.Note(begin + at);
  });
  return failure.At();
}

constexpr int64_t kStreamRow = 2048;  // elements; in shorter rows incomplete tiles cost more than they save

int64_t RunBroadcast(const keel_call* call, const BinaryOp& op, Operands p) {
  const Walk<2> walk = Broadcast<2>(call);
  const int64_t inner = walk.Inner(), rows = walk.Rows();
  const int kind = walk.InnerStep(0) == 0 ? 1 : walk.InnerStep(1) == 0 ? 2 : 0;
  if (rows == 1) return RunFlat(call, op, kind, p, inner);
  Failure failure;
  ParallelFor(call, rows, inner * op.cost + 2, [&](int64_t begin, int64_t end) {
    walk.Rows(begin, end, [&](int64_t row, const int64_t* steps) {
      const Operands from = {p.a + steps[0] * op.size_in, p.b + steps[1] * op.size_in,
                             p.c + row * inner * op.size_out, p.streams && inner >= kStreamRow};
      const int64_t at = RunPart(op, kind, from, inner);
      if (at >= 0) failure.Note(row * inner + at);
    });
  });
  return failure.At();
}

int KindOf(const keel_call* call) {
  return call->flags & KEEL_CALL_ONE(0) ? 1 : call->flags & KEEL_CALL_ONE(1) ? 2 : 0;
}

__attribute__((noinline)) int64_t RunLong(const keel_call* call, const BinaryOp& op, Operands p) {
  p.streams = Streams(call, 0, call->count * op.size_out);
  return call->flags & KEEL_CALL_FLAT ? RunFlat(call, op, KindOf(call), p, call->count)
                                      : RunBroadcast(call, op, p);
}

__attribute__((noinline, cold)) keel_rc Fail(const keel_call* call, const BinaryOp& op, int64_t failed) {
  char text[96];
  std::snprintf(text, sizeof(text), "%s at element %lld", op.failure, static_cast<long long>(failed));
  return call->env->host->fail(KEEL_RANGE, text);
}

// Most calls are short, so the flat case runs the loop without setup.
keel_rc RunBinary(const keel_call* call) {
  const BinaryOp& op = State<BinaryOp>(call);
  const Operands p = {In<char>(call, 0), In<char>(call, 1), Out<char>(call, 0)};
  if (call->count == 0) return KEEL_OK;
  const bool is_short = call->flags & KEEL_CALL_FLAT && call->count * op.cost < kParallelCost;
  if (is_short) {
    const int64_t failed = op.loops[KindOf(call)](p.a, p.b, p.c, call->count);
    return failed < 0 ? KEEL_OK : Fail(call, op, failed);
  }
  const int64_t failed = RunLong(call, op, p);
  return failed < 0 ? Done(call) : Fail(call, op, failed);
}

const BinaryOp* Find(const BinaryTable& table, const char* op, keel_dt dt) {
  for (int f = 0; f < table.n; f++) {
    if (std::strcmp(table.families[f].op, op) != 0) continue;
    for (int i = 0; i < table.families[f].n; i++)
      if (table.families[f].dtypes[i].dtype == dt) return &table.families[f].dtypes[i];
  }
  return nullptr;
}

keel_rc PrepareBinary(const Node& node, keel_launch* launch) {
  const char* op = node.host->node_op(node.node);
  const keel_tensor a = node.In(0);
  const BinaryOp* found = FindBinary(op, keel_dt_of(&a));
  if (found == nullptr) Throw(KEEL_UNIMPLEMENTED, std::string(op) + " has no CPU loop for this dtype");
  return KeepTable(launch, found, RunBinary);
}

constexpr uint32_t kFlags = KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE;
constexpr keel_impl kImpls[] = {
    Impl("add", "loop add", Prepare<PrepareBinary>, kFlags),
    Impl("sub", "loop sub", Prepare<PrepareBinary>, kFlags),
    Impl("mul", "loop mul", Prepare<PrepareBinary>, kFlags),
    Impl("div", "loop div", Prepare<PrepareBinary>, kFlags),
    Impl("mod", "loop mod", Prepare<PrepareBinary>, kFlags),
    Impl("rem", "loop rem", Prepare<PrepareBinary>, kFlags),
    Impl("pow", "loop pow", Prepare<PrepareBinary>, kFlags),
    Impl("maximum", "loop maximum", Prepare<PrepareBinary>, kFlags),
    Impl("minimum", "loop minimum", Prepare<PrepareBinary>, kFlags),
    Impl("equal", "loop equal", Prepare<PrepareBinary>, kFlags),
    Impl("not_equal", "loop not_equal", Prepare<PrepareBinary>, kFlags),
    Impl("less", "loop less", Prepare<PrepareBinary>, kFlags),
    Impl("less_equal", "loop less_equal", Prepare<PrepareBinary>, kFlags),
    Impl("greater", "loop greater", Prepare<PrepareBinary>, kFlags),
    Impl("greater_equal", "loop greater_equal", Prepare<PrepareBinary>, kFlags),
    Impl("logical_and", "loop and", Prepare<PrepareBinary>, kFlags),
    Impl("logical_or", "loop or", Prepare<PrepareBinary>, kFlags),
    Impl("logical_xor", "loop xor", Prepare<PrepareBinary>, kFlags),
    Impl("bit_and", "loop bit_and", Prepare<PrepareBinary>, kFlags),
    Impl("bit_or", "loop bit_or", Prepare<PrepareBinary>, kFlags),
    Impl("bit_xor", "loop bit_xor", Prepare<PrepareBinary>, kFlags),
    Impl("shift_left", "loop shift", Prepare<PrepareBinary>, kFlags),
    Impl("shift_right", "loop shift", Prepare<PrepareBinary>, kFlags),
};

}  // namespace

const BinaryOp* FindBinary(const char* op, keel_dt dt) {
  const BinaryOp* found = Find(Arithmetic(), op, dt);
  return found != nullptr ? found : Find(Comparisons(), op, dt);
}

Impls ElementwiseImpls() { return kImpls; }

}  // namespace keel_cpu
