// matmul.cc: matrix products: geometry, and the driver of the plugin's own loops; for a few rows,
// few_rows.cc.
#include "plugins/cpu/matmul/matmul.h"

#include <optional>
#include <utility>

#include "plugins/cpu/matmul/choice.h"
#include "plugins/cpu/matmul/own_matmul.h"
#include "plugins/cpu/matmul/small.h"
#include "plugins/cpu/matmul/spaced_rows.h"
#include "plugins/cpu/regions/body.h"
#include "plugins/cpu/simd/simd.h"

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

// Panels of b are read in place by at most so many rows. A panel touches a page for each row of a large b, so
// with many rows only panels of a small one are, and panels of f32: the first block of rows copies them.
constexpr int64_t kFewRows = 32, kFewRowsOfSmall = 64;
constexpr int64_t kRowsOfCopy = 12;     // blocks have at most so many; a copy is for the next ones
constexpr int64_t kSpacedPanels = 8;    // repay the copy of rows to another distance
constexpr int64_t kStreamedRows = 8;    // by at most so many, b is read row by row
constexpr int64_t kPairDotDepth = 192;  // MatmulShape::IsDots, beside the faster panels of pairs
constexpr int64_t kSmall = 1 << 20;     // bytes

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
    w.op->widen(a + begin * w.op->size, end - begin, to + begin * w.op->left_size);
  });
  return to;
}

// The matrices that a thread multiplies next.
struct Later {
  Next a, b;

  int64_t Bytes() const { return a.bytes + b.bytes; }
  // Part i of n of them.
  Next Share(int64_t i, int64_t n) const {
    const int64_t begin = Bytes() * i / n, end = Bytes() * (i + 1) / n;
    if (begin < a.bytes) return {static_cast<const char*>(a.from) + begin, std::min(end, a.bytes) - begin};
    return {static_cast<const char*>(b.from) + begin - a.bytes, end - begin};
  }
};

// The memory of a thread for copies in a part.
struct Copies {
  Bytes panel;
  std::optional<SpacedRows> rows;
};

// The products of [first, first + depth) of all sums. Each block of rows goes through all panels.
struct Part {
  const keel_call* call;
  const OwnMatmul& w;
  const char *a, *packed;
  int64_t first, depth;
  int64_t held = 0;  // the first matrix of `packed`
  Later later = {};  // to be fetched during the last block of rows
  const UseCells* use = nullptr;
  int64_t m = w.s.m;
  char* y = Out<char>(call, 0);
  int64_t rows = RowsOfBlock(), blocks = (m + rows - 1) / rows;
  int64_t row = w.s.ta ? 1 : w.s.k, column = w.s.ta ? w.s.m : 1;

