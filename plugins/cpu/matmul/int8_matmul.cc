// int8_matmul.cc: matmul_integer: products of 8-bit integers less their zero points. The zero points are not
// subtracted from the operands, but their part of each sum is from the result:
//   sum of (a - za)(b - zb) = sum of a b - za * (sum of b - k zb) - zb * sum of a.
#include "plugins/cpu/matmul/int8.h"

#include <algorithm>

#include "plugins/cpu/matmul/int8_bin_products.h"
#include "plugins/cpu/matmul/int8_pairs.h"
#include "plugins/cpu/matmul/matmul.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {
namespace {

constexpr int64_t kBlock = 48;  // rows that are multiplied by a panel before the next one

// Columns of all matrices of b as multiply takes them.
struct Columns {
  const char* panels;
  const int32_t *sums, *zeros;  // of each column
  bool any_zero = false;
};

struct Int8Matmul {
  MatmulShape s;
  const Int8Kernel* kernel = nullptr;
  bool a_signed = false, b_signed = false;
  int a_zero = -1, b_zero = -1;  // operands; -1: none
  bool zero_per_row = false, zero_per_column = false;
  int64_t a_rows = 0;      // of all matrices of a
  int32_t b_shift = 0;     // is added to the elements of b
  int64_t extra = 0;       // int8_pairs.h
  Bytes panels, sums;      // of a constant b
  Bytes b_zeros;           // constant, as b is; `sums` are less these
  bool any_b_zero = true;  // of the constant ones
  Int8Result result;

  int64_t AShift() const { return kernel->bytes && a_signed ? 128 : 0; }
  int64_t Groups() const { return (s.k + kernel->group - 1) / kernel->group; }
  int64_t Panels() const { return (s.n + kernel->panel - 1) / kernel->panel; }
  int64_t PanelBytes() const {
    return Groups() * kernel->panel * 4 + kernel->panel / kPairColumns * ExtraGroups::Bytes(extra);
  }
  bool AsIs() const {
    return kernel->bytes && !a_signed && s.k % kernel->group == 0;
  }  // a needs no conversion
  int64_t RowBytes() const { return Groups() * 4; }
};

// Where the parts of the workspace begin, in bytes.
struct Layout {
  uint64_t left = 0, a_sums, a_zeros, b_zeros, b_sums, column_sums, panels, bytes;
  explicit Layout(const Int8Matmul& w) {
    const auto ints = [](int64_t n) { return Aligned(static_cast<uint64_t>(n) * 4); };
    a_sums = Aligned(w.AsIs() ? 0 : static_cast<uint64_t>(w.a_rows * w.RowBytes()));
    a_zeros = a_sums + ints(w.a_rows);
    b_zeros = a_zeros + ints(w.zero_per_row ? w.a_rows : 1);
    b_sums = b_zeros + ints(w.s.n);
    column_sums = b_sums + ints(w.s.b_matrices * w.s.n);
    const bool packs = w.panels == nullptr;
    panels = column_sums + (packs ? ints(w.s.b_matrices * w.s.n) : 0);
    bytes = panels + (packs ? static_cast<uint64_t>(w.s.b_matrices * w.Panels() * w.PanelBytes()) : 0);
  }
};

void PackPanel(const Int8Matmul& w, const char* b, int64_t p, char* panels, int32_t* sums) {
  const int64_t matrix = p / w.Panels(), first = p % w.Panels() * w.kernel->panel;
  char* panel = panels + p * w.PanelBytes();
  w.kernel->pack(b + matrix * w.s.k * w.s.n, w.b_signed, w.b_shift, w.s.k, w.s.n, first, panel,
                 sums + matrix * w.s.n + first);
  SplitPairs(panel, w.Groups(), w.kernel->panel, w.extra);
}

// Zero points of an operand in the kernel's range; null: 0; step 0: one for all.
void ZeroPoints(const void* zeros, bool is_signed, int64_t shift, int64_t step, int64_t n, int32_t* to) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t zero = zeros == nullptr ? 0
                         : is_signed      ? static_cast<const int8_t*>(zeros)[i * step]
                                          : static_cast<const uint8_t*>(zeros)[i * step];
    to[i] = static_cast<int32_t>(zero + shift);
  }
}
const void* Given(const keel_call* call, int operand) {
  return operand < 0 ? nullptr : In<char>(call, operand);
}
bool AnyZeroPoint(const int32_t* zeros, int64_t n) {
  return std::any_of(zeros, zeros + n, [](int32_t z) { return z != 0; });
}

// Converts a and adds up its rows, where needed; the rows as multiply takes them.
const char* Left(const keel_call* call, const Int8Matmul& w, char* to, int32_t* sums) {
  const char* a = In<char>(call, 0);
  if (w.AsIs() && sums == nullptr) return a;
  ParallelFor(call, w.a_rows, w.s.k / 8 + 4, [&](int64_t begin, int64_t end) {
    Bytes row = w.AsIs() ? Allocate(static_cast<size_t>(w.RowBytes())) : nullptr;
    for (int64_t i = begin; i < end; i++) {
      char* at = row != nullptr ? row.get() : to + i * w.RowBytes();
      const int32_t sum = w.kernel->left(a + i * w.s.k, w.a_signed, w.s.k, at);
      if (sums != nullptr) sums[i] = sum;
    }
  });
  return w.AsIs() ? a : to;
}

