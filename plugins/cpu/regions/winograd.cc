// winograd.cc: a 3x3 convolution of a region with constant weights by the Winograd algorithm F(2x2, 3x3) (see
// conv/winograd_loops.h), in about 0.6 of the time. Images are channels last.
//
// A tile is 2x2 results. One thread transforms a block of tiles, multiplies it (winograd_products.h)
// and transforms it back while it is in that thread's cache. A tile's sums do not depend on its block, so
// bits do not depend on the number of threads. The cells of a tile share sums: a NaN, infinity or overflow
// summand affects results that do not depend on that cell. So the result is checked, and a region with such a
// result runs again by its careful program, which has no Winograd step.
#include <atomic>
#include <limits>

#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/conv/winograd_loops.h"
#include "plugins/cpu/regions/invalid.h"
#include "plugins/cpu/regions/ops.h"
#include "plugins/cpu/regions/winograd_products.h"

namespace keel_cpu {
namespace {

constexpr int64_t kNumbers = WinogradProducts::kNumbers;
constexpr int64_t kLeast = 24;  // minimum tiles per block for fast products

struct Winograd {
  int64_t c = 0, o = 0;
  int64_t image[2] = {}, out[2] = {}, lo[2] = {}, grid[2] = {};  // grid: tiles
  int64_t tiles = 0, block = 0, blocks = 0, slots = 0;           // slots: blocks that run concurrently
  WinogradProducts products = {};
  ConvEnd end = {};
  std::vector<float> zeros = {};
  const WinogradTable* loops = nullptr;