  // A panel that is read in place: its rows are apart. With f32 the first block of rows of a copies it.
  Panel AsIs(int64_t matrix, int64_t p, char* copy) const {
    const char* b = w.InPlaceOf(In<char>(call, 1), matrix, p, first);
    Panel panel = {b, w.s.n, {}, {}, w.s.n == w.op->panel ? nullptr : copy};
    const int64_t size = w.op->size, bytes = w.op->panel * size;
    const auto more = [&] { return w.AsIs(p + 1) && (p + 1) % w.Panels() != 0; };
    if (w.op->dtype == KEEL_F32 && more()) panel.next = {b + bytes, bytes, depth, w.s.n * size};
    return panel;
  }
  // Panel p of a matrix of b; then comes the next one, or the next rows of a. Panels of matrices that follow
  // one another were packed just before, so the next matrices are fetched in their place.
  Panel PanelOf(int64_t matrix, int64_t p, const char* next_rows, char* copy, bool is_last) const {
    const MatmulOp& op = *w.op;
    if (w.AsIs(p)) return AsIs(matrix, p, copy);
    const char* b =
        packed + ((matrix - held) * w.Panels() + p) * w.PanelBytes() + first * op.panel * op.packed_size;
    if (is_last && later.Bytes() > 0) return {b, op.panel, later.Share(p, w.Panels())};
    if (p + 1 < w.Panels()) return {b, op.panel, {b + w.PanelBytes(), depth * op.panel * op.packed_size}};
    return {b, op.panel, {next_rows, next_rows == nullptr ? 0 : rows * row * op.left_size}};
  }
  // Rows of a from `left` on.
  Matrix RowsFrom(const char* left, int64_t count, Copies& copies) const {
    const int64_t size = w.op->left_size;
    if (!copies.rows) return {left, row, column};
    return {copies.rows->Of(left, count, row * size), copies.rows->Step() / size, 1};
  }
  void Multiply(int64_t batch, int64_t block, int64_t p, Copies& copies) const {
    const MatmulShape& s = w.s;
    const int64_t top = block * rows, step = rows * row * w.op->left_size, count = std::min(rows, m - top);
    s.batch.Rows(batch, batch + 1, [&](int64_t, const int64_t* at) {
      const char* left = a + (at[0] + top * row + first * column) * w.op->left_size;
      const int64_t matrix = s.k * s.n == 0 ? 0 : at[1] / (s.k * s.n);
      const bool more = !s.ta && block + 1 < blocks && depth == s.k;
      w.op->multiply(
          RowsFrom(left, count, copies),
          PanelOf(matrix, p, more ? left + step : nullptr, copies.panel.get(), block + 1 == blocks), count,
          s.n, depth, p, first > 0, y + (batch * m + top) * s.n * w.op->size);
    });
  }
  // The sums of a block by panels [from, to) are complete. Blocks are numbered through all batches.
  void Use(int64_t block, int64_t from, int64_t to) const {
    const int64_t top = block % blocks * rows, column = from * w.op->panel;
    if (first + depth < w.s.k) return;
    (*use)({block / blocks * m + top, std::min(rows, m - top), column,
            std::min(w.s.n, to * w.op->panel) - column});
  }
  // For so many panels by rows.
  Copies CopiesFor(int64_t products) const {
    Copies copies;
    if (w.copies) copies.panel = Allocate(static_cast<size_t>(depth * w.op->panel * w.op->packed_size));
    const int64_t size = w.op->left_size, block = SimdLevel() == 2 ? kRowsOfCopy : kRowsOfCopy / 2;
    if (products >= kSpacedPanels && column == 1 && SpacedRows::AreNeeded(std::min(block, m), row * size))
      copies.rows.emplace(std::min(rows, m), depth * size);
    return copies;
  }
  void Run() const {
    const int64_t panels = w.Panels(), cost = std::min(m, rows) * depth * w.op->panel / 16;
    ParallelFor(call, w.s.Batches() * blocks * panels, cost, [&](int64_t begin, int64_t end) {
      Copies copies = CopiesFor(std::min(panels, end - begin));
      int64_t unused = begin;
      for (int64_t u = begin; u < end; u++) {
        Multiply(u / panels / blocks, u / panels % blocks, u % panels, copies);
        if (use != nullptr && (u + 1 == end || (u + 1) % panels == 0))
          Use(u / panels, unused % panels, u % panels + 1), unused = u + 1;
      }
    });
  }
};

// The matrices of a batch, if the second-level cache has room for them and for the ones before: fetched
// meanwhile, 96 products of 128x64x128 take 0.77 of the time, 12 of them 0.98 (Zen 4).
Later LaterOf(const keel_call* call, const OwnMatmul& w, const char* a, int64_t batch) {
  const int64_t left = w.s.m * w.s.k * w.op->left_size;
  if (left + w.MatrixBytes() > SecondLevelCache() / 4) return {};
  Later later = {};
  w.s.batch.Rows(batch, batch + 1, [&](int64_t, const int64_t* at) {
    later = {{a + at[0] * w.op->left_size, left}, {In<char>(call, 1) + at[1] * w.op->size, w.MatrixBytes()}};
  });
  return later;
}

// Each matrix of b is packed and multiplied before the next one, which takes its place.
keel_rc RunEach(const keel_call* call, const OwnMatmul& w, const char* a, char* packed, const UseCells* use) {
  const MatmulShape& s = w.s;
  const int64_t panels = w.Panels(), bytes = w.PanelBytes();
  ParallelFor(call, s.Batches(), s.k * s.n * (s.m / 16 + 1), [&](int64_t begin, int64_t end) {
    char* place = packed + begin * panels * bytes;
    for (int64_t batch = begin; batch < end; batch++) {
      for (int64_t p = 0; p < panels; p++)
        if (!w.AsIs(p)) w.PackOne(In<char>(call, 1), batch * panels + p, place + p * bytes);
      for (int64_t first = 0; first == 0 || first < s.k; first += w.op->part) {
        Part part = {call, w, a, place, first, std::min(w.op->part, s.k - first), batch};
        if (batch + 1 < end && part.depth == s.k) part.later = LaterOf(call, w, a, batch + 1);
        Copies copies = part.CopiesFor(panels);
        for (int64_t u = 0; u < part.blocks * panels && !Cancelled(call); u++)
          part.Multiply(batch, u / panels, u % panels, copies);
      }
      if (use != nullptr) (*use)({batch * s.m, s.m, 0, s.n});
    }
  });
  return Done(call);
}

