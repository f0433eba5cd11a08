// conv.cc: convolution and its gradients, as products of matrices (kernels/conv.cu).
//   conv         y[o, (n, place)] = w[o, (i, tap)] x[(i, tap), (n, place)]
//   conv_grad_x  dx[i, (n, cell)] = w[i, (o, tap)] dy[(o, tap), (n, cell)]
//   conv_grad_w  dw[o, (i, tap)] = dy[o, (n, place)] x[(n, place), (i, tap)]
// for each group. Images are part of the columns or of the inner dim, so that small images fill tiles, too.
#include <bit>

#include "emit/emit.h"
#include "op.h"
#include "sdk/plugin/window.h"

namespace keel_cuda {
namespace {

using ConvSizes = keel::plugin::ConvSizes<int64_t, int64_t>;
constexpr int64_t kRank = 6, kTile = 64, kDepth = 16;  // kernels/conv.cu, kernels/tiles.cuh
// Blocks that are enough for a device, and the shortest part of a sum for one of them. The number of parts
// depends on the sizes only, and so do the bits of results.
constexpr int64_t kEnough = 512, kShortest = 256;
// Fewer rows or columns fill too little of a tile.
constexpr int64_t kFew = 4, kFewElements = 1024;

// As kernels/conv.cu reads it.
struct Plan {
  int64_t groups, rows, columns, inner, depth, parts, threads, rank;
  int64_t column_cells, k_cells, right_cells;
  int64_t channel_of_group, channel_of_column, channel_of_k;
  int64_t left_of_group, left_of_row, left_of_k;
  int64_t result_of_group, result_of_row, result_of_column;
  int64_t column_dims[kRank], column_step[kRank], start[kRank];
  int64_t k_dims[kRank], k_step[kRank], bound[kRank], divide[kRank];
};

Plan Common(const ConvSizes& s) {
  Plan p = {};
  p.groups = s.groups, p.parts = p.threads = 1, p.rank = s.window.rank;
  std::fill_n(p.divide, kRank, 1);
  return p;
}

Plan Forward(const ConvSizes& s) {
  Plan p = Common(s);
  p.rows = s.outs, p.columns = s.images * s.windows, p.inner = s.ins * s.taps;
  p.column_cells = s.windows, p.k_cells = s.taps, p.right_cells = s.pixels;
  p.channel_of_group = s.ins, p.channel_of_column = s.groups * s.ins, p.channel_of_k = 1;
  p.left_of_group = s.outs * p.inner, p.left_of_row = p.inner, p.left_of_k = s.taps;
  p.result_of_group = s.outs * s.windows, p.result_of_row = s.windows,
  p.result_of_column = s.groups * s.outs * s.windows;
  for (int64_t d = 0; d < p.rank; d++) {
    p.column_dims[d] = s.window.places[d], p.column_step[d] = s.window.stride[d],
    p.start[d] = -s.window.lo[d];
    p.k_dims[d] = s.window.window[d], p.k_step[d] = s.window.dil[d], p.bound[d] = s.window.image[d];
  }
  return p;
}

Plan ForImage(const ConvSizes& s) {
  Plan p = Common(s);
  p.rows = s.ins, p.columns = s.images * s.pixels, p.inner = s.outs * s.taps;
  p.column_cells = s.pixels, p.k_cells = s.taps, p.right_cells = s.windows;
  p.channel_of_group = s.outs, p.channel_of_column = s.groups * s.outs, p.channel_of_k = 1;
  p.left_of_group = s.outs * s.ins * s.taps, p.left_of_row = s.taps, p.left_of_k = s.ins * s.taps;
  p.result_of_group = s.ins * s.pixels, p.result_of_row = s.pixels,
  p.result_of_column = s.groups * s.ins * s.pixels;
  for (int64_t d = 0; d < p.rank; d++) {
    p.column_dims[d] = s.window.image[d], p.column_step[d] = 1, p.start[d] = s.window.lo[d];
    p.k_dims[d] = s.window.window[d], p.k_step[d] = -s.window.dil[d], p.bound[d] = s.window.places[d];
    p.divide[d] = s.window.stride[d];
  }
  return p;
}

Plan ForWeights(const ConvSizes& s) {
  Plan p = Common(s);
  p.rows = s.outs, p.columns = s.ins * s.taps, p.inner = s.images * s.windows;
  p.column_cells = s.taps, p.k_cells = s.windows, p.right_cells = s.pixels;
  p.channel_of_group = s.ins, p.channel_of_column = 1, p.channel_of_k = s.groups * s.ins;
  p.left_of_group = s.outs * s.windows, p.left_of_row = s.windows,
  p.left_of_k = s.groups * s.outs * s.windows;
  p.result_of_group = s.outs * p.columns, p.result_of_row = p.columns, p.result_of_column = s.taps;
  for (int64_t d = 0; d < p.rank; d++) {
    p.column_dims[d] = s.window.window[d], p.column_step[d] = s.window.dil[d], p.start[d] = -s.window.lo[d];
    p.k_dims[d] = s.window.places[d], p.k_step[d] = s.window.stride[d], p.bound[d] = s.window.image[d];
  }
  return p;
}

// Kernels count columns, the inner dim and cells with padding in 32 bits.
bool FitsIn32Bits(const Plan& p) {
  constexpr int64_t kMost = INT32_MAX;
  bool fits = p.columns <= kMost && p.inner <= kMost && p.right_cells <= kMost;
  for (int64_t d = 0; d < p.rank; d++)
    fits &=
        p.column_dims[d] * p.column_step[d] + p.k_dims[d] * std::abs(p.k_step[d]) + std::abs(p.start[d]) <=
        kMost;
  return fits;
}

void Encode(Op& op, Plan p, std::vector<uint32_t> uses) {
  const keel_tensor y = op.Out(0);
  const int64_t count = keel_count(&y), tiles = p.groups * CeilDiv(p.rows, kTile) * CeilDiv(p.columns, kTile);
  const bool direct = p.rows < kFew || p.columns < kFew;
  if (direct)
    p.threads = p.inner >= kFewElements ? kThreads : 1;
  else
    p.parts = std::clamp<int64_t>(kEnough / std::max<int64_t>(1, tiles), 1,
                                  std::max<int64_t>(1, p.inner / kShortest));
  p.depth = CeilDiv(CeilDiv(p.inner, p.parts), kDepth) * kDepth;
  p.parts = p.depth ? CeilDiv(p.inner, p.depth) : 1;
  const auto words = std::bit_cast<std::array<int64_t, sizeof(Plan) / sizeof(int64_t)>>(p);
  const std::vector<int64_t> numbers(words.begin(), words.end());
  const std::string type = NameOf(keel::plugin::dtype_of(y));
  uses.insert(uses.end(), {op.Result(), op.Result() + op.n_out});
  if (direct)
    return op.Add("conv", "conv_direct_" + type, Blocks(count, p.threads == 1 ? kThreads : 1), uses, numbers);
  op.Add("conv", "conv_" + type, count ? Blocks(tiles * p.parts, 1) : 0, uses, numbers);
  if (p.parts == 1) return;
  op.work.scratch_bytes = static_cast<uint64_t>(p.parts * count) * std::max(4, y.dtype.bits / 8);
  op.Add("conv", "conv_sum_" + type, Blocks(count), uses, numbers);
}

void Convolve(Op& op, Plan (*plan)(const ConvSizes&), const keel_tensor& x, const keel_tensor& w,
              const keel_tensor& y, std::vector<uint32_t> uses) {
  const ConvSizes sizes(op, x, w, y);
  if (op.rc) return;
  const Plan p = plan(sizes);
  if (!FitsIn32Bits(p))
    return op.Fail(KEEL_UNIMPLEMENTED,
                   std::string(op.host->node_op(op.node)) + ": more than 2147483647 cells");
  Encode(op, p, std::move(uses));
}
void Conv(Op& op) { Convolve(op, Forward, op.In(0), op.In(1), op.Out(0), {1, 0}); }
void ConvGradX(Op& op) { Convolve(op, ForImage, op.Out(0), op.In(1), op.In(0), {1, 0}); }
void ConvGradW(Op& op) { Convolve(op, ForWeights, op.In(1), op.Out(0), op.In(0), {0, 1}); }

}  // namespace

Impls ConvImpls() {
  constexpr const char* kName = "products of matrices";
  return {Row<Conv>("conv", kFloatTypes, kName), Row<ConvGradX>("conv_grad_x", kFloatTypes, kName),
          Row<ConvGradW>("conv_grad_w", kFloatTypes, kName)};
}

}  // namespace keel_cuda
