// blocks.cc: matmul_blocks of few vectors (kernels/blocks.cu). More of them, rounded ones, and blocks that
// are no whole words of 16 bytes, run as the catalogue's body, which writes the weights as numbers.
#include <bit>

#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

constexpr int64_t kMostVectors = 8, kWord = 16, kOuts = 32;  // kOuts: of a block of kernels/blocks.cu

// As kernels/blocks.cu reads it.
struct Plan {
  int64_t vectors, outs, inner, words, words_of_block, blocks, has_zero;
};

void MatmulBlocks(Op& op) {
  const keel_tensor x = op.In(0), w = op.In(1), y = op.Out(0);
  Plan p = {};
  p.vectors = product(x.shape, x.shape + x.ndim - 1), p.outs = w.shape[0], p.inner = dim_from_end(x, 1);
  p.blocks = w.shape[1], p.words_of_block = w.shape[2] / kWord, p.words = p.blocks * p.words_of_block;
  p.has_zero = op.n_in > 3 && op.In(3).dtype.bits;
  if (op.Int("rounded") || p.vectors > kMostVectors || w.shape[2] % kWord || !w.shape[2])
    return op.Fail(
        KEEL_UNIMPLEMENTED,
        "matmul_blocks of rounded values, of many rows, or of blocks that are no multiple of 16 bytes");
  const int64_t each = p.vectors == 1 ? 1 : 2;
  const auto words = std::bit_cast<std::array<int64_t, sizeof(Plan) / sizeof(int64_t)>>(p);
  const std::string name = "blocks_" + std::to_string(op.Int("bits")) + "_" + std::to_string(each) + "_";
  op.Add("blocks", name + NameOf(keel::plugin::dtype_of(y)),
         Blocks(CeilDiv(p.outs, kOuts) * CeilDiv(p.vectors, each), 1),
         {0, 1, 2, op.Result(), p.has_zero ? uint32_t{3} : 0}, {words.begin(), words.end()});
}

}  // namespace

Impls BlocksImpls() {
  return {Row<MatmulBlocks>("matmul_blocks", "T=f16|bf16|f32", "few rows by weights in blocks")};
}

}  // namespace keel_cuda
