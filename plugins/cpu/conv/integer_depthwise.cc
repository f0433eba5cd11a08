// integer_depthwise.cc: conv_integer of one channel per group on channels-last images, with channels as the
// lanes of vectors, for AVX2. Cells outside an image are its zero point; see integer_images.cc.
#include <algorithm>

#include "plugins/cpu/conv/integer.h"
#include "plugins/cpu/conv/integer_depthwise_loops.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {
namespace {

struct IntegerDepthwise {
  Conv s;
  bool is_signed = false;  // cells
  Int8Result result;
  std::vector<DepthwiseBlock> blocks;
  std::vector<int16_t> w;
  std::vector<char> outside;  // cells
  DepthwiseLoop loop = DepthwiseOfBytes();

  int64_t Cells() const { return s.w.Cells(s.w.window); }
  int64_t Pairs() const { return (Cells() + 1) / 2; }
  int64_t Row() const { return s.w.out[s.w.rank - 1]; }
};

void Pack(const std::vector<int16_t>& w, int32_t zero, IntegerDepthwise* m) {
  const int64_t cells = m->Cells(), c = m->s.c;
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  for (int64_t first = 0; first < c; first += kDepthwiseBlock) {
    DepthwiseBlock b = {static_cast<int32_t>(std::min(first, c - kDepthwiseBlock)), {}, {}, {}};
    const size_t begin = m->w.size();
    m->w.resize(begin + at(m->Pairs() * kDepthwiseBlock * 2));
    for (int64_t i = 0; i < kDepthwiseBlock; i++) {
      const int64_t o = b.first + kDepthwiseOrder[i];
      uint32_t sum = 0;
      for (int64_t k = 0; k < cells; k++) {
        const int16_t x = w[at(o * cells + k)];
        m->w[begin + at((k / 2 * kDepthwiseBlock + i) * 2 + k % 2)] = x;
        sum += static_cast<uint32_t>(x);
      }
      b.sums[i] = static_cast<int32_t>(0 - sum * static_cast<uint32_t>(zero));
      b.scale[i] = m->result.scale[at(o)];
      b.shift[i] = m->result.shift[at(o)];
    }
    m->blocks.push_back(b);
  }
}

// The rows of cells that row `r` of results sees; null: outside.
void SeenRows(const IntegerDepthwise& m, const char* x, int64_t r, std::vector<const char*>* rows) {
  const Window& w = m.s.w;
  const int last = w.rank - 1;
  const int64_t of_image = Product(w.out, last);
  int64_t place[kMaxImage], k[kMaxImage];
  Unravel(r % of_image, w.out, last, place);
  x += r / of_image * w.Cells(w.image) * m.s.c;
  for (size_t i = 0; i < rows->size(); i++) {
    Unravel(static_cast<int64_t>(i), w.window, last, k);
    const int64_t row = SeenRow(w, place, k);
    (*rows)[i] = row < 0 ? nullptr : x + row * w.image[last] * m.s.c;
  }
}

struct Seen {
  std::vector<const char*> rows, cells;
};
void RunRow(const IntegerDepthwise& m, const char* x, int64_t r, char* y, Seen* seen) {
  const Window& w = m.s.w;
  const int last = w.rank - 1;
  SeenRows(m, x, r, &seen->rows);
  for (int64_t i = 0; i < m.Row(); i++) {
    const char** cell = seen->cells.data();
    for (const char* row : seen->rows)
      for (int64_t k = 0; k < w.window[last]; k++) {
        const int64_t at = w.At(last, i, k);
        *cell++ = row != nullptr && at >= 0 && at < w.image[last] ? row + at * m.s.c : m.outside.data();
      }
    m.loop({seen->cells.data(), m.Pairs(), m.is_signed}, m.blocks, m.w.data(), m.result,
           y + (r * m.Row() + i) * m.s.c);
  }
}

keel_rc RunDepthwise(const keel_call* call) {
  const IntegerDepthwise& m = State<IntegerDepthwise>(call);
  if (call->count == 0) return KEEL_OK;
  const auto rows = static_cast<size_t>(Product(m.s.w.window, m.s.w.rank - 1));
  const int64_t cost = m.Row() * m.Cells() * m.s.c / 8;
  ParallelFor(call, m.s.n * Product(m.s.w.out, m.s.w.rank - 1), cost, [&](int64_t begin, int64_t end) {
    Seen seen = {std::vector<const char*>(rows),
                 std::vector<const char*>(static_cast<size_t>(2 * m.Pairs()), m.outside.data())};
    for (int64_t r = begin; r < end && !Cancelled(call); r++)
      RunRow(m, In<char>(call, 0), r, Out<char>(call, 0), &seen);
  });
  return Done(call);
}

}  // namespace

bool ServesIntegerDepthwise(const Conv& s, const IntegerWeights& weights, const Int8Result& result) {
  return DepthwiseOfBytes() != nullptr && !weights.x_zero_varies && result.Bytes() == 1 && s.groups == s.c &&
         s.o == s.c && s.c >= kDepthwiseBlock;
}

void KeepIntegerDepthwise(const Conv& s, const IntegerWeights& weights, bool x_signed, Int8Result result,
                          keel_launch* launch) {
  IntegerDepthwise m;
  m.s = s;
  m.is_signed = x_signed;
  m.result = std::move(result);
  Pack(weights.w, weights.x_zero, &m);
  m.outside.assign(static_cast<size_t>(s.c), static_cast<char>(weights.x_zero));
  Keep(launch, std::move(m), Guard<RunDepthwise>);
}

}  // namespace keel_cpu
