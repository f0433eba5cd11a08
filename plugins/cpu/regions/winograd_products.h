// winograd_products.h: the 16 products of a block of tiles of a Winograd convolution, by oneDNN or, with
// AVX2, by the kernels of the own products where choices.inc prefers these: 0.9 to 0.98 of its time (EPYC
// 7003).
#pragma once

#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/regions/region.h"

namespace keel_cpu {

class WinogradProducts {
 public:
  static constexpr int64_t kNumbers = 16;  // transformed numbers of a tile

  WinogradProducts() = default;
  // Of c by o channels, for blocks of so many of all tiles, and the last one. Throws dnnl::error if there is
  // no optimised code.
  WinogradProducts(int64_t c, int64_t o, int64_t all, int64_t tiles, int64_t last);

  // Rows of the operands for so many tiles; those behind the tiles are numbers, too, without meaning.
  int64_t Rows(int64_t tiles) const;
  uint64_t ScratchpadBytes() const;
  // Packs the transformed weights, [16][c][o], or finds them packed. `make` writes them.
  void SetWeights(Constants* constants, const void* key, const std::function<void(float*)>& make);
  // y [16][rows][o] = x [16][rows][c] times the weights, on the calling thread.
  void Run(int64_t tiles, const float* x, float* y, void* scratchpad, dnnl::stream* stream) const;

 private:
  struct Primitive {
    dnnl::matmul run;
    Layout x, y, pad;
  };
  Primitive Make(int64_t tiles, const Layout& weights);
  void RunOwn(int64_t rows, const float* x, float* y) const;
  Bytes Pack(const float* weights) const;
  int64_t Panels() const { return own_->Panels(o_); }

  int64_t c_ = 0, o_ = 0, tiles_ = 0;
  const MatmulOp* own_ = nullptr;  // null: oneDNN
  Primitive whole_, last_;
  Layout weights_layout_;
  const void* weights_ = nullptr;
};

}  // namespace keel_cpu
