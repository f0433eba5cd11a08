// attention_run.cc: computes attention. k and v are packed once into the panels of the matrix kernel, or read
// in place for a few rows of q, as of a decoder that adds a token. Then each block of rows of q computes its
// scores, their softmax and its rows of the result, so scores stay in the cache and the whole score matrix
// never exists.
#include <cmath>
#include <cstring>
#include <limits>

#include "plugins/cpu/matmul/attention_state.h"
#include "plugins/cpu/parallel/fetch.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {
namespace {

// Writes a part's rows of a head one after the other.
void CopyRows(const char* from, const HeadRows& part, int64_t size, char* to) {
  const auto bytes = static_cast<size_t>(part.columns * size);
  if (part.AreTogether()) {
    std::memcpy(to, from, static_cast<size_t>(part.rows) * bytes);
    return;
  }
  for (int64_t i = 0; i < part.rows; i++)
    std::memcpy(to + i * part.columns * size, from + i * part.row * size, bytes);
}

// Writes the rows of all heads into the workspace.
void Join(const keel_call* call, const Attention& w, const JoinedRows& rows) {
  if (w.JoinedBytes(rows) == 0) return;
  const int64_t size = w.multiply->size, columns = rows.parts[0].columns;
  char* to = w.Joined(call, rows);
  ParallelFor(call, w.heads, w.s * columns * size / 4, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; head++)
      rows.EachPart([&](const HeadRows& part, int64_t first) {
        CopyRows(w.Of(call, part, head), part, size, to + (head * w.s + first) * columns * size);
      });
  });
}

// Panel p of a head: of keys, then of values.
void PackPanel(const keel_call* call, const Attention& w, int64_t head, int64_t p) {
  const int64_t key_panels = w.multiply->Panels(w.s), value = p - key_panels;
  char* to = w.PackedHead(call, head);
  int64_t row = 0;
  if (value < 0) {
    const char* k = w.Whole(call, w.k, head, &row);
    w.multiply->pack({k, 1, row}, w.d, w.s, p, to + p * w.PanelBytes(w.d));
  } else {
    const char* v = w.Whole(call, w.v, head, &row);
    w.multiply->pack({v, row, 1}, w.s, w.e, value,
                     to + key_panels * w.PanelBytes(w.d) + value * w.PanelBytes(w.s));
  }
}
// Heads [from, to).
void Pack(const keel_call* call, const Attention& w, int64_t from, int64_t to) {
  const int64_t each = w.PanelsOfHead();
  ParallelFor(call, (to - from) * each, (w.d + w.s) * w.multiply->panel / 4, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; u++) PackPanel(call, w, from + u / each, u % each);
  });
}

// The rows of the head that a thread computes next: they are fetched during the products of scores.
class Later {
 public:
  Later(const keel_call* call, const Attention& w, int64_t head) : call_(call), w_(w), head_(head) {}
  // For the product of `rows` rows of q with a panel: its blocks fetch a line each of as many rows as the
  // sums are long.
  Next Take(int64_t rows) {
    const HeadRows* const all[] = {&w_.k.parts[0], &w_.v.parts[0], &w_.q};
    const int64_t most = rows / w_.multiply->block * kLine;
    if (operand_ == std::size(all) || most == 0) return {};
    const HeadRows& of = *all[operand_];
    const int64_t size = w_.multiply->size, step = of.row * size, bytes = of.columns * size - byte_;
    const Next next = {w_.Of(call_, of, head_) + row_ * step + byte_, std::min(bytes, most), w_.d, step};
    byte_ += most;
    if (byte_ >= of.columns * size) byte_ = 0, row_ += w_.d;
    if (row_ >= of.rows) row_ = 0, operand_++;
    return next;
  }

 private:
  const keel_call* call_;
  const Attention& w_;
  int64_t head_, row_ = 0, byte_ = 0;
  size_t operand_ = 0;
};

// Sets a row to zero if its weights are NaN: masks hid all columns, or NaN came in.
void ZeroNan(char* row, int64_t n, int64_t size) {
  const bool is_nan = size == 4 ? std::isnan(*reinterpret_cast<const float*>(row))
                                : std::isnan(*reinterpret_cast<const double*>(row));
  if (is_nan) std::fill_n(row, n * size, 0);
}

