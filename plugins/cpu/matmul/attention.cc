// attention.cc: softmax(q k' * scale + mask) v as one launch. k and v are packed once into the panels of the
// matrix kernel, or read in place for a few rows of q, as of a decoder that adds a token. Then each block of
// rows of q computes its scores, their softmax and its rows of the result, so scores stay in the cache and
// the whole score matrix never exists.
#include "plugins/cpu/matmul/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "plugins/cpu/elementwise/broadcast.h"
#include "plugins/cpu/matmul/hidden_columns.h"
#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/matmul/shape.h"
#include "plugins/cpu/norm/loops.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

struct Attention {
  const MatmulOp* multiply;
  const NormOp* norm;
  AttentionOperands operands;
  int64_t heads = 1, l = 0, s = 0, d = 0, e = 0;
  double scale = 1;
  bool causal = false, zero_nan = false;
  bool masked = false;
  bool in_place = false;                  // k and v are not packed
  bool fetches = false;                   // they exceed the cache: their next rows are fetched meanwhile
  int64_t mask_row = 0, mask_column = 0;  // steps in elements
  std::vector<int64_t> mask_start;        // per head
  std::optional<HiddenColumns> hidden;    // by the mask, if it is a constant
  int threads = 1;                        // number of threads that the workspace is for
  int64_t together = 1;                   // heads that are packed before their blocks are computed

  static int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  int64_t PanelBytes(int64_t depth) const { return Aligned(depth * multiply->panel * multiply->packed_size); }
  int64_t HeadBytes() const {
    return in_place ? 0 : multiply->Panels(s) * PanelBytes(d) + multiply->Panels(e) * PanelBytes(s);
  }
  char* PackedHead(const keel_call* call, int64_t head) const {
    return static_cast<char*>(call->scratch) + head % together * HeadBytes();
  }
  int64_t Block() const { return hidden ? kRowsOfHidden : kRows; }
  int64_t Rows() const { return std::min(Block(), l); }
  int64_t ScoreBytes() const { return Aligned(Rows() * s * multiply->size); }
  int64_t SumBytes() const { return Aligned(Rows() * e * multiply->size); }
  int64_t LaneBytes() const { return ScoreBytes() + (in_place ? 2 * SumBytes() : 0); }

  // Rows that are packed are joined first, in the workspace, if they have parts.
  int64_t JoinedBytes(const AttentionRows& rows, int64_t width) const {
    return in_place || rows.parts.size() == 1 ? 0 : Aligned(heads * s * width * multiply->size);
  }
  int64_t LanesEnd() const { return together * HeadBytes() + threads * LaneBytes(); }
  char* Joined(const keel_call* call, bool values) const {
    return static_cast<char*>(call->scratch) + LanesEnd() + (values ? JoinedBytes(operands.k, d) : 0);
  }
  // All rows of keys or values, of a launch that packs them.
  const char* Whole(const keel_call* call, bool values) const {
    const AttentionRows& rows = values ? operands.v : operands.k;
    return rows.parts.size() == 1 ? In<char>(call, rows.parts[0].operand) : Joined(call, values);
  }

  // Of each head of those at once: whether it leaves out hidden columns.
  char* Hides(const keel_call* call) const { return Joined(call, true) + JoinedBytes(operands.v, e); }

  // Heads at once: packed k and v stay in the second-level cache, and each thread has some.
  int64_t Together() const {
    constexpr int64_t kPacked = 1 << 19;  // bytes for a thread
    return std::clamp<int64_t>(threads * std::max<int64_t>(1, kPacked / std::max<int64_t>(HeadBytes(), 1)), 1,
                               std::max<int64_t>(heads, 1));
  }
  // Rows per block: a multiple of the kernel's rows, and fewer where they see different columns.
  static constexpr int64_t kRows = 48, kRowsOfHidden = 24;
  // Products of a head, which takes about a millisecond: only between heads it is seen whether to stop.
  static constexpr int64_t kMostInPlace = 1 << 23;
  static constexpr int64_t kFetched = 4096;  // bytes of keys at a time
};

// Writes the rows of all heads into the workspace.
void Join(const keel_call* call, const Attention& w, bool values) {
  const AttentionRows& rows = values ? w.operands.v : w.operands.k;
  const int64_t row = (values ? w.e : w.d) * w.multiply->size;
  if (w.JoinedBytes(rows, values ? w.e : w.d) == 0) return;
  char* to = w.Joined(call, values);
  ParallelFor(call, w.heads, w.s * row / 4, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; head++)
      rows.EachPart(call, head, row, [&](const char* part, int64_t count, int64_t first) {
        std::memcpy(to + (head * w.s + first) * row, part, static_cast<size_t>(count * row));
      });
  });
}

