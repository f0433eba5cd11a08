// strips.cc: see strips.h.
//
// A unit of work is kStripLanes channels of a strip of rows. Rows of the image between the two convolutions
// are computed in groups, into a ring of rows, just before the windows that see them. Sums do not depend on
// how rows are grouped or units are cut, so bits do not depend on the number of threads.
#include "plugins/cpu/conv/strips.h"

#include <algorithm>

#include "plugins/cpu/conv/cells.h"
#include "plugins/cpu/conv/strip_loops.h"
#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/onednn/cut.h"
#include "plugins/cpu/onednn/onednn.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

constexpr int64_t kWindow = 3;
constexpr int64_t kRing = 6 << 10;   // numbers of the ring, at most, unless three rows have more
constexpr int64_t kPerThread = 3;    // units, at least
constexpr int64_t kLeastStrip = 4;   // rows; the next strip computes two of the rows between once more
constexpr int64_t kMostDepth = 192;  // so that a panel and the ring fit the first-level cache
constexpr int64_t kFewChannels = 4;  // of a plain image: windows of more are copied too often

struct Strips {
  StripConv first, second;
  StripLoops loops = *StripLoopsHere();
  int64_t group = 1, ring = kWindow;  // rows
  int64_t strips = 1;                 // of an image
  // Of a plain image: numbers of a row of cells within its padding, and where a window's cells are in such
  // rows of each channel.
  int64_t pitch = 0;
  std::vector<int64_t> places = {};

  int64_t Panels() const { return first.s.o / kStripLanes; }
  int64_t Units() const { return first.s.n * strips * Panels(); }
  int64_t RowSize() const { return first.s.w.out[1] * kStripLanes; }
  int64_t CellRows() const { return places.empty() ? 0 : first.s.c * first.s.w.window[0]; }
  int64_t Work() const { return ring * RowSize() + CellRows() * pitch; }  // numbers
};

StripEnd EndOf(const StripConv& conv, int64_t panel) {
  return {conv.end.bias.data() + panel * kStripLanes, conv.end.low, conv.end.high};
}

// The rows of cells that a row of results sees, of each channel. Padding stays zero.
void CopyCells(const Strips& m, const float* x, int64_t row, float* to) {
  const Window& w = m.first.s.w;
  const int64_t width = w.image[1], n = std::min(width, m.pitch - w.lo[1]);
  for (int64_t c = 0; c < m.first.s.c; c++, x += w.image[0] * width)
    for (int64_t k = 0; k < w.window[0]; k++, to += m.pitch) {
      const int64_t at = w.At(0, row, k);
      if (at < 0 || at >= w.image[0])
        std::fill_n(to + w.lo[1], n, 0.0F);
      else
        std::copy_n(x + at * width, n, to + w.lo[1]);
    }
}

// The rows of an image that are in the ring, and how to compute more.
class Ring {
 public:
  Ring(const Strips& m, const float* x, int64_t panel, int64_t next, float* work)
      : m_(m),
        x_(x),
        panel_(m.first.weights + panel * static_cast<int64_t>(Depth(m)) * kStripLanes),
        end_(EndOf(m.first, panel)),
        next_(next),
        rows_(work),
        cells_(work + m.ring * m.RowSize()) {}

  void ComputeUntil(int64_t stop) {
    while (next_ < stop) {
      const int64_t n = std::min({m_.group, m_.first.s.w.out[0] - next_, m_.ring - next_ % m_.ring});
      if (m_.places.empty())
        Compute(n);
      else
        ComputeOfPlain();
      next_ += m_.places.empty() ? n : 1;
    }
  }
  float* Row(int64_t row) const { return rows_ + row % m_.ring * m_.RowSize(); }

 private:
  static int64_t Depth(const Strips& m) { return m.first.s.c * m.first.s.w.Cells(m.first.s.w.window); }
  void Compute(int64_t n) {
    const int64_t width = m_.first.s.w.out[1], depth = Depth(m_);
    m_.loops.product(x_ + next_ * width * depth, depth, panel_, end_, n * width, Row(next_));
  }
  void ComputeOfPlain() {
    const Window& w = m_.first.s.w;
    CopyCells(m_, x_, next_, cells_);
    m_.loops.row_product[w.stride[1] - 1](cells_, m_.places.data(), Depth(m_), panel_, end_, w.out[1],
                                          Row(next_));
  }

  const Strips& m_;
  const float* x_;
  const float* panel_;
  StripEnd end_;
  int64_t next_;
  float *rows_, *cells_;
};

void RunUnit(const keel_call* call, const Strips& m, int64_t unit, float* work) {
  const Window& w = m.second.s.w;
  const int64_t panel = unit % m.Panels(), strip = unit / m.Panels() % m.strips,
                image = unit / m.Panels() / m.strips, channels = m.second.s.o;
  const int64_t begin = w.out[0] * strip / m.strips, end = w.out[0] * (strip + 1) / m.strips;
  const float* window = m.second.weights + panel * kWindow * kWindow * kStripLanes;
  Ring ring(m, In<float>(call, 0) + image * m.first.s.w.Cells(m.first.s.w.image) * m.first.s.c, panel,
            std::max<int64_t>(w.At(0, begin, 0), 0), work);
  float* y =
      Out<float>(call, 0) + (image * w.Cells(w.out) + begin * w.out[1]) * channels + panel * kStripLanes;
  for (int64_t i = begin; i < end; i++, y += w.out[1] * channels) {
    const int64_t top = w.At(0, i, 0), stop = std::min(top + kWindow, w.image[0]);
    ring.ComputeUntil(stop);
    StripRows seen = {{}, static_cast<int>(std::max<int64_t>(-top, 0)), static_cast<int>(stop - top)};
    for (int k = seen.first; k < seen.stop; k++) seen.at[k] = ring.Row(top + k);
    m.loops.windows[w.stride[1] - 1](seen, w.image[1], w.lo[1], window, EndOf(m.second, panel), w.out[1], y,
                                     channels);
  }
}