// Fetches `rows` keys of 4 KB behind k, and values from row `first` on. A core reads rows of 512 bytes, four
// and eight at a time, from memory at 8 GB/s, so at 14 (Zen 4; q4i of tools/bench/decoder.py).
void FetchRows(const keel_call* call, const Attention& w, int64_t head, const char* k, int64_t first,
               int64_t rows) {
  const int64_t size = w.multiply->size;
  const char *next = k + Attention::kFetched, *v = nullptr;
  w.v.EachPart([&](const HeadRows& part, int64_t begin) {
    if (begin <= first && first < begin + part.rows)
      v = w.Of(call, part, head) + (first - begin) * part.row * size;
  });
  FetchLines<kIntoL2>(next, rows * w.d * size);
  FetchLines<kIntoL2>(v, rows * w.e * size);
}

// scores = q k', read in place, for the first `seen` columns; their rows are `row` elements apart.
void ScoresInPlace(const keel_call* call, const Attention& w, int64_t head, const Matrix& q, int64_t rows,
                   int64_t seen, int64_t row, char* scores) {
  const int64_t size = w.multiply->size;
  w.k.EachPart([&](const HeadRows& part, int64_t first) {
    const char* k = w.Of(call, part, head);
    const int64_t key = part.row * size, end = std::clamp<int64_t>(seen - first, 0, part.rows),
                  block = w.fetches ? std::max<int64_t>(4, Attention::kFetched / key / 4 * 4) : end;
    for (int64_t i = 0, n = 0; i < end; i += n) {
      n = std::min(block, end - i);
      if (w.fetches) FetchRows(call, w, head, k + i * key, first + i, n);
      w.multiply->dots(q, k + i * key, part.row, rows, n, row, w.d, nullptr, scores + (first + i) * size);
    }
  });
}

// scores = q k', for the first `seen` columns; their rows are `row` elements apart.
void Scores(const keel_call* call, const Attention& w, int64_t head, const Matrix& q, int64_t rows,
            int64_t seen, int64_t row, char* scores, Later* later) {
  if (w.in_place) return ScoresInPlace(call, w, head, q, rows, seen, row, scores);
  const char* panels = w.PackedHead(call, head);
  for (int64_t p = 0; p < w.multiply->Panels(seen) && !Cancelled(call); p++)
    w.multiply->multiply(
        q, {panels + p * w.PanelBytes(w.d), w.multiply->panel, later == nullptr ? Next{} : later->Take(rows)},
        rows, row, w.d, p, false, scores);
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
  w.v.EachPart([&](const HeadRows& part, int64_t first) {
    const Matrix p = {weights + first * size, row, 1};
    const int64_t n = std::clamp<int64_t>(seen - first, 0, part.rows);
    const bool adds = first > 0;
    w.multiply->stream(p, w.Of(call, part, head), part.row, rows, w.e, adds ? w.e : w.y.row, n, sums,
                       adds ? more : y);
    for (int64_t r = 0; adds && r < rows; r++)
      (size == 4 ? AddTo<float> : AddTo<double>)(y + r * w.y.row * size, more + r * w.e * size, w.e);
  });
}

// y = weights v, for the first `seen` rows of v.
void Mix(const keel_call* call, const Attention& w, int64_t head, char* weights, int64_t rows, int64_t seen,
         int64_t row, char* y) {
  if (w.in_place) return MixInPlace(call, w, head, weights, rows, seen, row, y);
  const Matrix p = {weights, row, 1};
  const char* panels = w.PackedHead(call, head) + w.multiply->Panels(w.s) * w.PanelBytes(w.d);
  for (int64_t i = 0; i < w.multiply->Panels(w.e) && !Cancelled(call); i++)
    w.multiply->multiply(p, {panels + i * w.PanelBytes(w.s), w.multiply->panel, {}}, rows, w.y.row, seen, i,
                         false, y);
}

// Whether the mask's hidden columns may be left out: their scores are numbers, their weights 0, and v has no
// infinity or NaN.
bool MayHide(const keel_call* call, const Attention& w, int64_t head) {
  int64_t key = 0, value = 0;
  const char *k = w.Whole(call, w.k, head, &key), *v = w.Whole(call, w.v, head, &value);
  const double product = w.norm->magnitude(w.Of(call, w.q, head), w.l, w.d, w.q.row) *
                         w.norm->magnitude(k, w.s, w.d, key) * static_cast<double>(w.d);
  return product < std::numeric_limits<float>::max() && w.hidden->HaveNoWeight(product * std::abs(w.scale)) &&
         std::isfinite(w.norm->magnitude(v, w.s, w.e, value));
}

