// elementwise.cc: elementwise ops, fused bodies of them, and random numbers, as generated shaders
// (spirv/kernel.h). Operands are broadcast by strides.
#include <algorithm>
#include <optional>
#include <string>

#include <keel/storage.hpp>

#include "node.h"
#include "plugins/vulkan/spirv/kernel.h"
#include "sdk/plugin/strides.h"

namespace vulkan {
namespace {

using keel::plugin::Body;
using keel_spirv::KernelSpec;

constexpr uint64_t kElements = 4;  // of a thread: 1 takes a third longer on lavapipe

const char* LackOfDtypes(const Optional& has, const Body& body) {
  const char* why = nullptr;
  for (keel_dt dt : body.dtypes) {
    if (keel::plugin::dtypes_of(dt) == keel::plugin::kNone) return "storage dtypes: see storage.cc";
    if (!why) why = Lack(has, dt == KEEL_F64, (dt >> 8 & 255) == 8, (dt >> 8 & 255) == 16);
  }
  return why;
}

std::optional<Body> RandomBody(Node& node) {
  const keel_dt dtype = keel::plugin::dtype_of(node.Out(0));
  return keel_spirv::RandomSpec(node.Text("kind") == "normal" ? "random.normal" : "random.uniform", dtype)
      .body;
}
std::optional<Body> BodyOf(Node& node) {
  if (std::string_view(node.host->node_op(node.node)) == "random") return RandomBody(node);
  return keel::plugin::read_body(node.host, node.node, keel_spirv::OwnOps());
}

// Results of different dims: the ops of the body run instead.
bool HaveSameDims(const std::vector<keel_tensor>& results) {
  for (const keel_tensor& t : results)
    if (!std::equal(t.shape, t.shape + t.ndim, results[0].shape, results[0].shape + results[0].ndim))
      return false;
  return true;
}

int32_t Match(keel_dev d, const keel_host* host, const keel_node* of) {
  Node node(host, of);
  const std::optional<Body> body = BodyOf(node);
  return body && !LackOfDtypes(d->has, *body);
}

// Numbers of the kernel, as kernel.h says; sets how it finds its operands.
using Numbers = std::vector<uint64_t>;
keel_rc Layout(Node& node, const keel_tensor& result, KernelSpec* spec, Numbers* numbers) {
  std::vector<keel_tensor> tensors;
  for (uint32_t v : spec->reads) tensors.push_back(node.In(v));
  tensors.push_back(result);
  if (node.rc) return node.rc;
  std::vector<const keel_tensor*> all;
  for (const keel_tensor& t : tensors) all.push_back(&t);
  keel::plugin::Space space;
  const uint32_t n = static_cast<uint32_t>(all.size());
  if (keel_rc rc = keel::plugin::find_space(node.host, all.data(), n, &space)) return rc;
  spec->wide_index = !space.fits_32_bits();
  spec->strided = !space.is_flat();
  numbers->push_back(static_cast<uint64_t>(space.count));
  for (size_t v = 0; v < spec->reads.size() && !spec->strided; v++)
    if (space.tensors[v].is_one) spec->ones |= uint64_t{1} << v;
  if (!spec->strided) return KEEL_OK;
  spec->rank = space.rank;
  numbers->insert(numbers->end(), space.sizes.begin(), space.sizes.begin() + space.rank);
  for (size_t v = 0; v < spec->reads.size(); v++)
    numbers->insert(numbers->end(), space.tensors[v].of.begin(), space.tensors[v].of.begin() + space.rank);
  return KEEL_OK;
}

keel_rc Generate(keel_dev d, const Node& node, const KernelSpec& spec, std::vector<uint32_t>* words) {
  keel_spirv::Kernel kernel = keel_spirv::MakeKernel(spec);
  const char* why = kernel.error.empty() ? Lack(d->has, kernel.float64, false, false) : kernel.error.c_str();
  if (why)
    return node.host->fail(KEEL_UNIMPLEMENTED,
                           (std::string(node.host->node_op(node.node)) + ": " + why).c_str());
  *words = std::move(kernel.words);
  return KEEL_OK;
}

std::vector<keel_tensor> Results(Node& node) {
  uint32_t n_in = 0, n_out = 0;
  node.host->node_arity(node.node, &n_in, &n_out);
  std::vector<keel_tensor> results;
  for (uint32_t i = 0; i < n_out; i++) results.push_back(node.Out(i));
  return results;
}

keel_rc PrepareKernel(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const std::vector<keel_tensor> results = Results(node);
  const std::optional<Body> body = BodyOf(node);
  if (node.rc) return node.rc;
  if (!body) return host->fail(KEEL_UNIMPLEMENTED, "a body of ops that are not elementwise");
  if (!HaveSameDims(results)) return host->fail(KEEL_UNIMPLEMENTED, "a body whose results differ in dims");
  KernelSpec spec;
  Numbers numbers;
  spec.body = needed_part(*body, body->results, &spec.reads);
  if (keel_rc rc = Layout(node, results[0], &spec, &numbers)) return rc;
  Work work;
  const GeneratedKey key = {
      host->node_hash(of, 0), spec.ones,
      uint64_t{spec.rank} << 2 | uint64_t{spec.strided} << 1 | uint64_t{spec.wide_index}};
  const auto make = [&](std::vector<uint32_t>* words) { return Generate(d, node, spec, words); };
  if (keel_rc rc = d->GeneratedPipeline(key, make, &work.pipeline)) return rc;
  const auto* bytes = reinterpret_cast<const unsigned char*>(numbers.data());
  work.all_numbers.assign(bytes, bytes + 8 * numbers.size());
  work.Threads(CeilDiv(numbers[0], kElements), spec.group_size);
  return node.Finish(work, launch);
}

}  // namespace

const char* LackOfElementwise(const Optional& has, const char* op, keel_dt dtype) {
  if (keel::is_storage(dtype)) return Lack(has, false, true, false);
  const KernelSpec spec = std::string_view(op) == "random" ? keel_spirv::RandomSpec("random.uniform", dtype)
                                                           : keel_spirv::OneOpSpec(op, dtype);
  if (const char* why = LackOfDtypes(has, spec.body)) return why;
  return Lack(has, MakeKernel(spec).float64, false, false);
}

Impls ElementwiseImpls() {
  Impls all;
  const auto add = [&all](const char* op) {
    all.push_back(Row<PrepareKernel, Match>(op, nullptr, "generated shader", KEEL_IMPL_INPLACE));
  };
  for (const auto& op : keel::plugin::kScalarOps) add(op.name);
  for (const auto& op : keel_spirv::OwnOps()) add(op.name);
  add("call");
  all.push_back(Row<PrepareKernel, Match>("random", nullptr, "generated shader; normal needs shaderFloat64",
                                          KEEL_IMPL_INPLACE));
  return all;
}

}  // namespace vulkan