// The sums of the columns of b less its zero points.
const int32_t* LessZeros(const Int8Matmul& w, const int32_t* sums, const int32_t* zeros, int32_t* to) {
  for (int64_t i = 0; i < w.s.b_matrices; i++)
    for (int64_t j = 0; j < w.s.n; j++)
      to[i * w.s.n + j] =
          static_cast<int32_t>(static_cast<uint32_t>(sums[i * w.s.n + j]) -
                               static_cast<uint32_t>(w.s.k) * static_cast<uint32_t>(zeros[j]));
  return to;
}

// The columns of b, their zero points and their sums less these.
Columns Right(const keel_call* call, const Int8Matmul& w, const Layout& at) {
  char* scratch = static_cast<char*>(call->scratch);
  const auto ints = [&](uint64_t offset) { return reinterpret_cast<int32_t*>(scratch + offset); };
  const auto fixed = [](const Bytes& b) { return reinterpret_cast<const int32_t*>(b.get()); };
  if (w.b_zeros != nullptr) return {w.panels.get(), fixed(w.sums), fixed(w.b_zeros), w.any_b_zero};
  Columns b = {w.panels.get(), fixed(w.sums), ints(at.b_zeros)};
  ZeroPoints(Given(call, w.b_zero), w.b_signed, w.b_shift, w.zero_per_column ? 1 : 0, w.s.n,
             ints(at.b_zeros));
  b.any_zero = AnyZeroPoint(b.zeros, w.s.n);
  if (w.panels == nullptr) {
    char* panels = scratch + at.panels;
    int32_t* sums = ints(at.column_sums);
    ParallelFor(call, w.s.b_matrices * w.Panels(), w.s.k * w.kernel->panel / 4,
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; p++) PackPanel(w, In<char>(call, 1), p, panels, sums);
                });
    b.panels = panels, b.sums = sums;
  }
  if (b.any_zero) b.sums = LessZeros(w, b.sums, b.zeros, ints(at.b_sums));
  return b;
}

keel_rc RunInt8(const keel_call* call) {
  const Int8Matmul& w = State<Int8Matmul>(call);
  const MatmulShape& s = w.s;
  if (call->count == 0) return KEEL_OK;
  if (s.k == 0) {
    std::memset(Out<char>(call, 0), 0, static_cast<size_t>(call->count) * sizeof(int32_t));
    return KEEL_OK;
  }
  char* scratch = static_cast<char*>(call->scratch);
  const Layout at(w);
  const auto ints = [&](uint64_t offset) { return reinterpret_cast<int32_t*>(scratch + offset); };
  int32_t* a_zeros = ints(at.a_zeros);
  ZeroPoints(Given(call, w.a_zero), w.a_signed, w.AShift(), 1, w.zero_per_row ? w.a_rows : 1, a_zeros);
  const Columns b = Right(call, w, at);
  int32_t* a_sums = b.any_zero ? ints(at.a_sums) : nullptr;
  const char* a = Left(call, w, scratch + at.left, a_sums);
  const int64_t row = w.AsIs() ? s.k : w.RowBytes(), panels = w.Panels();
  const int64_t parts = (s.m + kBlock - 1) / kBlock;
  char* c = Out<char>(call, 0);
  const bool finishes = w.result.dtype != KEEL_I32;
  ParallelFor(
      call, s.Batches() * parts * panels, std::min(s.m, kBlock) * s.k * w.kernel->panel / 64,
      [&](int64_t begin, int64_t end) {
        const Bytes own = finishes ? Allocate(static_cast<size_t>(kBlock * w.kernel->panel) * 4) : nullptr;
        auto* sums = reinterpret_cast<int32_t*>(own.get());
        for (int64_t u = begin; u < end; u++) {
          const int64_t batch = u / panels / parts, p = u / parts % panels, first = u % parts * kBlock;
          s.batch.Rows(batch, batch + 1, [&](int64_t, const int64_t* step) {
            const int64_t a_row = step[0] / s.k + first;
            const int64_t matrix = step[1] / (s.k * s.n), column = p * w.kernel->panel;
            const int64_t rows = std::min(kBlock, s.m - first),
                          columns = std::min(w.kernel->panel, s.n - column);
            const Int8Ends ends = {a_zeros + (w.zero_per_row ? a_row : 0),
                                   a_sums == nullptr ? nullptr : a_sums + a_row, w.zero_per_row ? 1 : 0,
                                   b.zeros + column, b.sums + matrix * s.n + column};
            char* to = c + static_cast<uint64_t>((batch * s.m + first) * s.n + column) * w.result.Bytes();
            const Int8Panel panel = {b.panels + (matrix * panels + p) * w.PanelBytes(), w.Groups(), w.extra};
            w.kernel->multiply(a + a_row * row, row, panel, rows, columns, ends,
                               finishes ? sums : reinterpret_cast<int32_t*>(to),
                               finishes ? w.kernel->panel : s.n);
            if (finishes) w.kernel->finish(sums, w.kernel->panel, rows, columns, w.result, column, to, s.n);
          });
        }
      });
  return Done(call);
}

