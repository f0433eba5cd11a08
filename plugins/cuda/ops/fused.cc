// fused.cc: fused bodies of elementwise ops, as kernels that are compiled at run time.
#include <algorithm>
#include <optional>

#include "compiler.h"
#include "emit/emit.h"
#include "space.h"

namespace keel_cuda {
namespace {

using keel::plugin::Body;

bool HaveSameDims(const std::vector<keel_tensor>& results) {
  return std::ranges::all_of(results, [&](const keel_tensor& t) {
    return std::equal(t.shape, t.shape + t.ndim, results[0].shape, results[0].shape + results[0].ndim);
  });
}

int32_t Match(keel_dev, const keel_host* host, const keel_node* node) {
  return keel::plugin::read_body(host, node, OwnOps()).has_value() && WhyNoCompiler().empty();
}

void Fused(Op& op) {
  const std::optional<Body> whole = keel::plugin::read_body(op.host, op.node, OwnOps());
  std::vector<keel_tensor> results, tensors;
  for (uint32_t i = 0; i < op.n_out; i++) results.push_back(op.Out(i));
  if (!whole || results.empty() || !HaveSameDims(results))
    return op.Fail(KEEL_UNIMPLEMENTED,
                   "a body whose ops are not elementwise, or whose results differ in dims");
  std::vector<uint32_t> uses;
  const Body body = keel::plugin::needed_part(*whole, whole->results, &uses);
  const std::vector<uint32_t> reads = uses;
  for (uint32_t v : reads) tensors.push_back(op.In(v));
  tensors.push_back(results[0]);
  const Space space = SpaceOf(op, tensors, VectorsOf(body, reads));
  for (uint32_t i = 0; i < op.n_out; i++) uses.push_back(op.Result(i));
  if (op.rc) return;
  CUfunction kernel = nullptr;
  if (op.Fits(uses, space.numbers))
    op.rc = CompiledKernel(op.device, "fused", FusedKernel("fused", body, reads), &kernel);
  op.AddKernel(kernel, space.blocks, uses, space.numbers);
}

keel_impl FusedRow(const char* op) {
  return {op,
          1,
          1,
          nullptr,
          "compiled at run time",
          0,
          KEEL_IMPL_INPLACE,
          Guarded<Match>,
          Guarded<Prepared<Fused>>,
          nullptr};
}

}  // namespace

Impls FusedImpls() { return {FusedRow("call"), FusedRow("leaky_relu")}; }

}  // namespace keel_cuda
