// integer_images.cc: conv_integer on channels-last images, for processors and weights that oneDNN does not
// serve exactly: products of 16-bit integers with the cells that a block of results sees, or, with one
// channel per group, sums channel by channel.
//
// Cells outside an image are its zero point. So the zero point's part of each sum depends on the weights
// alone: sum of (x - zero) w = sum of x w - zero * (sum of w).
#include <algorithm>

#include "plugins/cpu/conv/cells.h"
#include "plugins/cpu/conv/integer.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {
namespace {

struct Images {
  Conv s;
  int32_t zero = 0;  // of x, if it is constant
  bool zero_varies = false, is_signed = false;
  const char* panels = nullptr;
  Int8Result result;
  const IntegerLoopTable* loops = &IntegerLoops();
  const Int8Kernel* product = &Int16Loops();
  int64_t block = 0, parts = 1;  // results per block; parts of a group's channels, which do not share cells
  bool pointwise = false;

  bool IsDepthwise() const { return s.groups > 1 && s.c == s.groups && s.o == s.groups; }
  int64_t Depth() const { return s.PerGroupIn() * s.w.Cells(s.w.window); }
  int64_t Pairs() const { return (Depth() + 1) / 2; }
  int64_t Panel() const { return product->panel; }
  int64_t Panels() const { return (s.PerGroupOut() + Panel() - 1) / Panel(); }  // of a group
  uint64_t PanelBytes() const { return static_cast<uint64_t>(Pairs() * Panel()) * 4; }
  uint64_t SumsAt() const {  // the sums of the weights, after the panels
    return IsDepthwise() ? static_cast<uint64_t>(s.o * Depth()) * 2
                         : PanelBytes() * static_cast<uint64_t>(s.groups * Panels());
  }
  int64_t Results() const { return s.n * s.w.Cells(s.w.out); }
  int64_t Blocks() const { return (Results() + block - 1) / block; }
};

// The cells that a result of group g sees, in the order of the window, as 16-bit integers.
void Gather(const Images& m, const char* x, int32_t zero, int64_t result, int64_t g, int16_t* to) {
  const Conv& s = m.s;
  const int64_t in = s.PerGroupIn(), step = s.w.dil[s.w.rank - 1];
  if (m.pointwise) return m.loops->widen(x + result * in, m.is_signed, in, to);
  const Place place = PlaceOf(s, result);
  x += place.image * s.w.Cells(s.w.image) * s.c + g * in;
  EachRun(s.w, place, [&](int64_t cell, int64_t at, int64_t n) {
    int16_t* into = to + cell * in;
    if (at < 0)
      std::fill_n(into, n * in, static_cast<int16_t>(zero));
    else if (step == 1 && s.groups == 1)
      m.loops->widen(x + at * s.c, m.is_signed, n * in, into);
    else
      for (int64_t i = 0; i < n; i++)
        m.loops->widen(x + (at + i * step) * s.c, m.is_signed, in, into + i * in);
  });
}

// Sums of the channels [channel, channel + n) of results from `first` on, `step` apart.
void Finish(const Images& m, const int32_t* sums, int64_t step, int64_t n, int64_t first, int64_t count,
            int64_t channel, char* y) {
  const auto at = static_cast<uint64_t>(first * m.s.o + channel);
  m.product->finish(sums, step, count, n, m.result, channel, y + at * m.result.Bytes(), m.s.o);
}

// The memory that a thread needs for a block.
struct Workspace {
  int64_t row;      // bytes of the cells of a result
  int64_t columns;  // channels of a part
  Bytes cells, sums;
  explicit Workspace(const Images& m)
      : row(m.Pairs() * 4),
        columns((m.Panels() + m.parts - 1) / m.parts * m.Panel()),
        cells(Allocate(static_cast<size_t>(m.block * row))),
        sums(Allocate(static_cast<size_t>(m.block * columns) * 4)) {}
};

void RunPart(const keel_call* call, const Images& m, int32_t zero, int64_t unit, const Workspace& own) {
  const int64_t part = unit % m.parts, g = unit / m.parts % m.s.groups, of = m.s.PerGroupOut();
  const int64_t first = unit / m.parts / m.s.groups * m.block, n = std::min(m.block, m.Results() - first);
  const int64_t begin = m.Panels() * part / m.parts, end = m.Panels() * (part + 1) / m.parts;
  for (int64_t i = 0; i < n; i++) {
    auto* row = reinterpret_cast<int16_t*>(own.cells.get() + i * own.row);
    row[m.Pairs() * 2 - 1] = 0;  // half of the last pair, if the depth is odd
    Gather(m, In<char>(call, 0), zero, first + i, g, row);
  }
  auto* sums = reinterpret_cast<int32_t*>(own.sums.get());
  const auto* weight_sums = reinterpret_cast<const int32_t*>(m.panels + m.SumsAt()) + g * of;
  for (int64_t p = begin; p < end; p++) {
    const Int8Ends ends = {&zero, nullptr, 0, nullptr, weight_sums + p * m.Panel()};
    const auto panel = static_cast<uint64_t>(g * m.Panels() + p) * m.PanelBytes();
    m.product->multiply(own.cells.get(), own.row, {m.panels + panel, m.Pairs(), 0}, n,
                        std::min(m.Panel(), of - p * m.Panel()), ends, sums + (p - begin) * m.Panel(),
                        own.columns);
  }
  const int64_t channel = begin * m.Panel(), channels = std::min(end * m.Panel(), of) - channel;
  Finish(m, sums, own.columns, channels, first, n, g * of + channel, Out<char>(call, 0));
}

void RunDepthwise(const keel_call* call, const Images& m, int32_t zero, int64_t result, int32_t* sums) {
  const int64_t c = m.s.c, step = m.s.w.dil[m.s.w.rank - 1];
  const Place place = PlaceOf(m.s, result);
  const char* x = In<char>(call, 0) + place.image * m.s.w.Cells(m.s.w.image) * c;
  const auto* w = reinterpret_cast<const int16_t*>(m.panels);
  std::fill_n(sums, c, 0);
  EachRun(m.s.w, place, [&](int64_t cell, int64_t at, int64_t n) {
    for (int64_t i = 0; at >= 0 && i < n; i++)
      m.loops->accumulate(x + (at + i * step) * c, m.is_signed, zero, w + (cell + i) * c, c, sums);
  });
  Finish(m, sums, c, c, result, 1, 0, Out<char>(call, 0));
}

keel_rc RunImages(const keel_call* call) {
  const Images& m = State<Images>(call);
  const int32_t zero = m.zero_varies ? ZeroInCall(call, 1, m.is_signed) : m.zero;
  if (m.IsDepthwise()) {
    ParallelFor(call, m.Results(), m.Depth() * m.s.c / 4, [&](int64_t begin, int64_t end) {
      std::vector<int32_t> sums(static_cast<size_t>(m.s.c));
      for (int64_t i = begin; i < end; i++) RunDepthwise(call, m, zero, i, sums.data());
    });
    return Done(call);
  }
  const int64_t cost = m.block * m.Depth() * m.s.PerGroupOut() / m.parts / 32;
  ParallelFor(call, m.Blocks() * m.s.groups * m.parts, cost, [&](int64_t begin, int64_t end) {
    const Workspace own(m);
    for (int64_t u = begin; u < end; u++) RunPart(call, m, zero, u, own);
  });
  return Done(call);
}

// A block's cells and sums stay in the cache. Blocks that do not suffice for all threads are cut by channels.
void CutBlocks(Images* m) {
  constexpr int64_t kCache = 192 << 10, kRows = 12, kMost = 96, kPerThread = 3;
  const int64_t row = m->Depth() * 2 + m->s.PerGroupOut() * 4;
  m->block = std::clamp(kCache / row / kRows * kRows, kRows, kMost);
  const int64_t units = std::max<int64_t>(m->Blocks() * m->s.groups, 1), threads = Budget();
  if (threads > 1 && units < kPerThread * threads)
    m->parts = std::clamp<int64_t>((kPerThread * threads + units - 1) / units, 1, m->Panels());
}

Images ImagesOf(const Conv& s) {
  Images m;
  m.s = s;
  return m;
}

}  // namespace

