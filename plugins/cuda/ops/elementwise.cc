// elementwise.cc: single elementwise ops, by the kernels that emit/ writes for the build.
#include <algorithm>

#include "emit/emit.h"
#include "space.h"

namespace keel_cuda {
namespace {

using keel::plugin::dtype_of;

// Which kernel computes the node, the op's place in it, and how many operands the kernel has strides for.
struct Choice {
  std::string file, kernel;
  int64_t place = 0;
  size_t slots = 3;
};

Choice ChooseCast(const keel_tensor& x, const keel_tensor& y) {
  const auto at = std::ranges::find(Dtypes(), dtype_of(y));
  const std::string from = NameOf(dtype_of(x));
  return {"elementwise_" + from, "cast_" + from, at - Dtypes().begin(), 1};
}
Choice Choose(Op& op) {
  const std::string name = op.host->node_op(op.node);
  if (name == "cast") return ChooseCast(op.In(0), op.Out(0));
  const keel_dt dtype = dtype_of(op.In(name == "select"));
  const bool with = name == "gelu" && op.Int("tanh");
  const std::vector<SingleOp> ops = SingleOps(dtype);
  const auto at =
      std::ranges::find_if(ops, [&](const SingleOp& o) { return o.op == name && o.with_attribute == with; });
  if (at == ops.end()) op.Fail(KEEL_UNIMPLEMENTED, name + ": no kernel for " + NameOf(dtype));
  return {"elementwise_" + NameOf(dtype), "elementwise_" + NameOf(dtype), at - ops.begin()};
}

void Elementwise(Op& op) {
  std::vector<keel_tensor> tensors;
  for (uint32_t i = 0; i < op.n_in; i++) tensors.push_back(op.In(i));
  tensors.push_back(op.Out(0));
  const Choice choice = Choose(op);
  const std::vector<int64_t> numbers = SpaceNumbers(op, tensors, choice.place, choice.slots);
  if (op.rc) return;
  std::vector<uint32_t> uses(4, op.Result());  // 3 is the result's place
  for (uint32_t i = 0; i < op.n_in; i++) uses[i] = i;
  op.Add(choice.file, choice.kernel, Blocks(numbers[0]), uses, numbers);
}

}  // namespace

Impls ElementwiseImpls() {
  Impls all;
  const auto add = [&all](const char* op) {
    all.push_back(NumbersRow<Elementwise>(op, "kernel for each dtype", KEEL_IMPL_INPLACE));
  };
  for (const auto& op : keel::plugin::kScalarOps) add(op.name);
  for (const auto& op : OwnOps())
    if (std::string_view(op.name) != "leaky_relu") add(op.name);
  return all;
}

}  // namespace keel_cuda
