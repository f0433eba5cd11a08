// gemv.cc: products of few rows or few columns, which are bound by reading the other matrix
// (kernels/gemv.cu).
#include <bit>

#include "emit/emit.h"
#include "product.h"

namespace keel_cuda {
namespace {

constexpr int64_t kOuts = 32,
                  kStep = 256;  // kernels/gemv.cu; a multiple of each Form::kStep
// Fewer blocks do not read at the memory's speed. A second launch takes as long as a block for kShortest
// elements of the inner dim. The number of parts depends on the sizes only, and so do the bits of results.
constexpr int64_t kFewBlocks = 64, kEnough = 256, kShortest = 4096;

// As kernels/gemv.cu reads it.
struct Plan {
  int64_t vectors, outs, inner, batches, parts, depth, tiles;
  int64_t of_vector, of_inner, pitch;
  int64_t result_of_vector, result_of_out;
  int64_t biased, bias_of_vector, bias_of_out;
  int64_t rank;
};

// Few rows: these are the vectors, and w is b. Few columns: w is a.
struct Gemv {
  bool by_rows, transposed;  // transposed: w[outs, inner]
  Plan plan;
  std::vector<int64_t> sizes, of_vectors, of_w;
};

Gemv GemvOf(const Product& p) {
  Gemv g = {};
  g.by_rows = p.rows <= p.columns, g.sizes = p.sizes;
  g.of_vectors = g.by_rows ? p.of_a : p.of_b, g.of_w = g.by_rows ? p.of_b : p.of_a;
  const int64_t w_inner = g.by_rows ? p.b_inner : p.a_inner, w_out = g.by_rows ? p.b_column : p.a_row;
  g.transposed = w_inner == 1;
  Plan& n = g.plan;
  n.vectors = std::min(p.rows, p.columns), n.outs = std::max(p.rows, p.columns);
  n.inner = p.inner, n.batches = p.batches;
  n.of_vector = g.by_rows ? p.a_row : p.b_column, n.of_inner = g.by_rows ? p.a_inner : p.b_inner;
  n.pitch = !g.transposed ? w_inner : n.outs == 1 ? n.inner : w_out;
  n.result_of_vector = g.by_rows ? p.columns : 1, n.result_of_out = g.by_rows ? 1 : p.columns;
  n.biased = p.bias, n.bias_of_vector = !g.by_rows, n.bias_of_out = g.by_rows;
  n.rank = static_cast<int64_t>(p.sizes.size());
  return g;
}

void Divide(Plan* n) {
  const int64_t blocks = CeilDiv(n->outs, kOuts) * n->batches;
  const int64_t most = std::max<int64_t>(1, CeilDiv(n->inner, kShortest));
  n->parts = blocks < kFewBlocks ? std::min(kEnough / std::max<int64_t>(1, blocks), most) : 1;
  n->depth = CeilDiv(CeilDiv(n->inner, n->parts), kStep) * kStep;
  n->parts = n->depth ? CeilDiv(n->inner, n->depth) : 1;
  n->tiles = blocks * n->parts;
}

// KEEL_UNIMPLEMENTED: cuBLASLt or the tiles take it.
bool Takes(const Product& p, const Gemv& g, int64_t most_vectors) {
  const int64_t most = std::max({g.plan.outs, g.plan.inner, g.plan.tiles});
  const bool shares_w = p.batches > 1 && !BatchStride(g.sizes, g.of_w);  // would be read for each batch
  return g.plan.vectors <= most_vectors && most <= INT32_MAX && !shares_w;
}

void Encode(Op& op, const Product& whole, int64_t most_vectors) {
  const Product p = WithRowsOfBatches(whole);
  Gemv g = GemvOf(p);
  const keel_dt dtype = keel::plugin::dtype_of(op.Out(0));
  const std::string type = NameOf(dtype);
  Divide(&g.plan);
  if (!Takes(p, g, most_vectors))
    return op.Fail(KEEL_UNIMPLEMENTED,
                   "products of more than " + std::to_string(most_vectors) + " rows and columns");
  const auto words = std::bit_cast<std::array<int64_t, sizeof(Plan) / sizeof(int64_t)>>(g.plan);
  std::vector<int64_t> numbers(words.begin(), words.end());
  for (const auto* each : {&g.sizes, &g.of_vectors, &g.of_w})
    numbers.insert(numbers.end(), each->begin(), each->end());
  std::vector<uint32_t> uses = p.uses;
  if (!g.by_rows) std::swap(uses[0], uses[1]);
  const bool divided = g.plan.parts > 1;
  if (divided) uses[2] = op.Result() + op.n_out;
  const auto most =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, g.plan.vectors))));
  op.Add("gemv", "gemv_" + std::string(g.transposed ? "t" : "n") + std::to_string(most) + "_" + type,
         Blocks(g.plan.tiles, 1), uses, numbers);
  if (!divided) return;
  const int64_t count = p.rows * p.columns * p.batches;
  op.work.scratch_bytes = static_cast<uint64_t>(g.plan.parts * count) * sizeof(float);
  std::vector<uint32_t> sum_uses = {uses[2], op.Result()};
  if (p.bias) sum_uses.push_back(p.uses[3]);
  op.Add("gemv", "gemv_sum_" + type, Blocks(count), sum_uses, {count, g.plan.parts, p.columns, p.bias});
}

template <int64_t MOST>
void Matmul(Op& op) {
  Encode(op, MatmulOf(op), MOST);
}
template <int64_t MOST>
void Linear(Op& op) {
  Encode(op, LinearOf(op), MOST);
}

// cuBLASLt is faster from two vectors on: 1, 2, 4 and 8 x 4096 x 14336 of bf16 took 1.07, 1.35, 1.29 and 2.1
// of its time on an H200. For one vector the own kernel also serves any addresses in a recording.
template <void (*FILL)(Op&)>
keel_impl GemvRow(const char* op, const char* name, int32_t priority) {
  keel_impl row = Row<FILL>(op, "T=f16|bf16|f32", name);
  row.priority = priority;
  return row;
}

}  // namespace

Impls GemvImpls() {
  constexpr int32_t kFirst = kLibraryPriority + 1, kNext = kLibraryPriority - 1;
  constexpr const char *kOne = "one row or column", *kFew = "few rows or columns";
  return {GemvRow<Matmul<1>>("matmul", kOne, kFirst), GemvRow<Linear<1>>("linear", kOne, kFirst),
          GemvRow<Matmul<kMostVectors>>("matmul", kFew, kNext),
          GemvRow<Linear<kMostVectors>>("linear", kFew, kNext)};
}

}  // namespace keel_cuda
