// op.cc: see op.h.
#include "op.h"

namespace keel_cuda {

bool Op::Fits(const std::vector<uint32_t>& uses, const std::vector<int64_t>& numbers) {
  if (numbers.size() > kMostNumbers || uses.size() > kMostAddresses)
    Fail(KEEL_UNIMPLEMENTED, std::string(host->node_op(node)) + ": too many operands or dims for a kernel");
  return !rc;
}

void Op::AddKernel(CUfunction kernel, uint32_t blocks, std::vector<uint32_t> uses,
                   std::vector<int64_t> numbers) {
  if (!rc && blocks) work.steps.push_back({kernel, blocks, std::move(uses), std::move(numbers)});
}

void Op::Add(const std::string& file, const std::string& name, uint32_t blocks, std::vector<uint32_t> uses,
             std::vector<int64_t> numbers) {
  if (rc || !blocks || !Fits(uses, numbers)) return;
  CUfunction kernel = nullptr;
  rc = device->Kernel(file, name, &kernel);
  AddKernel(kernel, blocks, std::move(uses), std::move(numbers));
}

}  // namespace keel_cuda
