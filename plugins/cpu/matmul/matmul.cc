// matmul.cc: matrix products: geometry, and the driver of the plugin's own loops.
#include "plugins/cpu/matmul/matmul.h"

#include "plugins/cpu/matmul/choice.h"
#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/matmul/small.h"
#include "plugins/cpu/onednn/onednn.h"
#include "plugins/cpu/regions/body.h"

namespace keel_cpu {

MatmulShape ReadProduct(const Node& node, bool ta, bool tb) {
  const keel_tensor a = node.In(0), b = node.In(1), c = node.Out(0);
  MatmulShape s;
  s.ta = ta;
  s.tb = tb;
  s.m = c.shape[c.ndim - 2];
  s.n = c.shape[c.ndim - 1];
  s.k = a.shape[a.ndim - (s.ta ? 2 : 1)];
  const int64_t a_matrices = Product(a.shape, a.ndim - 2), batches = Product(c.shape, c.ndim - 2);
  s.b_matrices = Product(b.shape, b.ndim - 2);
  if (s.b_matrices == 1 && a_matrices == batches && !s.ta) {
    s.m *= batches;  // a single b: the batches of a are more rows
  } else {
    int64_t steps[2][KEEL_MAX_RANK] = {};
    const keel_tensor* operands[2] = {&a, &b};
    for (int i = 0; i < 2; i++) {
      const keel_tensor& t = *operands[i];
      int64_t step = t.shape[t.ndim - 1] * t.shape[t.ndim - 2];
      for (int d = t.ndim - 3; d >= 0; d--) {
        steps[i][d + c.ndim - t.ndim] = t.shape[d] == 1 ? 0 : step;
        step *= t.shape[d];
      }
    }
    for (int d = 0; d < c.ndim - 2; d++) AppendDim<2>(&s.batch, c.shape[d], {steps[0][d], steps[1][d]});
  }
  const int last = s.batch.rank++;
  s.batch.dims[last] = 1;
  s.batch.steps[0][last] = s.batch.steps[1][last] = 0;
  return s;
}

MatmulShape ReadMatmul(const Node& node) { return ReadProduct(node, node.Flag("ta"), node.Flag("tb")); }

namespace {

// With at most so many rows, b is read in place, since packing would take longer than it saves: row by row,
// or panel by panel. A panel touches a page for each row of a large b, so with many rows only a small one.
constexpr int64_t kStreamedRows = 8, kFewRows = 32, kFewRowsOfSmall = 64;
constexpr int64_t kSmall = 1 << 20;  // bytes
constexpr int64_t kStreamed = 8192;  // numbers of a block of columns, which stay in the first-level cache

struct OwnMatmul {
  MatmulShape s;
  const MatmulOp* op;
  Bytes constant;        // the packed panels of a constant b
  bool streams = false;  // b is read row by row
  bool as_is = false;    // full panels are not packed
  int64_t left = 0;      // elements of a, if they are converted to those of panels