  uint64_t NumberBytes(int64_t channels) const {
    return Aligned(static_cast<uint64_t>(kNumbers * products.Rows(block) * channels) * sizeof(float));
  }
  uint64_t InputBytes() const { return NumberBytes(c); }
  uint64_t OutputBytes() const { return NumberBytes(o); }
  uint64_t DiscardBytes() const { return Aligned(static_cast<uint64_t>(o) * sizeof(float)); }
  uint64_t PerSlot() const {
    return InputBytes() + OutputBytes() + DiscardBytes() + products.ScratchpadBytes();
  }
};

// The image, row and column of a tile's first result.
struct TilePosition {
  int64_t n, y, x;
};
TilePosition PositionOf(const Winograd& w, int64_t tile) {
  const int64_t line = tile / w.grid[1];
  return {line / w.grid[0], line % w.grid[0] * 2, tile % w.grid[1] * 2};
}

// Pointers to the cells of a square of an image; `outside` for cells beyond the image. T: float or const
// float.
template <class T>
void Square(T* images, const int64_t* dims, int64_t channels, TilePosition at, int64_t side, T* outside,
            T** cells) {
  for (int64_t i = 0; i < side * side; i++) {
    const int64_t y = at.y + i / side, x = at.x + i % side;
    const bool inside = y >= 0 && y < dims[0] && x >= 0 && x < dims[1];
    cells[i] = inside ? images + ((at.n * dims[0] + y) * dims[1] + x) * channels : outside;
  }
}

void TransformInput(const Winograd& w, const float* x, int64_t first, int64_t count, float* to) {
  const int64_t rows = w.products.Rows(count);
  for (int64_t q = 0; q < kNumbers; q++)
    std::fill_n(to + (q * rows + count) * w.c, (rows - count) * w.c, 0.0F);
  for (int64_t t = 0; t < count; t++) {
    const TilePosition at = PositionOf(w, first + t);
    const float* cells[16];
    Square(x, w.image, w.c, {at.n, at.y - w.lo[0], at.x - w.lo[1]}, 4, w.zeros.data(), cells);
    w.loops->transform_input(cells, w.c, to + t * w.c, rows * w.c);
  }
}

bool TransformOutput(const Winograd& w, const float* from, int64_t first, int64_t count, const float* added,
                     float* y, float* discarded) {
  bool finite = true;
  const int64_t rows = w.products.Rows(count);
  for (int64_t t = 0; t < count; t++) {
    const TilePosition at = PositionOf(w, first + t);
    const float* summand[4];
    float* to[4];
    if (w.end.adds) Square(added, w.out, w.o, at, 2, w.zeros.data(), summand);
    Square(y, w.out, w.o, at, 2, discarded, to);
    finite &=
        w.loops->transform_output(from + t * w.o, rows * w.o, w.o, {w.end.bias.data(), w.end.low, w.end.high},
                                  w.end.adds ? summand : nullptr, to);
  }
  return finite;
}

// Operands: x and optionally the summand. False: a result is not finite.
bool RunBlock(const keel_call* call, const Winograd& w, int64_t block, char* workspace,
              dnnl::stream* stream) {
  const int64_t first = block * w.block, count = std::min(w.block, w.tiles - first);
  auto* transformed = reinterpret_cast<float*>(workspace);
  auto* made = reinterpret_cast<float*>(workspace + w.InputBytes());
  auto* discarded = reinterpret_cast<float*>(workspace + w.InputBytes() + w.OutputBytes());
  TransformInput(w, In<float>(call, 0), first, count, transformed);
  w.products.Run(count, transformed, made, workspace + w.PerSlot() - w.products.ScratchpadBytes(), stream);
  return TransformOutput(w, made, first, count, w.end.adds ? In<float>(call, 1) : nullptr,
                         Out<float>(call, 0), discarded);
}

keel_rc RunWinograd(const keel_call* call) {
  const Winograd& w = *State<std::unique_ptr<Winograd>>(call);
  const Team team(call);
  SetThreads(1);  // also if the caller computes all blocks: the bits of a product depend on its threads
  std::atomic<bool> finite = true, failed = false;
  const auto run_slot = [&](int64_t slot) {
    dnnl::stream stream(Engine());  // workers have no stream of their own
    char* workspace = static_cast<char*>(call->scratch) + static_cast<uint64_t>(slot) * w.PerSlot();
    for (int64_t b = w.blocks * slot / w.slots; b < w.blocks * (slot + 1) / w.slots && !Cancelled(call); b++)
      if (!RunBlock(call, w, b, workspace, &stream)) finite = false;
  };
  ParallelFor(call, w.slots, w.tiles / w.slots * w.c * w.o, [&](int64_t begin, int64_t end) {
    try {
      for (int64_t slot = begin; slot < end; slot++) run_slot(slot);
    } catch (...) {
      failed = true;
    }
  });
  SetThreads(team.Size());
  if (failed) Throw(KEEL_OOM, "a oneDNN product of a convolution failed: no memory for its arguments");
  if (!finite) RaiseInvalid();
  return Done(call);
}

// The 16 numbers of 3x3 weights, [q][c][o]: G w G', where the rows of G are (1 0 0), (1 1 1) / 2, (1 -1 1) /
// 2, (0 0 1).
void TransformWeights(const float* w, int64_t c, int64_t o, float* to) {
  const auto line = [](const double* d, int apart, double* into, int step) {
    const double sum = (d[0] + d[2 * apart]) / 2, middle = d[apart] / 2;
    into[0] = d[0];
    into[step] = sum + middle;
    into[2 * step] = sum - middle;
    into[3 * step] = d[2 * apart];
  };
  const auto transform_input = [&](int64_t i, int64_t k) {
    double d[9], rows[12], u[kNumbers];
    std::copy_n(w + (k * c + i) * 9, 9, d);
    for (int x = 0; x < 3; x++) line(d + x, 3, rows + x, 3);
    for (int y = 0; y < 4; y++) line(rows + 3 * y, 1, u + 4 * y, 1);
    for (int64_t q = 0; q < kNumbers; q++) to[(q * c + i) * o + k] = static_cast<float>(u[q]);
  };
  constexpr int64_t kSide = 16;  // a square of channels at a time stays in L1, as both arrays are read across
  for (int64_t i0 = 0; i0 < c; i0 += kSide)
    for (int64_t k0 = 0; k0 < o; k0 += kSide)
      for (int64_t i = i0; i < std::min(c, i0 + kSide); i++)
        for (int64_t k = k0; k < std::min(o, k0 + kSide); k++) transform_input(i, k);
}

// A block has as many tiles as fit a cache of 2 MiB with their intermediates, at least kLeast, and blocks are
// a multiple of the threads if possible.
void CutBlocks(Winograd* w) {
  constexpr int64_t kCache = 9 << 18, kMost = 128;
  const int64_t most = std::clamp<int64_t>(
      kCache / (kNumbers * (w->c + w->o) * static_cast<int64_t>(sizeof(float))), kLeast, kMost);
  const int64_t team = Budget(), wanted = ((w->tiles + most - 1) / most + team - 1) / team * team;
  w->blocks = std::clamp<int64_t>(w->tiles / kLeast, 1, wanted);
  w->block = (w->tiles + w->blocks - 1) / w->blocks;
  w->blocks = (w->tiles + w->block - 1) / w->block;
  w->slots = std::min(w->blocks, team);
}

// Measured with AVX-512 and AVX2, two threads: from 32 channels on, 0.55 to 0.95 of the time of a direct
// convolution. With few tiles, reading the larger weights (16 numbers instead of 9) dominates. A block is one
// oneDNN product, which cannot be cancelled, so it is not longer than a part of other work.
bool IsWorthwhile(const Conv& s) {
  constexpr int64_t kFewTiles = 40, kFewChannels = 32;
  bool yes = s.w.rank == 2 && s.groups == 1 && s.c >= kFewChannels && s.o >= kFewChannels;
  for (int d = 0; yes && d < 2; d++) yes = s.w.window[d] == 3 && s.w.stride[d] == 1 && s.w.dil[d] == 1;
  return yes && s.n * ((s.w.out[0] + 1) / 2) * ((s.w.out[1] + 1) / 2) >= kFewTiles &&
         kNumbers * kLeast * s.c * s.o <= PartWork();
}

std::unique_ptr<Winograd> Describe(const Conv& s, ConvEnd end) {
  auto w = std::make_unique<Winograd>();
  w->c = s.c;
  w->o = s.o;
  w->tiles = s.n;
  for (int d = 0; d < 2; d++) {
    w->image[d] = s.w.image[d];
    w->out[d] = s.w.out[d];
    w->lo[d] = s.w.lo[d];
    w->tiles *= w->grid[d] = (s.w.out[d] + 1) / 2;
  }
  w->zeros.resize(static_cast<size_t>(std::max(s.c, s.o)));
  w->end = std::move(end);
  w->end.bias.resize(static_cast<size_t>(s.o));
  w->loops = &WinogradLoops();
  CutBlocks(w.get());
  w->products = {s.c, s.o, w->tiles, w->block, (w->tiles - 1) % w->block + 1};
  return w;
}

}  // namespace

bool EmitWinograd(Builder& b, const BodyNode& node, const Recipe& r, const Attributes& a, const Conv& s) {
  std::optional<OwnConv> own = ReadOwnConv(r, a);
  if (b.body.exact_convolution || b.Value(node.in[1]).data == nullptr || !own || !IsWorthwhile(s) ||
      !b.Allows({.loses_nan = true}))
    return false;
  std::unique_ptr<Winograd> w = Describe(s, std::move(own->end));
  w->products.SetWeights(b.constants, KeyOf(b, node, r), [&](float* to) {
    Bytes scaled;
    const void* from = Scaled(b.Value(node.in[1]), r.scale, &scaled, {s.c * 9, s.o});
    TransformWeights(static_cast<const float*>(from), s.c, s.o, to);
  });

  auto launch = std::make_unique<OwnLaunch>();
  const uint64_t bytes = w->PerSlot() * static_cast<uint64_t>(w->slots);
  Keep(&launch->launch, std::move(w), Guard<RunWinograd>, bytes);
  launch->reports_nan_loss = true;
  EmitOwnConv(b, node, r, a, s, own->added, std::move(launch));
  return true;
}

}  // namespace keel_cpu