bool IsOne(const keel_tensor& t) {
  return std::all_of(t.shape, t.shape + t.ndim, [](int64_t d) { return d == 1; });
}
// One zero point, or one for each row of all of a.
bool ServesRows(const keel_tensor& zero, const keel_tensor& a) {
  return IsOne(zero) || (zero.ndim == a.ndim && zero.shape[a.ndim - 1] == 1 &&
                         std::equal(a.shape, a.shape + a.ndim - 1, zero.shape) && HasDims(a));
}
// One zero point, or one for each column.
bool ServesColumns(const keel_tensor& zero, const keel_tensor& b) {
  const int64_t n = b.shape[b.ndim - 1];
  return IsOne(zero) || (n >= 0 && zero.shape[zero.ndim - 1] == n && Product(zero.shape, zero.ndim) == n);
}

keel_rc PrepareInt8(const Node& node, keel_launch* launch) {
  KeepInt8(node, {}, launch);
  return KEEL_OK;
}

// Zero points of other shapes: the body of the op.
bool Matches(const Node& node) {
  return (!node.Has(kAZero) || ServesRows(node.In(kAZero), node.In(0))) &&
         (!node.Has(kBZero) || ServesColumns(node.In(kBZero), node.In(1)));
}

constexpr keel_impl kImpls[] = {Impl("matmul_integer", "blocked loops of 8-bit integers",
                                     Prepare<PrepareInt8>, 0, nullptr, 0, Match<Matches>)};

// The kernel, and how it takes the elements of b.
void SelectKernel(const keel_tensor& b, Int8Matmul* w) {
  w->kernel = &Int8Loops();
  w->b_shift = w->kernel->bytes && !w->b_signed ? -128 : 0;
  const Int8Kernel* pairs = Int8PairLoops();
  if (b.data == nullptr || pairs == nullptr) return;
  const PairShift found = FindPairShift(keel_ptr(&b), w->b_signed, w->s.b_matrices, w->s.k, w->s.n);
  if (found.extra < 0) return;
  w->kernel = pairs;
  w->b_shift = found.shift;
  w->extra = found.extra;
}

// Packs a constant b; its zero points too, if they are constant or none.
void PackConstant(const Node& node, Int8Matmul* w) {
  const keel_tensor b = node.In(1);
  const MatmulShape& s = w->s;
  const int64_t panels = s.b_matrices * w->Panels();
  Bytes packed = AllocateConstant(static_cast<size_t>(panels * w->PanelBytes()));
  w->sums = AllocateConstant(static_cast<size_t>(s.b_matrices * s.n) * 4);
  auto* sums = reinterpret_cast<int32_t*>(w->sums.get());
  for (int64_t p = 0; p < panels; p++)
    PackPanel(*w, static_cast<const char*>(keel_ptr(&b)), p, packed.get(), sums);
  w->panels = std::move(packed);
  const keel_tensor zero = w->b_zero < 0 ? keel_tensor{} : node.In(kBZero);
  if (w->b_zero >= 0 && zero.data == nullptr) return;
  w->b_zeros = AllocateConstant(static_cast<size_t>(s.n) * 4);
  auto* zeros = reinterpret_cast<int32_t*>(w->b_zeros.get());
  ZeroPoints(w->b_zero < 0 ? nullptr : keel_ptr(&zero), w->b_signed, w->b_shift, w->zero_per_column ? 1 : 0,
             s.n, zeros);
  w->any_b_zero = AnyZeroPoint(zeros, s.n);
  if (w->any_b_zero) LessZeros(*w, sums, zeros, sums);
}

}  // namespace

void KeepInt8(const Node& node, Int8Result result, keel_launch* launch) {
  const keel_tensor a = node.In(0), b = node.In(1);
  Int8Matmul w;
  w.s = ReadProduct(node, false, false);
  if (KeepBins(node, w.s, &result, launch)) return;
  w.result = std::move(result);
  w.a_signed = TypeOf(a) == KEEL_I8;
  w.b_signed = TypeOf(b) == KEEL_I8;
  w.a_rows = Product(a.shape, a.ndim - 1);
  SelectKernel(b, &w);
  if (node.Has(kAZero)) w.a_zero = kAZero, w.zero_per_row = !IsOne(node.In(kAZero));
  if (node.Has(kBZero)) w.b_zero = kBZero, w.zero_per_column = !IsOne(node.In(kBZero));
  if (b.data != nullptr) PackConstant(node, &w);
  const uint64_t bytes = Layout(w).bytes;
  Keep(launch, std::move(w), RunInt8, bytes);
}

Impls Int8Impls() { return kImpls; }

}  // namespace keel_cpu