// Heads [from, to).
void Pack(const keel_call* call, const Attention& w, int64_t from, int64_t to) {
  const int64_t size = w.multiply->size, key_panels = w.multiply->Panels(w.s),
                value_panels = w.multiply->Panels(w.e);
  const int64_t each = key_panels + value_panels;
  ParallelFor(call, (to - from) * each, (w.d + w.s) * w.multiply->panel / 4, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; u++) {
      const int64_t head = from + u / each, p = u % each;
      char* to = w.PackedHead(call, head);
      if (p < key_panels) {
        const Matrix k = {w.Whole(call, false) + head * w.s * w.d * size, 1, w.d};
        w.multiply->pack(k, w.d, w.s, p, to + p * w.PanelBytes(w.d));
      } else {
        const Matrix v = {w.Whole(call, true) + head * w.s * w.e * size, w.e, 1};
        w.multiply->pack(v, w.s, w.e, p - key_panels,
                         to + key_panels * w.PanelBytes(w.d) + (p - key_panels) * w.PanelBytes(w.s));
      }
    }
  });
}

// A row of weights is either all NaN or free of NaN.
void ZeroNan(char* row, int64_t n, int64_t size) {
  const bool is_nan = size == 4 ? std::isnan(*reinterpret_cast<const float*>(row))
                                : std::isnan(*reinterpret_cast<const double*>(row));
  if (is_nan) std::fill_n(row, n * size, 0);
}

// Fetches `rows` keys of 4 KB behind k, and values from row `first` on. A core reads rows of 512 bytes, four
// and eight at a time, from memory at 8 GB/s, so at 14 (Zen 4; q4i of tools/bench/decoder.py).
void FetchRows(const keel_call* call, const Attention& w, int64_t head, const char* k, int64_t first,
               int64_t rows) {
  constexpr int64_t kLine = 64;
  constexpr int kIntoL2 = 2;
  const int64_t size = w.multiply->size;
  const char *next = k + Attention::kFetched, *v = w.operands.v.RowAt(call, head, w.e * size, first);
  for (int64_t i = 0; i < rows * w.d * size; i += kLine) __builtin_prefetch(next + i, 0, kIntoL2);
  for (int64_t i = 0; i < rows * w.e * size; i += kLine) __builtin_prefetch(v + i, 0, kIntoL2);
}

// scores = q k', read in place, for the first `seen` columns; their rows are `row` elements apart.
void ScoresInPlace(const keel_call* call, const Attention& w, int64_t head, const Matrix& q, int64_t rows,
                   int64_t seen, int64_t row, char* scores) {
  const int64_t size = w.multiply->size, key = w.d * size;
  w.operands.k.EachPart(call, head, key, [&](const char* k, int64_t count, int64_t first) {
    const int64_t end = std::clamp<int64_t>(seen - first, 0, count),
                  block = w.fetches ? std::max<int64_t>(4, Attention::kFetched / key / 4 * 4) : end;
    for (int64_t i = 0, n = 0; i < end; i += n) {
      n = std::min(block, end - i);
      if (w.fetches) FetchRows(call, w, head, k + i * key, first + i, n);
      w.multiply->dots(q, k + i * key, w.d, rows, n, row, w.d, nullptr, scores + (first + i) * size);
    }
  });
}

// scores = q k', for the first `seen` columns; their rows are `row` elements apart.
void Scores(const keel_call* call, const Attention& w, int64_t head, const Matrix& q, int64_t rows,
            int64_t seen, int64_t row, char* scores) {
  if (w.in_place) return ScoresInPlace(call, w, head, q, rows, seen, row, scores);
  const char* panels = w.PackedHead(call, head);
  for (int64_t p = 0; p < w.multiply->Panels(seen) && !Cancelled(call); p++)
    w.multiply->multiply(q, {panels + p * w.PanelBytes(w.d), w.multiply->panel, {}}, rows, row, w.d, p, false,
                         scores);
}

template <class T>
void AddTo(char* y, const char* x, int64_t n) {
  auto* to = reinterpret_cast<T*>(y);
  for (int64_t i = 0; i < n; i++) to[i] += reinterpret_cast<const T*>(x)[i];
}

// y = weights v, read in place, part by part. The weights' lane has room behind them for the sums of a part,
// and for its result.
void MixInPlace(const keel_call* call, const Attention& w, int64_t head, char* weights, int64_t rows,
                int64_t seen, int64_t row, char* y) {
  const int64_t size = w.multiply->size;
  char *sums = weights + w.ScoreBytes(), *more = sums + w.SumBytes();
  w.operands.v.EachPart(call, head, w.e * size, [&](const char* v, int64_t count, int64_t first) {
    const Matrix p = {weights + first * size, row, 1};
    w.multiply->stream(p, v, w.e, rows, w.e, w.e, std::clamp<int64_t>(seen - first, 0, count), sums,
                       first == 0 ? y : more);
    if (first > 0) (size == 4 ? AddTo<float> : AddTo<double>)(y, more, rows * w.e);
  });
}

