// op.cc: see op.h.
#include "op.h"

#include "emit/emit.h"

namespace keel_cuda {
namespace {

int32_t Match(const keel_host* host, const keel_node* of, const char* (*lack)(keel_dt)) {
  keel::plugin::Node node(host, of);
  return keel::plugin::takes_all(node, [&](const keel_tensor& t) { return lack(keel::plugin::dtype_of(t)); });
}

}  // namespace

const char* LackOfNumbers(keel_dt dtype) {
  return NameOf(dtype).empty() ? "its kernels compute with numbers only" : nullptr;
}
const char* LackOfWidth(keel_dt dtype) {
  return (dtype >> 8 & 255) < 8 ? "its kernels do not move elements of less than a byte" : nullptr;
}
int32_t MatchNumbers(keel_dev, const keel_host* host, const keel_node* node) {
  return Match(host, node, LackOfNumbers);
}
int32_t MatchWidths(keel_dev, const keel_host* host, const keel_node* node) {
  return Match(host, node, LackOfWidth);
}

bool Op::Fits(const std::vector<uint32_t>& uses, const std::vector<int64_t>& numbers) {
  if (numbers.size() > kMostNumbers || uses.size() > kMostAddresses)
    Fail(KEEL_UNIMPLEMENTED, std::string(host->node_op(node)) + ": too many operands or dims for a kernel");
  return !rc;
}

int64_t Op::Upload(const std::vector<uint64_t>& words) {
  uint64_t address = 0;
  if (rc || words.empty()) return 0;
  keel_memory* made = nullptr;
  rc = host->memory_new(node, words.data(), words.size() * sizeof words[0], &made, &address);
  work.memory = {made, {host}};
  return static_cast<int64_t>(address);
}

void Op::AddKernel(CUfunction kernel, uint32_t blocks, std::vector<uint32_t> uses,
                   std::vector<int64_t> numbers, uint32_t threads) {
  if (!rc && blocks) work.steps.push_back({kernel, blocks, std::move(uses), std::move(numbers), threads});
}

void Op::Add(const std::string& file, const std::string& name, uint32_t blocks, std::vector<uint32_t> uses,
             std::vector<int64_t> numbers, uint32_t threads) {
  if (rc || !blocks || !Fits(uses, numbers)) return;
  CUfunction kernel = nullptr;
  rc = device->Kernel(file, name, &kernel);
  AddKernel(kernel, blocks, std::move(uses), std::move(numbers), threads);
}

}  // namespace keel_cuda
