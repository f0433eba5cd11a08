// trees.cc: tree_ensemble. An index out of range is stored in the fault bytes.
#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

void Trees(Op& op) {
  const keel_tensor x = op.In(0), y = op.Out(0), weight = op.In(7);
  const int64_t rows = x.shape[0], nodes = op.In(1).shape[0], trees = op.In(5).shape[0],
                count = keel_count(&y);
  const std::string_view mode = op.Text("mode");
  const int64_t reduction = mode == "add" ? 0 : mode == "max" ? 2 : 3;  // kernels/combine.cuh
  const std::vector<int64_t> numbers = {rows,       x.shape[1],      nodes,
                                        trees,      weight.shape[0], weight.shape[1],
                                        y.shape[1], reduction,       op.In(2).dtype.bits / 8};
  const std::vector<uint32_t> uses = {0, 1, 2, 3, 4, 5, 6, 7, op.Result()};
  const std::string type = NameOf(keel::plugin::dtype_of(y));
  op.Add("trees", "trees_begin_" + type, Blocks(count ? std::max({count, nodes, trees}) : 0), uses, numbers);
  op.Add("trees", "trees_walk_" + type, Blocks(rows, 1), uses, numbers);
}

}  // namespace

Impls TreeImpls() { return {NumbersRow<Trees>("tree_ensemble", "block for each row")}; }

}  // namespace keel_cuda
