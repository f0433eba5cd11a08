// space.cc: see space.h.
#include "space.h"

#include "sdk/plugin/strides.h"

namespace keel_cuda {
namespace {

using Strides = keel::plugin::Space::Strides;

// Whether vectors of the last dim are adjacent elements, or one element, and start at multiples of their
// size.
bool HasVectors(const Strides& strides, uint32_t rank, int64_t elements) {
  if (strides.of[rank - 1] == 0) return true;
  const auto outer = strides.of.begin();
  return strides.of[rank - 1] == 1 &&
         std::all_of(outer, outer + rank - 1, [&](int64_t stride) { return stride % elements == 0; });
}
// A row that is no multiple of a vector has none, unless it is the only one; others are counted in 32 bits.
int64_t CountVectors(const keel::plugin::Space& space, int64_t elements) {
  const uint32_t rank = space.rank;
  if (!rank || elements < 2 || (space.tensors.size() == 2 && !space.tensors[0].of[rank - 1]) ||
      (rank > 1 && (space.sizes[rank - 1] % elements || !space.fits_32_bits())))
    return 0;
  return std::ranges::all_of(space.tensors, [&](const Strides& s) { return HasVectors(s, rank, elements); })
             ? space.count / elements
             : 0;
}

}  // namespace

Space SpaceOf(Op& op, const std::vector<keel_tensor>& tensors, Vectors vectors) {
  std::vector<const keel_tensor*> all;
  for (const keel_tensor& t : tensors) all.push_back(&t);
  keel::plugin::Space space;
  if (!op.rc)
    op.rc = keel::plugin::find_space(op.host, all.data(), static_cast<uint32_t>(all.size()), &space);
  if (op.rc) return {};
  const uint32_t rank = space.rank;
  const int64_t count = CountVectors(space, static_cast<int64_t>(vectors.elements));
  std::vector<int64_t> numbers = {space.count, count, rank, 0, space.fits_32_bits()};
  numbers.insert(numbers.end(), space.sizes.begin(), space.sizes.begin() + rank);
  for (size_t t = 0; t + 1 < all.size(); t++) {
    const auto& of = space.tensors[t].of;
    if (rank && of[rank - 1] == 0) numbers[3] |= int64_t{1} << t;
    numbers.insert(numbers.end(), of.begin(), of.begin() + rank);
  }
  return {numbers,
          count ? Blocks(count, kThreads * static_cast<int64_t>(vectors.of_thread)) : Blocks(space.count)};
}

}  // namespace keel_cuda