// y = weights v, for the first `seen` rows of v.
void Mix(const keel_call* call, const Attention& w, int64_t head, char* weights, int64_t rows, int64_t seen,
         int64_t row, char* y) {
  if (w.in_place) return MixInPlace(call, w, head, weights, rows, seen, row, y);
  const Matrix p = {weights, row, 1};
  const char* panels = w.PackedHead(call, head) + w.multiply->Panels(w.s) * w.PanelBytes(w.d);
  for (int64_t i = 0; i < w.multiply->Panels(w.e) && !Cancelled(call); i++)
    w.multiply->multiply(p, {panels + i * w.PanelBytes(w.s), w.multiply->panel, {}}, rows, w.e, seen, i,
                         false, y);
}

// Whether the mask's hidden columns may be left out: their scores are numbers, their weights 0, and v has no
// infinity or NaN.
bool MayHide(const keel_call* call, const Attention& w, int64_t head) {
  const auto largest = [&](const char* x, int64_t n) {
    return w.norm->magnitude(x + head * n * w.multiply->size, n);
  };
  const double product = largest(In<char>(call, w.operands.q), w.l * w.d) *
                         largest(w.Whole(call, false), w.s * w.d) * static_cast<double>(w.d);
  return product < std::numeric_limits<float>::max() && w.hidden->HaveNoWeight(product * std::abs(w.scale)) &&
         std::isfinite(largest(w.Whole(call, true), w.s * w.e));
}

// Rows [first, first + rows) of one head.
void RunBlock(const keel_call* call, const Attention& w, int64_t head, int64_t first, int64_t rows,
              char* scores) {
  const int64_t size = w.multiply->size;
  // columns visible to any row of the block
  const int64_t seen = w.causal                                       ? std::min(w.s, first + rows)
                       : w.hidden && w.Hides(call)[head % w.together] ? w.hidden->Seen(first)
                                                                      : w.s;
  const int64_t row = w.causal ? w.s : seen;  // the distance of rows of scores
  const Matrix q = {In<char>(call, w.operands.q) + (head * w.l + first) * w.d * size, w.d, 1};
  Scores(call, w, head, q, rows, seen, row, scores);
  // Rows with the same count of visible columns together.
  const int64_t together = w.causal ? 1 : rows;
  for (int64_t r = 0; r < rows && !Cancelled(call); r += together) {
    const int64_t n = w.causal ? std::min(seen, first + r + 1) : seen;
    const char* mask = nullptr;
    if (w.masked)
      mask = In<char>(call, w.operands.mask) +
             (w.mask_start[static_cast<size_t>(head)] + (first + r) * w.mask_row) * size;
    w.norm->masked_softmax(scores + r * row * size, together, n, seen, w.scale, mask, w.mask_row,
                           w.mask_column, call->env->cancelled);
  }
  if (w.zero_nan && seen > 0)
    for (int64_t r = 0; r < rows; r++) ZeroNan(scores + r * row * size, seen, size);
  Mix(call, w, head, scores, rows, seen, row, Out<char>(call, 0) + (head * w.l + first) * w.e * size);
}

void RunHeads(const keel_call* call, const Attention& w, int64_t from, int64_t to) {
  if (!w.in_place) Pack(call, w, from, to);
  if (w.hidden)
    ParallelFor(call, to - from, w.l * w.d + w.s * (w.d + w.e), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) w.Hides(call)[i] = MayHide(call, w, from + i);
    });
  const int64_t block = w.Block(), parts = (w.l + block - 1) / block, units = (to - from) * parts;
  char* scores = static_cast<char*>(call->scratch) + w.together * w.HeadBytes();
  const int64_t cost = w.Rows() * w.s * (w.d + w.e + 64) / 16;
  const int64_t lanes = std::min<int64_t>(w.threads, units), share = (units + lanes - 1) / lanes;
  ParallelFor(call, lanes, share * cost, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; lane++)
      for (int64_t u = lane; u < units && !Cancelled(call); u += lanes) {
        // With a causal mask late blocks are the long ones; lanes alternate.
        const int64_t first = u % parts * block;
        RunBlock(call, w, from + u / parts, first, std::min(block, w.l - first),
                 scores + lane * w.LaneBytes());
      }
  });
}