uint64_t IntegerPanelBytes(const Conv& s) { return ImagesOf(s).SumsAt() + static_cast<uint64_t>(s.o) * 4; }

void PackIntegerPanels(const Conv& s, const std::vector<int16_t>& w, char* to) {
  const Images m = ImagesOf(s);
  const int64_t in = s.PerGroupIn(), cells = s.w.Cells(s.w.window), panel = m.Panel();
  std::memset(to, 0, IntegerPanelBytes(s));
  auto* packed = reinterpret_cast<int16_t*>(to);
  auto* sums = reinterpret_cast<uint32_t*>(to + m.SumsAt());
  for (int64_t o = 0; o < s.o; o++) {
    const int64_t g = o / s.PerGroupOut(), j = o % s.PerGroupOut();
    int16_t* column = packed + (g * m.Panels() + j / panel) * m.Pairs() * panel * 2 + j % panel * 2;
    for (int64_t i = 0; i < in * cells; i++) {
      const int16_t v = w[static_cast<size_t>((o * in + i % in) * cells + i / in)];
      sums[o] += static_cast<uint32_t>(v);
      if (m.IsDepthwise())
        packed[i * s.c + o] = v;
      else
        column[i / 2 * panel * 2 + i % 2] = v;
    }
  }
}

void KeepIntegerImages(const Conv& s, const IntegerWeights& weights, bool x_signed, const void* panels,
                       Int8Result result, keel_launch* launch) {
  Images m = {s,
              weights.x_zero,
              weights.x_zero_varies,
              x_signed,
              static_cast<const char*>(panels),
              std::move(result)};
  m.pointwise = IsPointwise(s);
  CutBlocks(&m);
  Keep(launch, std::move(m), Guard<RunImages>);
}

}  // namespace keel_cpu
