// region_pool.cc: max pooling in a region by a loop of our own, on images whose channels lie side by side,
// all or in blocks. oneDNN's loses a NaN, and gives the least finite number where all is -infinity.
#include "parallel.h"
#include "pool_loops.h"
#include "region.h"
#include "window.h"

namespace keel_cpu {
namespace {

// Where a layout has pixels: steps in elements.
struct Places {
  int64_t image = 0, group = 0, dims[kMaxImage] = {};
};

struct BlockedMax {
  Window w;
  int64_t images = 0, groups = 1, channels = 0;  // of a group
  Places x, y;
  MaxOfCells loop = nullptr;
};

// False: channels do not lie side by side.
bool Read(const Layout& layout, BlockedMax* m, Places* places) {
  const Dims padded = layout.get_padded_dims(), steps = layout.get_strides();
  const int blocks = layout.get_inner_nblks();
  if (blocks > 1 || (blocks == 1 && layout.get_inner_idxs()[0] != 1) || (blocks == 0 && steps[1] != 1))
    return false;
  m->channels = blocks == 1 ? layout.get_inner_blks()[0] : padded[1];
  m->groups = padded[1] / m->channels;
  places->image = steps[0];
  places->group = steps[1];
  for (size_t d = 2; d < steps.size(); d++) places->dims[d - 2] = steps[d];
  return true;
}

// One row of results: the places of the outer window cells that see the image are known.
void RunRow(const BlockedMax& m, const float* x, const Dims& outer, float* y) {
  const Window& w = m.w;
  const int last = w.rank - 1;
  const int64_t step = m.x.dims[last];
  Dims cells;
  const auto some = [&](int64_t o, int64_t pixels) {
    cells.clear();
    for (int64_t at : outer)
      for (int64_t k = 0; k < w.window[last]; k++)
        if (const int64_t i = w.At(last, o, k); i >= 0 && i < w.image[last]) cells.push_back(at + i * step);
    m.loop(x, cells.data(), static_cast<int64_t>(cells.size()), m.channels, pixels, step * w.stride[last],
           y + o * m.y.dims[last], m.y.dims[last]);
  };
  int64_t first = 0, stop = w.out[last];  // places whose whole window lies in the image
  for (int64_t k : {int64_t{0}, w.window[last] - 1}) {
    int64_t from, to;
    w.Range(last, k, &from, &to);
    first = std::max(first, from);
    stop = std::min(stop, to);
  }
  first = std::min(first, w.out[last]);
  for (int64_t o = 0; o < first; o++) some(o, 1);
  if (first < stop) some(first, stop - first);
  for (int64_t o = std::max(first, stop); o < w.out[last]; o++) some(o, 1);
}

keel_rc RunBlockedMax(const keel_call* call) {
  const BlockedMax& m = State<BlockedMax>(call);
  const Window& w = m.w;
  const int last = w.rank - 1;
  const int64_t rows = Product(w.out, last), outer_cells = Product(w.window, last);
  const int64_t cost = w.out[last] * w.Cells(w.window) * m.channels / 8;
  ParallelFor(call, m.images * m.groups * rows, cost, [&](int64_t begin, int64_t end) {
    Dims outer;
    for (int64_t r = begin; r < end; r++) {
      const int64_t group = r / rows % m.groups, image = r / rows / m.groups;
      int64_t place[kMaxImage], k[kMaxImage];
      Unravel(r % rows, w.out, last, place);
      float* y = Out<float>(call, 0) + image * m.y.image + group * m.y.group;
      for (int d = 0; d < last; d++) y += place[d] * m.y.dims[d];
      outer.clear();
      for (int64_t c = 0; c < outer_cells; c++) {
        Unravel(c, w.window, last, k);
        int64_t at = 0;
        bool inside = true;
        for (int d = 0; d < last; d++) {
          const int64_t i = w.At(d, place[d], k[d]);
          inside &= i >= 0 && i < w.image[d];
          at += i * m.x.dims[d];
        }
        if (inside) outer.push_back(at);
      }
      RunRow(m, In<float>(call, 0) + image * m.x.image + group * m.x.group, outer, y);
    }
  });
  return Done(call);
}

}  // namespace

bool EmitMaxPool(Builder& b, const BodyNode& n, const Layout& x, const Layout& y) {
  BlockedMax m;
  BlockedMax other;
  if (!Read(x, &m, &m.x) || !Read(y, &other, &m.y)) return false;
  if (other.channels != m.channels || other.groups != m.groups) return false;
  m.w = ReadWindow(n.node, b.Value(n.in[0]).dims, b.Value(n.out[0]).dims);
  m.images = b.Value(n.in[0]).dims[0];
  m.loop = MaxOfCellsLoop();
  auto own = std::make_unique<OwnLaunch>();
  Keep(&own->launch, std::move(m), Guard<RunBlockedMax>);
  b.EmitOwn(std::move(own), n.in, n.out, {b.Need(n.in[0], x), b.Made(n.out[0], y)});
  return true;
}

}  // namespace keel_cpu
