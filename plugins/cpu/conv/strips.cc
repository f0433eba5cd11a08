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
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {
namespace {

constexpr int64_t kWindow = 3;
constexpr int64_t kRing = 6 << 10;   // numbers of the ring, at most, unless three rows have more
constexpr int64_t kPerThread = 3;    // units, at least
constexpr int64_t kLeastStrip = 4;   // rows; the next strip computes two of the rows between once more
constexpr int64_t kMostDepth = 192;  // so that a panel and the ring fit the first-level cache

struct Strips {
  StripConv first, second;
  StripLoops loops = *StripLoopsHere();
  int64_t group = 1, ring = kWindow;  // rows
  int64_t strips = 1;                 // of an image

  int64_t Panels() const { return first.s.o / kStripLanes; }
  int64_t Units() const { return first.s.n * strips * Panels(); }
  int64_t RowSize() const { return first.s.w.image[1] * kStripLanes; }
};

StripEnd EndOf(const StripConv& conv, int64_t panel) {
  return {conv.end.bias.data() + panel * kStripLanes, conv.end.low, conv.end.high};
}

// The rows of an image that are in the ring, and how to compute more.
class Ring {
 public:
  Ring(const Strips& m, const float* x, int64_t panel, int64_t next, float* rows)
      : m_(m),
        x_(x),
        panel_(m.first.weights + panel * m.first.s.c * kStripLanes),
        end_(EndOf(m.first, panel)),
        next_(next),
        rows_(rows) {}

  void ComputeUntil(int64_t stop) {
    const int64_t height = m_.first.s.w.image[0], width = m_.first.s.w.image[1], depth = m_.first.s.c;
    while (next_ < stop) {
      const int64_t n = std::min({m_.group, height - next_, m_.ring - next_ % m_.ring});
      m_.loops.product(x_ + next_ * width * depth, depth, panel_, end_, n * width, Row(next_));
      next_ += n;
    }
  }
  float* Row(int64_t row) const { return rows_ + row % m_.ring * m_.RowSize(); }

 private:
  const Strips& m_;
  const float* x_;
  const float* panel_;
  StripEnd end_;
  int64_t next_;
  float* rows_;
};

void RunUnit(const keel_call* call, const Strips& m, int64_t unit, float* rows) {
  const Window& w = m.second.s.w;
  const int64_t panel = unit % m.Panels(), strip = unit / m.Panels() % m.strips,
                image = unit / m.Panels() / m.strips, channels = m.second.s.o;
  const int64_t begin = w.out[0] * strip / m.strips, end = w.out[0] * (strip + 1) / m.strips;
  const float* window = m.second.weights + panel * kWindow * kWindow * kStripLanes;
  Ring ring(m, In<float>(call, 0) + image * m.first.s.w.Cells(m.first.s.w.image) * m.first.s.c, panel,
            std::max<int64_t>(w.At(0, begin, 0), 0), rows);
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
    const Bytes rows = Allocate(static_cast<size_t>(m.ring * m.RowSize()) * sizeof(float));
    for (int64_t u = begin; u < end; u++) RunUnit(call, m, u, reinterpret_cast<float*>(rows.get()));
  });
  return Done(call);
}

// Groups of rows whose pixels fill blocks best, among groups that fit; a ring is groups without a gap, and holds
// the rows of groups before that a window sees.
void Cut(Strips* m) {
  const int64_t height = m->first.s.w.image[0], width = m->first.s.w.image[1];
  const auto ring_of = [&](int64_t group) {
    return std::min((kWindow - 1 + 2 * group - 1) / group * group, std::max(height, kWindow));
  };
  double best = 0;
  for (int64_t group = 1; group <= height; group++) {
    const int64_t pixels = group * width, blocks = (pixels + kStripBlock - 1) / kStripBlock;
    const double filled = static_cast<double>(pixels) / static_cast<double>(blocks * kStripBlock);
    if (group > 1 && (ring_of(group) * m->RowSize() > kRing || filled <= best)) continue;
    best = filled;
    m->group = group;
  }
  m->ring = ring_of(m->group);
  const int64_t units = m->Units(), threads = Budget(), most = m->second.s.w.out[0] / kLeastStrip;
  if (threads > 1 && units < kPerThread * threads)
    m->strips =
        std::clamp<int64_t>((kPerThread * threads + units - 1) / units, 1, std::max<int64_t>(most, 1));
}

}  // namespace

// Measured with AVX2 (AMD EPYC 7003, one thread): 0.7 to 0.95 of the time of oneDNN's two primitives.
bool FitsStrips(const Conv& first, const Conv& second) {
  const Window& w = second.w;
  if (StripLoopsHere() == nullptr || w.rank != 2 || !IsPointwise(first) || first.c > kMostDepth) return false;
  bool fits = first.o % kStripLanes == 0 && second.groups == second.c && second.o == second.c &&
              w.stride[0] == w.stride[1] && w.stride[1] <= 2 && w.out[1] >= kStripTile && first.n > 0;
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
  Cut(&m);
  Keep(launch, std::move(m), Guard<RunStrips>);
}

}  // namespace keel_cpu
