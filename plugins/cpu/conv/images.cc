// images.cc: see images.h.
//
// A unit of work is a block of results by some panels of weights. Long sums are taken in pieces: the cells of
// a piece, for all results of the block, stay in the second-level cache while they go through the panels.
// Blocks and pieces depend on sizes alone, so bits do not depend on the number of threads.
#include "plugins/cpu/conv/images.h"

#include <algorithm>

#include "plugins/cpu/conv/cells.h"
#include "plugins/cpu/conv/end_loops.h"
#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {
namespace {

constexpr int64_t kMostRows = 96, kRows = 12;  // results of a block; blocks are multiples of kRows
constexpr int64_t kGap = 16;                   // floats between rows of cells, which would evict one another
constexpr int64_t kPerThread = 3;              // units, at least

struct Images {
  Conv s;
  const float* panels = nullptr;
  ConvEnd end;
  const MatmulOp* op = MatmulLoops(KEEL_F32);
  EndRows* finish = EndLoop();
  bool in_place = false;                    // cells are read from the image
  int64_t block = 0, parts = 1, piece = 0;  // results; parts of the panels; numbers of a sum

  int64_t Depth() const { return s.c * s.w.Cells(s.w.window); }
  int64_t Panels() const { return op->Panels(s.o); }
  int64_t Results() const { return s.n * s.w.Cells(s.w.out); }
  int64_t Blocks() const { return (Results() + block - 1) / block; }
  int64_t Row() const { return piece + kGap; }
  const float* PanelOf(int64_t p, int64_t from) const { return panels + (p * Depth() + from) * op->panel; }
};

// The numbers [from, from + depth) of the window of a result: whole cells, zeros outside the image.
void Gather(const Images& m, const float* x, int64_t result, int64_t from, int64_t depth, float* to) {
  const Conv& s = m.s;
  const Place place = PlaceOf(s, result);
  const int64_t begin = from / s.c, end = (from + depth) / s.c, step = s.w.dil[s.w.rank - 1] * s.c;
  x += place.image * s.w.Cells(s.w.image) * s.c;
  EachRun(s.w, place, [&](int64_t cell, int64_t at, int64_t n) {
    const int64_t first = std::max(cell, begin), stop = std::min(cell + n, end);
    if (first >= stop) return;
    float* into = to + (first - begin) * s.c;
    const float* seen = x + at * s.c + (first - cell) * step;
    if (at < 0)
      std::fill_n(into, (stop - first) * s.c, 0.0F);
    else if (step == s.c)
      std::copy_n(seen, (stop - first) * s.c, into);
    else
      for (int64_t i = 0; i < stop - first; i++) std::copy_n(seen + i * step, s.c, into + i * s.c);
  });
}

Matrix CellsOf(const keel_call* call, const Images& m, int64_t first, int64_t rows, int64_t from,
               float* cells) {
  const float* x = In<float>(call, 0);
  if (m.in_place) return {x + first * m.s.c + from, m.s.c, 1};
  const int64_t depth = std::min(m.piece, m.Depth() - from);
  for (int64_t i = 0; i < rows; i++) Gather(m, x, first + i, from, depth, cells + i * m.Row());
  return {cells, m.Row(), 1};
}

// The cells of the block after the one at `first`, if it is read from the image.
Next NextCells(const keel_call* call, const Images& m, int64_t first) {
  const int64_t next = first + m.block, rows = std::min(m.block, m.Results() - next);
  if (!m.in_place || rows <= 0 || m.parts > 1 || m.piece < m.Depth()) return {};
  return {In<float>(call, 0) + next * m.s.c, rows * m.s.c * static_cast<int64_t>(sizeof(float))};
}

void RunUnit(const keel_call* call, const Images& m, int64_t unit, float* cells) {
  const MatmulOp& op = *m.op;
  const int64_t o = m.s.o, depth = m.Depth(), part = unit % m.parts, first = unit / m.parts * m.block,
                rows = std::min(m.block, m.Results() - first);
  const int64_t begin = m.Panels() * part / m.parts, end = m.Panels() * (part + 1) / m.parts;
  float* y = Out<float>(call, 0) + first * o;
  const float* added = m.end.adds ? In<float>(call, 1) + first * o : nullptr;
  const bool adds = added == y;
  const Next after = NextCells(call, m, first);
  for (int64_t from = 0; from < depth; from += m.piece) {
    const int64_t numbers = std::min(m.piece, depth - from);
    const bool last = from + numbers == depth;
    const Matrix a = CellsOf(call, m, first, rows, from, cells);
    for (int64_t p = begin; p < end; p++) {
      const int64_t at = p * op.panel, bytes = numbers * op.panel * static_cast<int64_t>(sizeof(float));
      const Next next = p + 1 < end ? Next{m.PanelOf(p + 1, from), bytes} : after;
      const Start start = {from > 0 || m.end.bias.empty() ? nullptr : m.end.bias.data() + at};
      op.multiply(a, {m.PanelOf(p, from), op.panel, next, start}, rows, o, numbers, p, adds || from > 0, y);
      if (last && (m.end.IsBound() || (added != nullptr && !adds)))
        m.finish(y + at, adds || added == nullptr ? nullptr : added + at, o, rows, std::min(op.panel, o - at),
                 m.end.low, m.end.high);
    }
  }
}

keel_rc RunImages(const keel_call* call) {
  const Images& m = State<Images>(call);
  const int64_t cost = m.block * m.Depth() * m.s.o / m.parts / 16;
  ParallelFor(call, m.Blocks() * m.parts, cost, [&](int64_t begin, int64_t end) {
    const Bytes cells =
        m.in_place ? nullptr : Allocate(static_cast<size_t>(m.block * m.Row()) * sizeof(float));
    for (int64_t u = begin; u < end; u++) RunUnit(call, m, u, reinterpret_cast<float*>(cells.get()));
  });
  return Done(call);
}

// Blocks of about the same size. If there are too few for all threads, channels are cut, too.
void Cut(Images* m) {
  const int64_t results = std::max<int64_t>(m->Results(), 1), blocks = (results + kMostRows - 1) / kMostRows;
  m->block = ((results + blocks - 1) / blocks + kRows - 1) / kRows * kRows;
  const int64_t units = m->Blocks(), threads = Budget();
  if (threads > 1 && units < kPerThread * threads)
    m->parts = std::clamp<int64_t>((kPerThread * threads + units - 1) / units, 1, m->Panels());
  m->piece = std::min(m->op->part, m->Depth());
  if (m->in_place) return;
  const int64_t cells = m->s.w.Cells(m->s.w.window), most = std::max<int64_t>(m->op->part / m->s.c, 1);
  const int64_t pieces = (cells + most - 1) / most;
  m->piece = (cells + pieces - 1) / pieces * m->s.c;
}

}  // namespace

uint64_t ImagePanelBytes(const Conv& s, int64_t panel) {
  const int64_t channels = (s.o + panel - 1) / panel * panel;
  return static_cast<uint64_t>(channels * s.c * s.w.Cells(s.w.window)) * sizeof(float);
}

void PackImagePanels(const Conv& s, int64_t panel, const float* w, float* to) {
  const int64_t cells = s.w.Cells(s.w.window), depth = s.c * cells;
  std::memset(to, 0, ImagePanelBytes(s, panel));
  for (int64_t o = 0; o < s.o; o++) {
    float* column = to + o / panel * depth * panel + o % panel;
    for (int64_t c = 0; c < s.c; c++)
      for (int64_t i = 0; i < cells; i++) column[(i * s.c + c) * panel] = *w++;
  }
}

void KeepImages(const Conv& s, const float* panels, ConvEnd end, keel_launch* launch) {
  Images m = {s, panels, std::move(end)};
  if (!m.end.bias.empty()) m.end.bias.resize(static_cast<size_t>(m.Panels() * m.op->panel));
  m.in_place = IsPointwise(s);
  Cut(&m);
  Keep(launch, std::move(m), Guard<RunImages>);
}

}  // namespace keel_cpu