// Columns visible to any row of a block.
int64_t Seen(const keel_call* call, const Attention& w, int64_t head, int64_t first, int64_t rows) {
  if (w.causal) return std::min(w.s, first + rows);
  return w.hidden && w.Hides(call)[w.Slot(call, head)] ? w.hidden->Seen(first) : w.s;
}

// Rows [first, first + rows) of one head.
void RunBlock(const keel_call* call, const Attention& w, int64_t head, int64_t first, char* scores,
              Later* later = nullptr) {
  const int64_t size = w.multiply->size, rows = std::min(w.Block(), w.l - first),
                seen = Seen(call, w, head, first, rows);
  const int64_t row = w.causal ? w.s : seen;  // the distance of rows of scores
  const Matrix q = {w.Of(call, w.q, head) + first * w.q.row * size, w.q.row, 1};
  Scores(call, w, head, q, rows, seen, row, scores, later);
  const char* mask = nullptr;
  if (w.mask >= 0)
    mask = In<char>(call, w.mask) + (w.mask_start[static_cast<size_t>(head)] + first * w.mask_row) * size;
  const ScoreRows visible = {rows, w.causal ? std::min(seen, first + 1) : seen, w.causal, seen, row};
  w.norm->masked_softmax(scores, visible, w.scale, mask, w.mask_row, w.mask_column, call->env->cancelled);
  if (w.zero_nan && seen > 0)
    for (int64_t r = 0; r < rows; r++) ZeroNan(scores + r * row * size, seen, size);
  Mix(call, w, head, scores, rows, seen, row, Out<char>(call, 0) + (w.y.At(head) + first * w.y.row) * size);
}

// Heads [from, to), which are packed at once.
void RunHeads(const keel_call* call, const Attention& w, int64_t from, int64_t to) {
  if (!w.in_place) Pack(call, w, from, to);
  if (w.hidden)
    ParallelFor(call, to - from, w.l * w.d + w.s * (w.d + w.e), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) w.Hides(call)[i] = MayHide(call, w, from + i);
    });
  const int64_t block = w.Block(), parts = (w.l + block - 1) / block, units = (to - from) * parts;
  char* scores = w.ScoresOf(call, 0);
  const int64_t cost = w.BlockRows() * w.s * (w.d + w.e + 64) / 16;
  const int64_t lanes = std::min<int64_t>(w.threads, units), share = (units + lanes - 1) / lanes;
  ParallelFor(call, lanes, share * cost, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; lane++)
      for (int64_t u = lane; u < units && !Cancelled(call); u += lanes) {
        // With a causal mask late blocks are the long ones; lanes alternate.
        const int64_t first = u % parts * block;
        RunBlock(call, w, from + u / parts, first, scores + lane * w.LaneBytes());
      }
  });
}

// more: the next head is this thread's, too.
void RunHead(const keel_call* call, const Attention& w, int64_t head, bool more, char* scores) {
  for (int64_t p = 0; p < w.PanelsOfHead() && !Cancelled(call); p++) PackPanel(call, w, head, p);
  if (w.hidden) w.Hides(call)[w.Slot(call, head)] = MayHide(call, w, head);
  Later later(call, w, head + 1);
  for (int64_t first = 0; first < w.l && !Cancelled(call); first += w.Block())
    RunBlock(call, w, head, first, scores, more ? &later : nullptr);
}
// Each thread computes `each` heads, one after the other, so that a head's panels are in its caches.
void RunEach(const keel_call* call, const Attention& w, int64_t each) {
  const int64_t lanes = (w.heads + each - 1) / each, cost = w.l * w.s * (w.d + w.e + 64) / 16;
  ParallelFor(call, lanes, each * cost, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; lane++) {
      const int64_t last = std::min(w.heads, (lane + 1) * each);
      for (int64_t head = lane * each; head < last && !Cancelled(call); head++)
        RunHead(call, w, head, w.fetches && head + 1 < last, w.ScoresOf(call, lane));
    }
  });
}

}  // namespace

keel_rc RunAttention(const keel_call* call) {
  const Attention& w = State<Attention>(call);
  if (call->count == 0) return KEEL_OK;
  for (const JoinedRows* rows : {&w.k, &w.v}) Join(call, w, *rows);
  if (const int64_t each = w.HeadsEach(call); each > 0) {
    RunEach(call, w, each);
    return Done(call);
  }
  for (int64_t head = 0; head < w.heads && !Cancelled(call); head += w.together)
    RunHeads(call, w, head, std::min(w.heads, head + w.together));
  return Done(call);
}

}  // namespace keel_cpu