  int64_t Panels() const { return (s.n + op->panel - 1) / op->panel; }
  int64_t PanelBytes() const {
    return static_cast<int64_t>(Aligned(static_cast<uint64_t>(s.k * op->panel * op->packed_size)));
  }
  int64_t MatrixBytes() const { return s.k * s.n * op->size; }
  uint64_t LeftBytes() const { return Aligned(static_cast<uint64_t>(left * op->packed_size)); }
  bool AsIs(int64_t p) const { return as_is && (p % Panels() + 1) * op->panel <= s.n; }
  // Packs panel p, numbered through all matrices of b.
  void PackOne(const char* b, int64_t p, char* to) const {
    const Matrix x = {b + p / Panels() * MatrixBytes(), s.tb ? 1 : s.n, s.tb ? s.k : 1};
    op->pack(x, s.k, s.n, p % Panels(), to + p * PanelBytes());
  }
};

// Elements of all matrices of a.
int64_t LeftCount(const MatmulShape& s) {
  int64_t n = s.m * s.k;
  for (int d = 0; d < s.batch.rank; d++)
    if (s.batch.steps[0][d] != 0) n *= s.batch.dims[d];
  return n;
}
// a as multiply takes it: once for all panels.
const char* Left(const keel_call* call, const OwnMatmul& w) {
  const char* a = In<char>(call, 0);
  if (w.left == 0) return a;
  char* to = static_cast<char*>(call->scratch);
  ParallelFor(call, w.left, 1, [&](int64_t begin, int64_t end) {
    w.op->widen(a + begin * w.op->size, end - begin, to + begin * w.op->packed_size);
  });
  return to;
}

// Panels of a constant matrix by a few rows; a loop may compute many products: the general way to
// find a panel's operands would take a tenth of the time of 1x128x512.
void MultiplyPanels(const OwnMatmul& w, const char* a, int64_t begin, int64_t end, char* c) {
  const MatmulShape& s = w.s;
  const Matrix x = {a, s.ta ? 1 : s.k, s.ta ? s.m : 1};
  const int64_t bytes = w.PanelBytes();
  for (int64_t p = begin; p < end; p++)
    w.op->multiply(x, w.constant.get() + p * bytes, w.op->panel, s.m, s.n, s.k, p, c);
}

// A few rows by b in place, by blocks of columns.
keel_rc RunStream(const keel_call* call, const OwnMatmul& w, const char* a) {
  const MatmulShape& s = w.s;
  const int64_t most = kStreamed / (s.m + kStreamRows) / 64 * 64, blocks = (s.n + most - 1) / most;
  ParallelFor(
      call, s.Batches() * blocks, s.m * s.k * std::min(most, s.n) / 16, [&](int64_t begin, int64_t end) {
        const Bytes work = Allocate(static_cast<size_t>((s.m + kStreamRows) * most * w.op->packed_size));
        for (int64_t u = begin; u < end; u++) {
          const int64_t batch = u / blocks, first = u % blocks * most;
          s.batch.Rows(batch, batch + 1, [&](int64_t, const int64_t* at) {
            const Matrix x = {a + at[0] * w.op->packed_size, s.ta ? 1 : s.k, s.ta ? s.m : 1};
            w.op->stream(x, In<char>(call, 1) + (at[1] + first) * w.op->size, s.n, s.m,
                         std::min(most, s.n - first), s.n, s.k, work.get(),
                         Out<char>(call, 0) + (batch * s.m * s.n + first) * w.op->size);
          });
        }
      });
  return Done(call);
}

keel_rc RunOwn(const keel_call* call) {
  const OwnMatmul& w = State<OwnMatmul>(call);
  const MatmulShape& s = w.s;
  if (call->count == 0) return KEEL_OK;
  const char* a = Left(call, w);
  if (w.streams) return RunStream(call, w, a);
  char* c = Out<char>(call, 0);
  const int64_t panels = w.Panels(), panel_bytes = w.PanelBytes(), size = w.op->size;
  const int64_t left_size = w.op->packed_size;  // that of a panel, converted or not
  const char* packed = w.constant.get();
  if (packed == nullptr) {
    char* to = static_cast<char*>(call->scratch) + w.LeftBytes();
    ParallelFor(call, s.b_matrices * panels, s.k * w.op->panel / 4, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) w.PackOne(In<char>(call, 1), p, to);
    });
    packed = to;
  }
  // A block of rows and a panel stay in the second-level cache. The smaller operand is the one read again and
  // again.
  constexpr int64_t kRows = 96;
  const bool rows_outside = s.m > s.n;
  const int64_t parts = (s.m + kRows - 1) / kRows, units = s.Batches() * parts * panels;
  ParallelFor(call, units, std::min(s.m, kRows) * s.k * w.op->panel / 16, [&](int64_t begin, int64_t end) {
    if (units == panels && packed == w.constant.get()) return MultiplyPanels(w, a, begin, end, c);
    for (int64_t u = begin; u < end; u++) {
      const int64_t batch = u / panels / parts, p = rows_outside ? u % panels : u / parts % panels;
      const int64_t first = (rows_outside ? u / panels % parts : u % parts) * kRows;
      s.batch.Rows(batch, batch + 1, [&](int64_t, const int64_t* at) {
        const Matrix x = {a + (at[0] + first * (s.ta ? 1 : s.k)) * left_size, s.ta ? 1 : s.k, s.ta ? s.m : 1};
        const int64_t matrix = s.k * s.n == 0 ? 0 : at[1] / (s.k * s.n);
        const bool as_is = w.AsIs(p);
        const char* panel = as_is ? In<char>(call, 1) + matrix * w.MatrixBytes() + p * w.op->panel * size
                                  : packed + (matrix * panels + p) * panel_bytes;
        w.op->multiply(x, panel, as_is ? s.n : w.op->panel, std::min(kRows, s.m - first), s.n, s.k, p,
                       c + (batch * s.m + first) * s.n * size);
      });
    }
  });
  return Done(call);
}

}  // namespace

keel_rc PrepareLoops(keel_dt dtype, const MatmulShape& s, const void* b, keel_launch* launch) {
  if (PrepareMatmulSmall(dtype, s, launch)) return KEEL_OK;
  OwnMatmul w = {s, nullptr, nullptr};
  for (int i = 0; i < MatmulLoops().n; i++)
    if (MatmulLoops().dtypes[i].dtype == dtype) w.op = &MatmulLoops().dtypes[i];
  if (w.op == nullptr) Throw(KEEL_UNIMPLEMENTED, "matmul has no CPU loop for this dtype");
  const int64_t panels = s.b_matrices * w.Panels();
  const uint64_t bytes = static_cast<uint64_t>(panels * w.PanelBytes());
  const bool in_place = b == nullptr && !s.tb;
  w.streams = in_place && s.m <= kStreamedRows;
  w.as_is = in_place && w.op->as_is && s.m <= (w.MatrixBytes() <= kSmall ? kFewRowsOfSmall : kFewRows);
  if (w.op->widen != nullptr) w.left = LeftCount(s);
  const uint64_t left = w.LeftBytes();
  if (b == nullptr) {
    const uint64_t scratch = left + (w.streams ? 0 : bytes);
    return Keep(launch, std::move(w), RunOwn, scratch);
  }
  w.constant = AllocateConstant(bytes);
  for (int64_t p = 0; p < panels; p++) w.PackOne(static_cast<const char*>(b), p, w.constant.get());
  return Keep(launch, std::move(w), RunOwn, left);
}

keel_rc PrepareMatmul(const Node& node, keel_launch* launch) {
  const keel_tensor a = node.In(0), b = node.In(1);
  const MatmulShape s = ReadMatmul(node);
  if (keel_dt_of(&a) == KEEL_F32 && !IsInner(node) && PrefersOneDnn(s, b.data != nullptr))
    return PrepareSingleOp(node, launch);
  return PrepareLoops(keel_dt_of(&a), s, b.data != nullptr ? keel_ptr(&b) : nullptr, launch);
}

}  // namespace keel_cpu