keel_rc RunAttention(const keel_call* call) {
  const Attention& w = State<Attention>(call);
  if (call->count == 0) return KEEL_OK;
  for (const bool values : {false, true}) Join(call, w, values);
  for (int64_t head = 0; head < w.heads && !Cancelled(call); head += w.together)
    RunHeads(call, w, head, std::min(w.heads, head + w.together));
  return Done(call);
}

void ReadMask(const Node& node, Attention* w) {
  const keel_tensor mask = node.In(3), y = node.Out(0);
  int64_t steps[KEEL_MAX_RANK] = {}, step = 1;
  for (int d = mask.ndim - 1; d >= 0; d--) {
    steps[d + y.ndim - mask.ndim] = mask.shape[d] == 1 ? 0 : step;
    step *= mask.shape[d];
  }
  w->masked = true;
  w->mask_row = steps[y.ndim - 2];
  w->mask_column = steps[y.ndim - 1];
  for (int64_t head = 0; head < w->heads; head++) {
    int64_t start = 0;
    for (int64_t d = y.ndim - 3, rest = head; d >= 0; d--) {
      start += rest % y.shape[d] * steps[d];
      rest /= y.shape[d];
    }
    w->mask_start.push_back(start);
  }
}

template <class T>
void FindHidden(const Node& node, Attention* w) {
  const keel_tensor mask = node.In(3);
  HiddenColumns hidden(w->l, w->s, Attention::kRowsOfHidden, w->multiply->panel);
  int64_t last = -1;
  for (int64_t start : w->mask_start)
    if (start != std::exchange(last, start))
      hidden.Add(Mask<T>{static_cast<const T*>(keel_ptr(&mask)) + start, w->mask_row, w->mask_column});
  if (hidden.AreAny()) w->hidden = std::move(hidden);
}

keel_rc PrepareAttention(const Node& node, keel_launch* launch) {
  const keel_tensor v = node.In(2);
  const int64_t s = v.shape[v.ndim - 2];
  return KeepAttention(node, {0, node.Has(3) ? 3 : -1, {{{1, s}}}, {{{2, s}}}}, launch);
}

constexpr keel_impl kImpls[] = {
    Impl("attention", "blocks of rows", Prepare<PrepareAttention>, 0, "T=f32|f64"),
    Impl("call", "blocks of rows, joined in place", Prepare<PrepareJoinedAttention>, 0, nullptr, 0,
         Match<IsJoinedAttention>)};

}  // namespace

keel_rc KeepAttention(const Node& node, AttentionOperands operands, keel_launch* launch) {
  const keel_tensor q = node.In(0), v = node.In(2), y = node.Out(0);
  Attention w = {};
  w.operands = std::move(operands);
  w.multiply = MatmulLoops(keel_dt_of(&q));
  for (int i = 0; i < Norms().n; i++)
    if (Norms().dtypes[i].dtype == keel_dt_of(&q)) w.norm = &Norms().dtypes[i];
  if (w.multiply == nullptr || w.norm == nullptr)
    Throw(KEEL_UNIMPLEMENTED, "attention has no CPU loop for this dtype");
  w.heads = Product(y.shape, y.ndim - 2);
  w.l = y.shape[y.ndim - 2];
  w.e = y.shape[y.ndim - 1];
  w.s = v.shape[v.ndim - 2];
  w.d = q.shape[q.ndim - 1];
  w.in_place = w.multiply->dots != nullptr && AreDots(w.l, w.d) &&
               w.l * w.s * std::max(w.d, w.e) <= Attention::kMostInPlace;
  w.fetches = w.in_place && w.heads * w.s * (w.d + w.e) * w.multiply->size > SecondLevelCache();
  w.scale = node.Real("scale");
  if (w.scale == 0) w.scale = 1 / std::sqrt(static_cast<double>(w.d));
  w.causal = node.Flag("causal");
  w.zero_nan = node.Flag("zero_nan");
  if (node.Has(3)) ReadMask(node, &w);
  if (node.Has(3) && node.In(3).data != nullptr && !w.in_place && !w.causal)
    w.multiply->size == 4 ? FindHidden<float>(node, &w) : FindHidden<double>(node, &w);
  w.threads = Budget();
  w.together = w.in_place ? std::max<int64_t>(w.heads, 1) : w.Together();
  const int64_t flags = w.hidden ? w.together : 0;
  const int64_t bytes =
      w.LanesEnd() + w.JoinedBytes(w.operands.k, w.d) + w.JoinedBytes(w.operands.v, w.e) + flags;
  return Keep(launch, std::move(w), RunAttention, static_cast<uint64_t>(bytes));
}

Impls AttentionImpls() { return kImpls; }

}  // namespace keel_cpu
