// launch.cc: see launch.h.
#include "launch.h"

#include "runner.h"

namespace vulkan_test {
namespace {

using keel_spirv::KernelSpec;
using Words = std::vector<uint64_t>;

constexpr uint32_t kGroups = 5,
                   kFaultValue = 7 << 8;  // few groups: most runs need several rounds of the loop

// Row-major strides of `from` at an index of `to`; 0 where it is broadcast.
Words StridesAt(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  Words strides(to.size());
  int64_t step = 1;
  for (size_t i = 0; i < from.size(); i++) {
    const int64_t size = from[from.size() - 1 - i];
    strides[to.size() - 1 - i] = size == 1 ? 0 : static_cast<uint64_t>(step);
    step *= size;
  }
  return strides;
}

// Sizes, then strides of each operand; a scalar is a dim of one.
Words Layout(const KernelSpec& spec, const keel_node& node) {
  std::vector<int64_t> dims = node.out[0].dims;
  if (dims.empty()) dims = {1};
  Words words(dims.begin(), dims.end());
  for (uint32_t v : spec.reads) {
    const Words strides = StridesAt(node.in[v].dims, dims);
    words.insert(words.end(), strides.begin(), strides.end());
  }
  return words;
}

std::string BytesOf(const Words& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t)};
}

// The parameters of launch.h, with the buffers in the order: fault bytes, operands, results, parameters.
struct Parameters {
  const KernelSpec& spec;
  const keel_node& node;
  std::vector<std::string>* buffers;

  Words operator()(const Words& addresses) const {
    const size_t n = node.in.size() + spec.body.results.size();
    Words words(addresses.begin() + 1, addresses.begin() + 1 + static_cast<int64_t>(n));
    words.insert(words.end(), {0, addresses[0], kFaultValue | KEEL_RANGE});
    words.push_back(static_cast<uint64_t>(node.out[0].Count()));
    if (spec.strided) {
      const Words layout = Layout(spec, node);
      words.insert(words.end(), layout.begin(), layout.end());
    }
    buffers->back() = BytesOf(words);
    return {addresses.back()};
  }
};

}  // namespace

std::string Variant::Name() const {
  return std::string(strided ? "strided" : "contiguous") + (wide_index ? " 64-bit" : " 32-bit");
}

KernelSpec SpecOf(const keel_node& node, const Variant& variant) {
  KernelSpec spec;
  const auto body = keel::plugin::read_body(&bare::Host(), &node, keel_spirv::OwnOps());
  if (!body) {
    ADD_FAILURE() << "read_body refuses " << node.op;
    return spec;
  }
  spec.body = needed_part(*body, body->results, &spec.reads);
  spec.strided = variant.strided;
  spec.wide_index = variant.wide_index;
  spec.rank = std::max<uint32_t>(1, static_cast<uint32_t>(node.out[0].dims.size()));
  for (size_t i = 0; i < spec.reads.size(); i++)
    if (node.in[spec.reads[i]].Count() == 1) spec.ones |= uint64_t{1} << i;
  return spec;
}

std::vector<std::string> RunKernel(const keel_node& node, const Variant& variant,
                                   const std::vector<std::string>& operands, FaultBytes* fault) {
  const KernelSpec spec = SpecOf(node, variant);
  const keel_spirv::Kernel kernel = keel_spirv::MakeKernel(spec);
  EXPECT_EQ(kernel.error, "");
  std::vector<std::string> buffers = {std::string(sizeof(FaultBytes), '\0')};
  buffers.insert(buffers.end(), operands.begin(), operands.end());
  for (size_t i = 0; i < spec.body.results.size(); i++)
    buffers.emplace_back(static_cast<size_t>(node.out[i].Bytes()), '\x5a');
  const int64_t first = 1 + static_cast<int64_t>(operands.size());
  buffers.emplace_back(8 * 1024, '\0');
  const Parameters parameters = {spec, node, &buffers};
  EXPECT_EQ(RunShader(kernel.words, kGroups, &buffers, parameters), "") << node.op;
  if (fault != nullptr) std::memcpy(fault, buffers[0].data(), sizeof(FaultBytes));
  EXPECT_TRUE(kernel.may_fail || buffers[0] == std::string(sizeof(FaultBytes), '\0')) << node.op;
  return {buffers.begin() + first, buffers.end() - 1};
}

}  // namespace vulkan_test
