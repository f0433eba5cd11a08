// conv_plan.cc: see conv_plan.h.
#include "conv_plan.h"

#include <array>
#include <bit>

namespace keel_cuda {
namespace {

ConvPlan Common(const ConvSizes& s) {
  ConvPlan p = {};
  p.groups = s.groups, p.parts = p.threads = 1, p.rank = s.window.rank;
  std::fill_n(p.divide, ConvPlan::kRank, 1);
  return p;
}

}  // namespace

ConvPlan PlanForward(const ConvSizes& s) {
  ConvPlan p = Common(s);
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

ConvPlan PlanForImage(const ConvSizes& s) {
  ConvPlan p = Common(s);
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

ConvPlan PlanForWeights(const ConvSizes& s) {
  ConvPlan p = Common(s);
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

bool ConvPlan::FitsIn32Bits() const {
  constexpr int64_t kMost = INT32_MAX;
  bool fits = columns <= kMost && inner <= kMost && right_cells <= kMost;
  for (int64_t d = 0; d < rank; d++)
    fits &= column_dims[d] * column_step[d] + k_dims[d] * std::abs(k_step[d]) + std::abs(start[d]) <= kMost;
  return fits;
}

std::vector<int64_t> ConvPlan::Numbers() const {
  const auto words = std::bit_cast<std::array<int64_t, sizeof(ConvPlan) / sizeof(int64_t)>>(*this);
  return {words.begin(), words.end()};
}

}  // namespace keel_cuda