keel_rc RunStrips(const keel_call* call) {
  const Strips& m = State<Strips>(call);
  const int64_t work = m.first.s.Work() + m.second.s.Work();
  ParallelFor(call, m.Units(), work / m.Units() / 16, [&](int64_t begin, int64_t end) {
    const Bytes work = Allocate(static_cast<size_t>(m.Work()) * sizeof(float));
    auto* numbers = reinterpret_cast<float*>(work.get());
    std::fill_n(numbers + m.ring * m.RowSize(), m.CellRows() * m.pitch, 0.0F);
    for (int64_t u = begin; u < end; u++) RunUnit(call, m, u, numbers);
  });
  return Done(call);
}

// Groups of rows whose pixels fill blocks best, among groups that fit; a ring is groups without a gap, and
// holds the rows of groups before that a window sees.
void Cut(Strips* m) {
  const int64_t height = m->first.s.w.out[0], width = m->first.s.w.out[1];
  const auto ring_of = [&](int64_t group) {
    return std::min((kWindow - 1 + 2 * group - 1) / group * group, std::max(height, kWindow));
  };
  double best = 0;
  for (int64_t group = 1; group <= height && m->places.empty(); group++) {
    const int64_t pixels = group * width, blocks = (pixels + m->loops.block - 1) / m->loops.block;
    const double filled = static_cast<double>(pixels) / static_cast<double>(blocks * m->loops.block);
    if (group > 1 && (ring_of(group) * m->RowSize() > kRing || filled <= best)) continue;
    best = filled;
    m->group = group;
  }
  m->ring = ring_of(m->group);
  // Enough units for all threads, and none too long to be cancelled.
  const int64_t units = m->Units(), wanted = Budget() > 1 ? kPerThread * Budget() : 1,
                unit_work = (m->first.s.Work() + m->second.s.Work()) / units;
  const int64_t strips = std::max((wanted + units - 1) / units, (unit_work + PartWork() - 1) / PartWork());
  m->strips = std::clamp<int64_t>(strips, 1, std::max<int64_t>(m->second.s.w.out[0] / kLeastStrip, 1));
}

void PlaceCells(Strips* m) {
  const Conv& s = m->first.s;
  m->pitch = std::max((s.w.out[1] - 1) * s.w.stride[1] + s.w.Reach(1), s.w.lo[1]);
  for (int64_t k = 0; k < s.w.window[0]; k++)  // as PackImagePanels orders numbers
    for (int64_t i = 0; i < s.w.window[1]; i++)
      for (int64_t c = 0; c < s.c; c++)
        m->places.push_back((c * s.w.window[0] + k) * m->pitch + i * s.w.dil[1]);
}

}  // namespace

bool ReadsPlain(const Conv& first) { return !IsPointwise(first); }

// Measured on one thread, relative to oneDNN's two primitives: AVX2 (AMD EPYC 7003) 0.7 to 0.95 of the time,
// AVX-512 (AMD, Zen 4) 0.7 to 0.98. Not measured with AVX-512 on Intel.
bool FitsStrips(const Conv& first, const Conv& second) {
  const Window& w = second.w;
  if (StripLoopsHere() == nullptr || w.rank != 2 || first.c * first.w.Cells(first.w.window) > kMostDepth)
    return false;
  if (ReadsPlain(first) && (first.groups > 1 || first.c > kFewChannels || first.w.stride[1] > 2))
    return false;
  bool fits = first.o % kStripLanes == 0 && second.groups == second.c && second.o == second.c &&
              w.stride[0] == w.stride[1] && w.stride[1] <= 2 && w.out[1] >= kStripTile && first.n > 0;
  const int64_t least_ring = kWindow * w.image[1] * kStripLanes * static_cast<int64_t>(sizeof(float));
  fits &= least_ring <= SecondLevelCache() / 2;
  for (int d = 0; fits && d < 2; d++) {
    const int64_t seen = (w.out[d] - 1) * w.stride[d] - w.lo[d] + kWindow;
    fits =
        w.window[d] == kWindow && w.dil[d] == 1 && (w.lo[d] == 0 || w.lo[d] == 1) && seen <= w.image[d] + 1;
  }
  return fits;
}

void PackStripWindows(const Conv& second, const float* w, float* to) {
  constexpr int64_t kCells = kWindow * kWindow;
  for (int64_t o = 0; o < second.o; o++)
    for (int64_t i = 0; i < kCells; i++)
      to[(o / kStripLanes * kCells + i) * kStripLanes + o % kStripLanes] = *w++;
}

void KeepStrips(StripConv first, StripConv second, keel_launch* launch) {
  Strips m = {std::move(first), std::move(second)};
  for (ConvEnd* end : {&m.first.end, &m.second.end}) end->bias.resize(static_cast<size_t>(m.first.s.o));
  if (ReadsPlain(m.first.s)) PlaceCells(&m);
  Cut(&m);
  Keep(launch, std::move(m), Guard<RunStrips>);
}

}  // namespace keel_cpu