keel_rc RunAll(const keel_call* call, const UseCells* use) {
  const OwnMatmul& w = State<OwnMatmul>(call);
  const MatmulShape& s = w.s;
  if (call->count == 0) return KEEL_OK;
  const char* a = Left(call, w);
  if (w.in_place != nullptr) return RunInPlace(call, w, a);
  const int64_t panels = w.Panels();
  const char* packed = w.constant.get();
  if (packed == nullptr) {
    char* to = static_cast<char*>(call->scratch) + w.LeftBytes();
    if (w.PacksEach(call->env->threads)) return RunEach(call, w, a, to, use);
    ParallelFor(call, s.b_matrices * panels, s.k * w.op->panel / 4, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++)
        if (!w.AsIs(p)) w.PackOne(In<char>(call, 1), p, to + p * w.PanelBytes());
    });
    packed = to;
  }
  if (w.is_few) return RunFewRows(call, w, a);
  for (int64_t first = 0; first == 0 || first < s.k; first += w.op->part)
    Part{call, w, a, packed, first, std::min(w.op->part, s.k - first), 0, {}, use}.Run();
  return Done(call);
}
keel_rc RunOwn(const keel_call* call) { return RunAll(call, nullptr); }

void ChooseLoops(keel_dt dtype, bool varying, OwnMatmul* w) {
  const MatmulShape& s = w->s;
  w->op = MatmulLoops(dtype);
  if (w->op == nullptr) Throw(KEEL_UNIMPLEMENTED, "matmul has no CPU loop for this dtype");
  const bool pairs = dtype == KEEL_BF16 && Bf16PairLoops() != nullptr && !s.ta;
  if (varying && s.IsDots(pairs ? kPairDotDepth : kDotDepth)) w->in_place = w->op->dots;
  if (varying && !s.tb && s.m <= kStreamedRows) w->in_place = w->op->stream;
  if (pairs && w->in_place == nullptr) w->op = Bf16PairLoops();
  const bool f32 = dtype == KEEL_F32;  // the first rows of a product make the panel for the others
  const int64_t few = f32 || w->MatrixBytes() <= kSmall ? kFewRowsOfSmall : kFewRows;
  w->as_is = varying && !s.tb && w->op->as_is && s.m <= few;
  w->copies = w->as_is && f32 && s.m > kRowsOfCopy;
  if (w->op->widen != nullptr) w->left = LeftCount(s);
}

}  // namespace

keel_rc PrepareLoops(keel_dt dtype, const MatmulShape& s, const void* b, keel_launch* launch) {
  if (PrepareMatmulSmall(dtype, s, launch)) return KEEL_OK;
  OwnMatmul w = {s, nullptr, nullptr};
  ChooseLoops(dtype, b == nullptr, &w);
  const int64_t panels = s.b_matrices * w.Panels();
  const uint64_t bytes = static_cast<uint64_t>(panels * w.PanelBytes());
  const uint64_t left = w.LeftBytes();
  if (b == nullptr) {
    const uint64_t scratch = left + (w.in_place != nullptr ? 0 : bytes);
    return Keep(launch, std::move(w), RunOwn, scratch);
  }
  w.is_few = s.m <= kFewRows && s.SharesLeft();
  w.constant = AllocateConstant(bytes);
  for (int64_t p = 0; p < panels; p++)
    w.PackOne(static_cast<const char*>(b), p, w.constant.get() + p * w.PanelBytes());
  return Keep(launch, std::move(w), RunOwn, left);
}

int64_t RowsOfBlock() {
  const int64_t cache = SecondLevelCache();
  return cache >= 2 << 20 ? 192 : cache >= 1 << 20 ? 132 : 96;
}

bool ComputesBlocks(const keel_launch& launch) {
  if (launch.run != RunOwn) return false;
  const auto& w = *static_cast<const OwnMatmul*>(launch.state);
  return w.in_place == nullptr && !w.is_few;
}

bool MultipliesRows(const keel_launch& launch) {
  if (!ComputesBlocks(launch)) return false;
  const auto& w = *static_cast<const OwnMatmul*>(launch.state);
  return w.constant != nullptr && w.left == 0 && !w.s.ta && w.s.Batches() == 1;
}

void MultiplyRows(const keel_call* call, const char* left, int64_t rows, bool more, char* y) {
  const OwnMatmul& w = State<OwnMatmul>(call);
  for (int64_t first = 0; first == 0 || first < w.s.k; first += w.op->part) {
    Part part = {call, w, left, w.constant.get(), first, std::min(w.op->part, w.s.k - first)};
    part.m = part.rows = rows, part.blocks = more ? 2 : 1, part.y = y;
    Copies copies = part.CopiesFor(w.Panels());
    for (int64_t p = 0; p < w.Panels(); p++) part.Multiply(0, 0, p, copies);
  }
}

keel_rc RunLoops(const keel_call* call, const UseCells& use) { return RunAll(call, &use); }

keel_rc PrepareMatmul(const Node& node, keel_launch* launch) {
  const keel_tensor a = node.In(0), b = node.In(1);
  const MatmulShape s = ReadMatmul(node);
  if (keel_dt_of(&a) == KEEL_F32 && !IsInner(node) && PrefersOneDnn(s, b.data != nullptr))
    return PrepareSingleOp(node, launch);
  return PrepareLoops(keel_dt_of(&a), s, b.data != nullptr ? keel_ptr(&b) : nullptr, launch);
}

}  // namespace keel_cpu
