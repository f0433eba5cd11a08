// elementwise.cc: elementwise ops, fused bodies of them, and random numbers: each is a shader that spirv/ generates.
#include <algorithm>

#include "ops.h"
#include "spirv/kernel.h"

namespace vulkan {
namespace {

using keel::plugin::Body;
using keel_spirv::KernelSpec;

// Whether the device has what loads, stores and arithmetic of these values need.
bool Computes(keel_dev d, const Body& body) {
  return std::all_of(body.dtypes.begin(), body.dtypes.end(), [&](keel_dt dt) {
    const uint32_t bits = dt >> 8 & 255;
    return (dt != KEEL_F64 || d->has.f64) && (bits != 8 || d->has.storage8) && (bits != 16 || d->has.storage16);
  });
}

int32_t Match(keel_dev d, const keel_host* host, const keel_node* node) {
  const auto body = keel::plugin::read_body(host, node, keel_spirv::OwnOps());
  return body && !body->results.empty() && Computes(d, *body);
}

// The loops of a kernel; keel_host.merge_dims makes them as few as possible.
struct Loops {
  int32_t rank = 0;
  int64_t sizes[KEEL_MAX_RANK] = {};
  std::vector<int64_t> strides;  // KEEL_MAX_RANK for each tensor

  keel_rc Read(const keel_host* host, const std::vector<keel_tensor>& tensors) {
    std::vector<const keel_tensor*> pointers;
    for (const keel_tensor& t : tensors) pointers.push_back(&t);
    strides.resize(KEEL_MAX_RANK * tensors.size());
    return host->merge_dims(pointers.data(), static_cast<uint32_t>(tensors.size()), sizes, strides.data(), &rank);
  }
  int64_t Stride(size_t tensor, int32_t d) const { return strides[KEEL_MAX_RANK * tensor + static_cast<size_t>(d)]; }
  // Each operand has all elements, or one.
  bool Contiguous(size_t n) const {
    for (size_t i = 0; i < n && rank == 1; i++)
      if (Stride(i, 0) > 1) return false;
    return rank <= 1;
  }
};

// Numbers of the kernel, and the parts of its spec that depend on the shapes. The last of the loops' tensors is a result.
std::vector<uint64_t> Lay(const Loops& loops, uint64_t count, KernelSpec* spec) {
  const size_t n = spec->reads.size();
  std::vector<uint64_t> numbers = {count};
  spec->wide_index = count > UINT32_MAX / 2;
  spec->strided = !loops.Contiguous(n);
  spec->rank = static_cast<uint32_t>(loops.rank);
  for (size_t i = 0; i < n && !spec->strided; i++)
    if (loops.rank == 0 || loops.Stride(i, 0) == 0) spec->ones |= uint64_t{1} << i;
  if (!spec->strided) return numbers;
  numbers.insert(numbers.end(), loops.sizes, loops.sizes + loops.rank);
  for (size_t i = 0; i < n; i++)
    for (int32_t d = 0; d < loops.rank; d++) numbers.push_back(static_cast<uint64_t>(loops.Stride(i, d)));
  return numbers;
}

keel_rc Generate(keel_dev d, Node& node, const KernelSpec& spec, const std::vector<uint64_t>& numbers,
                 keel_launch* launch) {
  const keel_spirv::Kernel kernel = keel_spirv::MakeKernel(spec);
  if (!kernel.error.empty()) return node.host->fail(KEEL_UNIMPLEMENTED, kernel.error.c_str());
  Work work;
  const auto* bytes = reinterpret_cast<const unsigned char*>(numbers.data());
  work.numbers.assign(bytes, bytes + numbers.size() * sizeof(uint64_t));
  work.Threads(numbers[0], spec.group_size);
  if (keel_rc rc = d->GeneratedPipeline(kernel.words, &work.pipeline)) return rc;
  return node.Finish(work, launch);
}

bool SameShape(const keel_tensor& a, const keel_tensor& b) { return std::equal(a.shape, a.shape + a.ndim, b.shape, b.shape + b.ndim); }

keel_rc PrepareBody(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const auto body = keel::plugin::read_body(host, of, keel_spirv::OwnOps());
  KernelSpec spec;
  spec.body = needed_part(*body, body->results, &spec.reads);
  std::vector<keel_tensor> tensors;
  for (uint32_t operand : spec.reads) tensors.push_back(node.In(operand));
  const keel_tensor result = node.Out(0);
  for (uint32_t i = 1; i < body->results.size() && !node.rc; i++)
    if (!SameShape(node.Out(i), result)) return host->fail(KEEL_UNIMPLEMENTED, "the results of the body have several shapes");
  tensors.push_back(result);
  if (node.rc) return node.rc;
  Loops loops;
  if (keel_rc rc = loops.Read(host, tensors)) return rc;
  const auto numbers = Lay(loops, static_cast<uint64_t>(keel_count(&result)), &spec);
  return Generate(d, node, spec, numbers, launch);
}

keel_rc PrepareRandom(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const keel_tensor result = node.Out(0);
  const std::string kind = "random." + std::string(node.Text("kind"));
  if (node.rc) return node.rc;
  const KernelSpec spec = keel_spirv::RandomSpec(kind.c_str(), keel_dt_of(&result));
  return Generate(d, node, spec, {static_cast<uint64_t>(keel_count(&result))}, launch);
}

int32_t MatchRandom(keel_dev d, const keel_host*, const keel_node*) { return d->has.f64; }

}  // namespace

Impls ElementwiseImpls() {
  Impls all = {Row("call", nullptr, PrepareBody, Match), Row("random", nullptr, PrepareRandom, MatchRandom)};
  for (const auto& op : keel::plugin::kScalarOps) all.push_back(Row(op.name, nullptr, PrepareBody, Match));
  for (const auto& op : keel_spirv::OwnOps()) all.push_back(Row(op.name, nullptr, PrepareBody, Match));
  return all;
}

}  // namespace vulkan
