// pool.cc: max pooling in a region, and its gradient, by the plugin's own loops on images whose channels are
// contiguous, all of them or in blocks. oneDNN's max pooling loses NaN, and returns the lowest finite number
// for windows of -infinity.
#include "plugins/cpu/conv/window.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/pooling/loops.h"
#include "plugins/cpu/regions/relu_pool_grad.h"

namespace keel_cpu {
namespace {

// Strides of pixels in a layout, in elements.
struct PixelStrides {
  int64_t image = 0, group = 0, dims[kMaxImage] = {};
};

struct BlockedMax {
  Window w;
  int64_t images = 0, groups = 1, channels = 0;  // in one group
  PixelStrides x, y;
  MaxOfCells loop = nullptr;
};

// False: channels are not contiguous.
bool Read(const Layout& layout, BlockedMax* m, PixelStrides* places) {
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

// Calls f for each run of a row of results: (cells that the first pixel sees, index of the first pixel,
// pixels). The window of the next pixel is one stride further.
template <class F>
void EachRun(const Window& w, const PixelStrides& x, int64_t row, F&& f) {
  const int last = w.rank - 1;
  int64_t place[kMaxImage], k[kMaxImage];
  Unravel(row, w.out, last, place);
  Dims outer, cells;  // cells within the image of the outer window dims; of the whole window
  for (int64_t c = 0; c < Product(w.window, last); c++) {
    Unravel(c, w.window, last, k);
    int64_t at = 0;
    bool inside = true;
    for (int d = 0; d < last; d++) {
      const int64_t i = w.At(d, place[d], k[d]);
      inside &= i >= 0 && i < w.image[d];
      at += i * x.dims[d];
    }
    if (inside) outer.push_back(at);
  }
  const auto some = [&](int64_t o, int64_t pixels) {
    cells.clear();
    for (int64_t at : outer)
      for (int64_t c = 0; c < w.window[last]; c++)
        if (const int64_t i = w.At(last, o, c); i >= 0 && i < w.image[last])
          cells.push_back(at + i * x.dims[last]);
    f(cells, o, pixels);
  };
  int64_t first = 0, stop = w.out[last];  // positions whose whole window is within the image
  for (int64_t c : {int64_t{0}, w.window[last] - 1}) {
    int64_t from, to;
    w.Range(last, c, &from, &to);
    first = std::max(first, from);
    stop = std::min(stop, to);
  }
  first = std::min(first, w.out[last]);
  for (int64_t o = 0; o < first; o++) some(o, 1);
  if (first < stop) some(first, stop - first);
  for (int64_t o = std::max(first, stop); o < w.out[last]; o++) some(o, 1);
}
// The offset of a row of results.
int64_t RowAt(const Window& w, const PixelStrides& y, int64_t row) {
  int64_t place[kMaxImage], at = 0;
  Unravel(row, w.out, w.rank - 1, place);
  for (int d = 0; d + 1 < w.rank; d++) at += place[d] * y.dims[d];
  return at;
}

keel_rc RunBlockedMax(const keel_call* call) {
  const BlockedMax& m = State<BlockedMax>(call);
  const Window& w = m.w;
  const int last = w.rank - 1;
  const int64_t rows = Product(w.out, last);
  const int64_t cost = w.out[last] * w.Cells(w.window) * m.channels / 8;
  ParallelFor(call, m.images * m.groups * rows, cost, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const int64_t group = r / rows % m.groups, image = r / rows / m.groups;
      const float* x = In<float>(call, 0) + image * m.x.image + group * m.x.group;
      float* y = Out<float>(call, 0) + image * m.y.image + group * m.y.group + RowAt(w, m.y, r % rows);
      EachRun(w, m.x, r % rows, [&](const Dims& cells, int64_t o, int64_t pixels) {
        m.loop(x, cells.data(), static_cast<int64_t>(cells.size()), m.channels, pixels,
               m.x.dims[last] * w.stride[last], y + o * m.y.dims[last], m.y.dims[last]);
      });
    }
  });
  return Done(call);
}

// ---- gradient of max pooling, channels last: operands x, dy

struct Unpool {
  BlockedMax pool;
  bool tiles = false;  // windows do not overlap and cover the image
  Unpooled how = {};
  UnpoolCells loop = nullptr;
};
bool Tiles(const Window& w) {
  bool tiles = true;
  for (int d = 0; d < w.rank; d++)
    tiles &=
        w.stride[d] == w.window[d] && w.dil[d] == 1 && w.lo[d] == 0 && w.image[d] == w.out[d] * w.stride[d];
  return tiles;
}
void UnpoolRow(const keel_call* call, const Unpool& u, int64_t image, int64_t row) {
  const Window& w = u.pool.w;
  const int last = w.rank - 1;
  const PixelStrides &to = u.pool.x, &from = u.pool.y;
  const float* x = In<float>(call, 0) + image * to.image;
  const float* dy = In<float>(call, 1) + image * from.image + RowAt(w, from, row);
  float* dx = Out<float>(call, 0) + image * to.image;
  EachRun(w, to, row, [&](const Dims& cells, int64_t o, int64_t pixels) {
    if (cells.empty()) return;
    u.loop(x, cells.data(), static_cast<int64_t>(cells.size()), u.pool.channels, pixels,
           to.dims[last] * w.stride[last], dy + o * from.dims[last], from.dims[last], dx, u.how);
  });
}
// With overlapping windows the rows of an image are added in order.
keel_rc RunUnpool(const keel_call* call) {
  const auto& u = State<Unpool>(call);
  const Window& w = u.pool.w;
  const int64_t rows = Product(w.out, w.rank - 1), pixels = w.Cells(w.image) * u.pool.channels;
  const int64_t cost = w.out[w.rank - 1] * w.Cells(w.window) * u.pool.channels / 4;
  if (u.tiles)
    ParallelFor(call, u.pool.images * rows, cost, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) UnpoolRow(call, u, r / rows, r % rows);
    });
  else
    ParallelFor(call, u.pool.images, cost * rows + pixels / 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        float* dx = Out<float>(call, 0) + i * pixels;
        InChunks(call, 0, pixels, 1, [&](int64_t from, int64_t to) { std::fill(dx + from, dx + to, 0.0f); });
        InChunks(call, 0, rows, cost, [&](int64_t from, int64_t to) {
          for (int64_t r = from; r < to; r++) UnpoolRow(call, u, i, r);
        });
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
  b.EmitOwn(std::move(own), n.in, n.out, {b.BufferIn(n.in[0], x), b.ResultBuffer(n.out[0], y)});
  return true;
}

void KeepUnpool(const BodyNode& index, const Dims& x, const Dims& y, bool positive, keel_launch* launch) {
  Unpool u;
  u.pool.w = ReadWindow(index.node, x, y);
  u.pool.images = x[0];
  Read(ChannelsLast(x), &u.pool, &u.pool.x);
  Read(ChannelsLast(y), &u.pool, &u.pool.y);
  u.tiles = Tiles(u.pool.w);
  u.how = {!u.tiles, positive};
  u.loop = UnpoolCellsLoop();
  Keep(launch, std::move(u), Guard<RunUnpool>);
}

}  // namespace keel_cpu
