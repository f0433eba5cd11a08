// elementwise.cc: single elementwise ops, by the kernels that emit/ writes for the build.
#include <algorithm>

#include "emit/emit.h"
#include "space.h"

namespace keel_cuda {
namespace {

using keel::plugin::dtype_of;

// The op in the kernels of a dtype.
SingleOp Choose(Op& op, keel_dt dtype) {
  const std::string name = op.host->node_op(op.node);
  if (name == "cast") return {name, false, 1, dtype_of(op.Out(0))};
  const bool with = name == "gelu" && op.Int("tanh");
  const std::vector<SingleOp> ops = SingleOps(dtype);
  const auto at =
      std::ranges::find_if(ops, [&](const SingleOp& o) { return o.op == name && o.with_attribute == with; });
  if (at == ops.end())
    return op.Fail(KEEL_UNIMPLEMENTED, name + ": no kernel for " + NameOf(dtype)), SingleOp{};
  return *at;
}

void Elementwise(Op& op) {
  std::vector<keel_tensor> tensors;
  for (uint32_t i = 0; i < op.n_in; i++) tensors.push_back(op.In(i));
  tensors.push_back(op.Out(0));
  const keel_dt dtype = dtype_of(tensors[std::string_view(op.host->node_op(op.node)) == "select"]);
  const SingleOp single = Choose(op, dtype);
  if (op.rc) return;
  const Space space = SpaceOf(op, tensors, VectorsOf(single, dtype));
  std::vector<uint32_t> uses;
  for (uint32_t i = 0; i < op.n_in; i++) uses.push_back(i);
  uses.push_back(op.Result());
  op.Add("elementwise_" + NameOf(dtype), KernelOf(single, dtype), space.blocks, uses, space.numbers);
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
