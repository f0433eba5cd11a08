// space.cc: see space.h.
#include "space.h"

#include "sdk/plugin/strides.h"

namespace keel_cuda {

std::vector<int64_t> SpaceNumbers(Op& op, const std::vector<keel_tensor>& tensors, int64_t place,
                                  size_t slots) {
  std::vector<const keel_tensor*> all;
  for (const keel_tensor& t : tensors) all.push_back(&t);
  keel::plugin::Space space;
  if (!op.rc)
    op.rc = keel::plugin::find_space(op.host, all.data(), static_cast<uint32_t>(all.size()), &space);
  if (op.rc) return {};
  std::vector<int64_t> numbers = {space.count, place, space.rank};
  numbers.insert(numbers.end(), space.sizes.begin(), space.sizes.begin() + space.rank);
  for (size_t t = 0; t < slots; t++)
    for (size_t d = 0; d < space.rank; d++)
      numbers.push_back(t + 1 < all.size() ? space.tensors[t].of[d] : 0);
  return numbers;
}

}  // namespace keel_cuda
