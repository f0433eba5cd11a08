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
constexpr int64_t kFewChannels = 4;  // of a plain image; each has rows of its own in memory

struct Strips {
  StripConv first, second;
  StripLoops loops = *StripLoopsHere();
  int64_t group = 1, ring = kWindow;    // rows
  int64_t strips = 1;                   // of an image
  bool plain = ReadsPlain(first.s);     // the layout of the image that `first` sees
  int64_t inside = 0, inside_stop = 0;  // pixels whose windows are within the rows of a plain image

  int64_t Panels() const { return first.s.o / kStripLanes; }
  int64_t Depth() const { return first.s.c * first.s.w.Cells(first.s.w.window); }
  int64_t Units() const { return first.s.n * strips * Panels(); }
  int64_t RowSize() const { return first.s.w.out[1] * kStripLanes; }
  int64_t Zeros() const { return plain ? first.s.w.image[1] : 0; }  // of a row outside the image
  int64_t Work() const { return ring * RowSize() + Zeros(); }       // numbers
};

StripEnd EndOf(const StripConv& conv, int64_t panel) {
  return {conv.end.bias.data() + panel * kStripLanes, conv.end.low, conv.end.high};
}

// The cells of a plain image that a row of windows sees, in place, in the order of PackImagePanels. Only
// pixels whose windows exceed a row are copied.
class SeenCells {
 public:
  // zeros: in place of rows outside the image.
  SeenCells(const Conv& s, const float* x, int64_t row, const float* zeros) : w_(s.w), channels_(s.c) {
    for (int64_t k = 0; k < w_.window[0]; k++) {
      const int64_t at = w_.At(0, row, k);
      const bool seen = at >= 0 && at < w_.image[0];
      for (int64_t c = 0; c < channels_; c++)
        rows_[k * channels_ + c] = seen ? x + (c * w_.image[0] + at) * w_.image[1] : zeros;
    }
  }
  // Where each number of a pixel is, whose window is within the rows.
  const float* const* Of(int64_t pixel) {
    Each([&](int64_t n, const float* row, int64_t k) { places_[n] = row + w_.At(1, pixel, k); });
    return places_;
  }
  // The numbers of a pixel, zeros outside the rows.
  const float* Copied(int64_t pixel) {
    Each([&](int64_t n, const float* row, int64_t k) {
      const int64_t at = w_.At(1, pixel, k);
      numbers_[n] = at >= 0 && at < w_.image[1] ? row[at] : 0.0F;
    });
    return numbers_;
  }

 private:
  // f(number, row of cells, column of the window)
  void Each(auto&& f) {
    int64_t n = 0;
    for (int64_t k = 0; k < w_.window[0]; k++)
      for (int64_t i = 0; i < w_.window[1]; i++)
        for (int64_t c = 0; c < channels_; c++) f(n++, rows_[k * channels_ + c], i);
  }

  const Window& w_;
  int64_t channels_;
  const float *rows_[kMostDepth], *places_[kMostDepth];
  float numbers_[kMostDepth];
};

// The rows of an image that are in the ring, and how to compute more.
class Ring {
 public:
  Ring(const Strips& m, const float* x, int64_t panel, int64_t next, float* work)
      : m_(m),
        x_(x),
        panel_(m.first.weights + panel * m.Depth() * kStripLanes),
        end_(EndOf(m.first, panel)),
        next_(next),
        rows_(work) {}

  void ComputeUntil(int64_t stop) {
    while (next_ < stop) {
      const int64_t n =
          m_.plain ? 1 : std::min({m_.group, m_.first.s.w.out[0] - next_, m_.ring - next_ % m_.ring});
      if (m_.plain)
        ComputeOfPlain();
      else
        Compute(n);
      next_ += n;
    }
  }
  float* Row(int64_t row) const { return rows_ + row % m_.ring * m_.RowSize(); }

 private:
  void Compute(int64_t n) {
    const int64_t width = m_.first.s.w.out[1], depth = m_.Depth();
    m_.loops.product(x_ + next_ * width * depth, depth, panel_, end_, n * width, Row(next_));
  }
  void ComputeOfPlain() {
    const Window& w = m_.first.s.w;
    SeenCells cells(m_.first.s, x_, next_, rows_ + m_.ring * m_.RowSize());
    float* y = Row(next_);
    const auto edge = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        m_.loops.product(cells.Copied(i), m_.Depth(), panel_, end_, 1, y + i * kStripLanes);
    };
    edge(0, m_.inside);
    if (m_.inside < m_.inside_stop)
      m_.loops.row_product[w.stride[1] - 1](cells.Of(m_.inside), m_.Depth(), panel_, end_,
                                            m_.inside_stop - m_.inside, y + m_.inside * kStripLanes);
    edge(m_.inside_stop, w.out[1]);
  }

  const Strips& m_;
  const float* x_;
  const float* panel_;
  StripEnd end_;
  int64_t next_;
  float* rows_;
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
    std::fill_n(numbers + m.ring * m.RowSize(), m.Zeros(), 0.0F);
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
  for (int64_t group = 1; group <= height && !m->plain; group++) {
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

// The first window column decides where `inside` begins, the last one where it ends.
void FindInside(Strips* m) {
  const Window& w = m->first.s.w;
  int64_t first, stop;
  w.Range(1, 0, &m->inside, &stop);
  w.Range(1, w.window[1] - 1, &first, &m->inside_stop);
  m->inside_stop = std::max(m->inside, m->inside_stop);
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
  if (m.plain) FindInside(&m);
  Cut(&m);
  Keep(launch, std::move(m), Guard<RunStrips>);
}

}  // namespace keel_cpu
