// conv_plan.h: a convolution, or a gradient, as a product of matrices, by numbers for kernels/conv.cuh.
//   conv         y[o, (n, place)] = w[o, (i, tap)] x[(i, tap), (n, place)]
//   conv_grad_x  dx[i, (n, cell)] = w[i, (o, tap)] dy[(o, tap), (n, cell)]
//   conv_grad_w  dw[o, (i, tap)] = dy[o, (n, place)] x[(n, place), (i, tap)]
// for each group. Images are part of the columns or of the inner dim, so that small images fill tiles, too.
#ifndef KEEL_PLUGINS_CUDA_OPS_CONV_PLAN_H
#define KEEL_PLUGINS_CUDA_OPS_CONV_PLAN_H
#include <cstdint>
#include <vector>

#include "sdk/plugin/window.h"

namespace keel_cuda {

using ConvSizes = keel::plugin::ConvSizes<int64_t, int64_t>;

struct ConvPlan {
  static constexpr int64_t kRank = 6;  // kernels/conv.cuh
  int64_t groups, rows, columns, inner, depth, parts, threads, rank;
  int64_t column_cells, k_cells, right_cells;
  int64_t channel_of_group, channel_of_column, channel_of_k;
  int64_t left_of_group, left_of_row, left_of_k;
  int64_t result_of_group, result_of_row, result_of_column;
  int64_t column_dims[kRank], column_step[kRank], start[kRank];
  int64_t k_dims[kRank], k_step[kRank], bound[kRank], divide[kRank];

  // Kernels count columns, the inner dim and cells with padding in 32 bits.
  bool FitsIn32Bits() const;
  std::vector<int64_t> Numbers() const;
};
ConvPlan PlanForward(const ConvSizes& sizes);
ConvPlan PlanForImage(const ConvSizes& sizes);
ConvPlan PlanForWeights(const ConvSizes& sizes);

}  // namespace keel_cuda
#endif
