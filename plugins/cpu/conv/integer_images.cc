// integer_images.cc: conv_integer on channels-last images, for processors and weights that oneDNN does not
// serve exactly: products with the cells that a block of results sees, of bytes where int8_pairs.h has a form
// of the weights, else of 16-bit integers; or, with one channel per group, sums channel by channel.
//
// Cells outside an image are its zero point. So the zero point's part of each sum depends on the weights
// alone: sum of (x - zero) w = sum of x w - zero * (sum of w).
#include <algorithm>

#include "plugins/cpu/conv/integer.h"
#include "plugins/cpu/matmul/int8_pairs.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {
namespace {

struct Images {
  Conv s;
  IntegerForm form;
  int32_t zero = 0;  // of the cells
  bool is_signed = false;
  const char* panels = nullptr;
  Int8Result result;
  const IntegerLoopTable* loops = &IntegerLoops();
  int64_t block = 0, parts = 1;  // results per block; parts of a group's channels, which do not share cells
  bool pointwise = false;

  bool IsDepthwise() const { return s.groups > 1 && s.c == s.groups && s.o == s.groups; }
  // Whether a result sees the cell at its own place only.
  bool IsPointwise() const {
    return s.w.Cells(s.w.window) == 1 && s.groups == 1 &&
           std::equal(s.w.image, s.w.image + s.w.rank, s.w.out) &&
           std::all_of(s.w.lo, s.w.lo + s.w.rank, [](int64_t lo) { return lo == 0; });
  }
  int64_t Depth() const { return s.PerGroupIn() * s.w.Cells(s.w.window); }
  int64_t CellBytes() const { return form.product->bytes ? 1 : 2; }
  int64_t Groups() const { return (Depth() + form.product->group - 1) / form.product->group; }
  int64_t Panel() const { return form.product->panel; }
  int64_t Panels() const { return (s.PerGroupOut() + Panel() - 1) / Panel(); }  // of a group
  uint64_t PanelBytes() const {
    const int64_t extra = Panel() / kPairColumns * ExtraGroups::Bytes(form.extra);
    return static_cast<uint64_t>(Groups() * Panel() * 4 + extra);
  }
  // Whether x has the cells as products take them.
  bool AsIs() const {
    return pointwise && form.product->bytes && !is_signed && Depth() % form.product->group == 0;
  }
  uint64_t SumsAt() const {  // the sums of the weights, after the panels
    return IsDepthwise() ? static_cast<uint64_t>(s.o * Depth()) * 2
                         : PanelBytes() * static_cast<uint64_t>(s.groups * Panels());
  }
  int64_t Results() const { return s.n * s.w.Cells(s.w.out); }
  int64_t Blocks() const { return (Results() + block - 1) / block; }
};

// Where the window of a result begins.
struct Place {
  int64_t image, at[kMaxImage];
};
Place PlaceOf(const Conv& s, int64_t result) {
  const int64_t cells = s.w.Cells(s.w.out);
  Place p = {result / cells, {}};
  Unravel(result % cells, s.w.out, s.w.rank, p.at);
  return p;
}

// Calls f(first cell of the window, image offset of the cell that it sees; negative: outside, cells) for runs
// of cells along the last dim, which are all inside or all outside the image.
template <class F>
void EachRun(const Window& w, const Place& place, F&& f) {
  const int last = w.rank - 1;
  const int64_t n = w.window[last], outer = Product(w.window, last);
  int64_t first = 0, k[kMaxImage] = {};
  while (first < n && w.At(last, place.at[last], first) < 0) first++;
  int64_t stop = first;
  while (stop < n && w.At(last, place.at[last], stop) < w.image[last]) stop++;
  for (int64_t c = 0; c < outer; c++) {
    int64_t row = 0;
    bool inside = first < stop;
    for (int d = 0; d < last; d++) {
      const int64_t at = w.At(d, place.at[d], k[d]);
      inside &= at >= 0 && at < w.image[d];
      row = row * w.image[d] + at;
    }
    for (int d = last; d-- > 0 && ++k[d] == w.window[d];) k[d] = 0;
    if (!inside) {
      f(c * n, -1, n);
      continue;
    }
    if (first > 0) f(c * n, -1, first);
    f(c * n + first, row * w.image[last] + w.At(last, place.at[last], first), stop - first);
    if (stop < n) f(c * n + stop, -1, n - stop);
  }
}

// n cells as products take them.
void Convert(const Images& m, const char* from, int64_t n, char* to) {
  if (!m.form.product->bytes) return m.loops->widen(from, m.is_signed, n, reinterpret_cast<int16_t*>(to));
  if (m.is_signed) return m.loops->raise(from, n, to);
  std::memcpy(to, from, static_cast<size_t>(n));
}
void FillZero(const Images& m, int64_t n, char* to) {
  if (m.form.product->bytes)
    std::memset(to, m.zero, static_cast<size_t>(n));
  else
    std::fill_n(reinterpret_cast<int16_t*>(to), n, static_cast<int16_t>(m.zero));
}

// The cells that a result of group g sees, in the order of the window.
void Gather(const Images& m, const char* x, int64_t result, int64_t g, char* to) {
  const Conv& s = m.s;
  const int64_t in = s.PerGroupIn(), step = s.w.dil[s.w.rank - 1], bytes = in * m.CellBytes();
  if (m.pointwise) return Convert(m, x + result * in, in, to);
  const Place place = PlaceOf(s, result);
  x += place.image * s.w.Cells(s.w.image) * s.c + g * in;
  EachRun(s.w, place, [&](int64_t cell, int64_t at, int64_t n) {
    char* into = to + cell * bytes;
    if (at < 0)
      FillZero(m, n * in, into);
    else if (step == 1 && s.groups == 1)
      Convert(m, x + at * s.c, n * in, into);
    else
      for (int64_t i = 0; i < n; i++) Convert(m, x + (at + i * step) * s.c, in, into + i * bytes);
  });
}

// Sums of the channels [channel, channel + n) of results from `first` on, `step` apart.
void Finish(const Images& m, const int32_t* sums, int64_t step, int64_t n, int64_t first, int64_t count,
            int64_t channel, char* y) {
  const auto at = static_cast<uint64_t>(first * m.s.o + channel);
  m.form.product->finish(sums, step, count, n, m.result, channel, y + at * m.result.Bytes(), m.s.o);
}

// The memory that a thread needs for a block.
struct Workspace {
  int64_t row;      // bytes of the cells of a result
  int64_t columns;  // channels of a part
  Bytes cells, sums;
  explicit Workspace(const Images& m)
      : row(m.Groups() * 4),
        columns((m.Panels() + m.parts - 1) / m.parts * m.Panel()),
        cells(Allocate(static_cast<size_t>(m.block * row))),
        sums(Allocate(static_cast<size_t>(m.block * columns) * 4)) {}
};

void RunPart(const keel_call* call, const Images& m, int64_t unit, const Workspace& own) {
  const int64_t part = unit % m.parts, g = unit / m.parts % m.s.groups, of = m.s.PerGroupOut();
  const int64_t first = unit / m.parts / m.s.groups * m.block, n = std::min(m.block, m.Results() - first);
  const int64_t begin = m.Panels() * part / m.parts, end = m.Panels() * (part + 1) / m.parts;
  const char* cells = m.AsIs() ? In<char>(call, 0) + first * own.row : own.cells.get();
  for (int64_t i = 0; i < n && !m.AsIs(); i++) {
    char* row = own.cells.get() + i * own.row;
    if (own.row > 0) std::memset(row + own.row - 4, 0, 4);  // the end of the last group
    Gather(m, In<char>(call, 0), first + i, g, row);
  }
  auto* sums = reinterpret_cast<int32_t*>(own.sums.get());
  const auto* weight_sums = reinterpret_cast<const int32_t*>(m.panels + m.SumsAt()) + g * of;
  for (int64_t p = begin; p < end; p++) {
    const Int8Ends ends = {&m.zero, nullptr, 0, nullptr, weight_sums + p * m.Panel()};
    const auto panel = static_cast<uint64_t>(g * m.Panels() + p) * m.PanelBytes();
    m.form.product->multiply(cells, own.row, {m.panels + panel, m.Groups(), m.form.extra}, n,
                             std::min(m.Panel(), of - p * m.Panel()), ends, sums + (p - begin) * m.Panel(),
                             own.columns);
  }
  const int64_t channel = begin * m.Panel(), channels = std::min(end * m.Panel(), of) - channel;
  Finish(m, sums, own.columns, channels, first, n, g * of + channel, Out<char>(call, 0));
}

void RunDepthwise(const keel_call* call, const Images& m, int64_t result, int32_t* sums) {
  const int64_t c = m.s.c, step = m.s.w.dil[m.s.w.rank - 1];
  const Place place = PlaceOf(m.s, result);
  const char* x = In<char>(call, 0) + place.image * m.s.w.Cells(m.s.w.image) * c;
  const auto* w = reinterpret_cast<const int16_t*>(m.panels);
  std::fill_n(sums, c, 0);
  EachRun(m.s.w, place, [&](int64_t cell, int64_t at, int64_t n) {
    for (int64_t i = 0; at >= 0 && i < n; i++)
      m.loops->accumulate(x + (at + i * step) * c, m.is_signed, m.zero, w + (cell + i) * c, c, sums);
  });
  Finish(m, sums, c, c, result, 1, 0, Out<char>(call, 0));
}

keel_rc RunImages(const keel_call* call) {
  const Images& m = State<Images>(call);
  if (m.IsDepthwise()) {
    ParallelFor(call, m.Results(), m.Depth() * m.s.c / 4, [&](int64_t begin, int64_t end) {
      std::vector<int32_t> sums(static_cast<size_t>(m.s.c));
      for (int64_t i = begin; i < end; i++) RunDepthwise(call, m, i, sums.data());
    });
    return Done(call);
  }
  const int64_t cost = m.block * m.Depth() * m.s.PerGroupOut() / m.parts / 32;
  ParallelFor(call, m.Blocks() * m.s.groups * m.parts, cost, [&](int64_t begin, int64_t end) {
    const Workspace own(m);
    for (int64_t u = begin; u < end; u++) RunPart(call, m, u, own);
  });
  return Done(call);
}

// A block's cells and sums stay in the cache. Blocks that do not suffice for all threads are cut by channels.
void CutBlocks(Images* m) {
  constexpr int64_t kCache = 192 << 10, kRows = 12, kMost = 96, kPerThread = 3;
  const int64_t row = m->Depth() * m->CellBytes() + m->s.PerGroupOut() * 4;
  m->block = std::clamp(kCache / row / kRows * kRows, kRows, kMost);
  const int64_t units = std::max<int64_t>(m->Blocks() * m->s.groups, 1), threads = Budget();
  if (threads > 1 && units < kPerThread * threads)
    m->parts = std::clamp<int64_t>((kPerThread * threads + units - 1) / units, 1, m->Panels());
}

Images ImagesOf(const Conv& s, const IntegerForm& form) {
  Images m;
  m.s = s;
  m.form = form;
  return m;
}

// The weights of each group as a matrix [cells of a window, results]; empty if they are no bytes.
std::vector<int8_t> ByteMatrices(const Conv& s, const std::vector<int16_t>& w) {
  const int64_t in = s.PerGroupIn(), of = s.PerGroupOut(), cells = s.w.Cells(s.w.window), depth = in * cells;
  if (!std::ranges::all_of(w, [](int16_t x) { return x == static_cast<int8_t>(x); })) return {};
  std::vector<int8_t> made(w.size());
  for (int64_t o = 0; o < s.o; o++)
    for (int64_t i = 0; i < depth; i++)
      made[static_cast<size_t>((o / of * depth + i) * of + o % of)] =
          static_cast<int8_t>(w[static_cast<size_t>((o * in + i % in) * cells + i / in)]);
  return made;
}

void PackBytes(const Images& m, const std::vector<int16_t>& w, char* to) {
  const int64_t of = m.s.PerGroupOut(), matrix = m.Depth() * of;
  const std::vector<int8_t> bytes = ByteMatrices(m.s, w);
  auto* sums = reinterpret_cast<int32_t*>(to + m.SumsAt());
  for (int64_t p = 0; p < m.s.groups * m.Panels(); p++, to += m.PanelBytes()) {
    const int64_t g = p / m.Panels(), first = p % m.Panels() * m.Panel();
    m.form.product->pack(bytes.data() + g * matrix, true, 0, m.Depth(), of, first, to, sums + g * of + first);
    SplitPairs(to, m.Groups(), m.Panel(), m.form.extra);
  }
}

void PackPairs(const Images& m, const std::vector<int16_t>& w, char* to) {
  const Conv& s = m.s;
  const int64_t in = s.PerGroupIn(), cells = s.w.Cells(s.w.window), panel = m.Panel();
  auto* packed = reinterpret_cast<int16_t*>(to);
  auto* sums = reinterpret_cast<uint32_t*>(to + m.SumsAt());
  for (int64_t o = 0; o < s.o; o++) {
    const int64_t g = o / s.PerGroupOut(), j = o % s.PerGroupOut();
    int16_t* column = packed + (g * m.Panels() + j / panel) * m.Groups() * panel * 2 + j % panel * 2;
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

}  // namespace

IntegerForm SelectForm(const Conv& s, const std::vector<int16_t>& w) {
  const Int8Kernel *pairs = Int8PairLoops(), *plain = &Int16Loops();
  if (pairs == nullptr || s.PerGroupOut() <= plain->panel) return {plain};
  const std::vector<int8_t> bytes = ByteMatrices(s, w);
  if (bytes.empty()) return {plain};
  const int64_t depth = s.PerGroupIn() * s.w.Cells(s.w.window);
  const PairShift found = FindPairShift(bytes.data(), true, s.groups, depth, s.PerGroupOut(), false);
  return found.extra < 0 ? IntegerForm{plain} : IntegerForm{pairs, found.extra};
}

uint64_t IntegerPanelBytes(const Conv& s, const IntegerForm& form) {
  return ImagesOf(s, form).SumsAt() + static_cast<uint64_t>(s.o) * 4;
}

void PackIntegerPanels(const Conv& s, const IntegerForm& form, const std::vector<int16_t>& w, char* to) {
  const Images m = ImagesOf(s, form);
  std::memset(to, 0, IntegerPanelBytes(s, form));
  form.product->bytes ? PackBytes(m, w, to) : PackPairs(m, w, to);
}

void KeepIntegerImages(const Conv& s, const IntegerForm& form, int32_t x_zero, bool x_signed,
                       const void* panels, Int8Result result, keel_launch* launch) {
  const int32_t raised = form.product->bytes && x_signed ? 128 : 0;
  Images m = {s, form, x_zero + raised, x_signed, static_cast<const char*>(panels), std::move(result)};
  m.pointwise = m.IsPointwise();
  CutBlocks(&m);
  Keep(launch, std::move(m), Guard<RunImages>);
}

}  // namespace keel_cpu
