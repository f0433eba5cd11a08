// strides.h: the iteration space of an elementwise node for kernels: few dims, strides of each tensor, and
// which tensors need none.
#ifndef KEEL_PLUGIN_STRIDES_H
#define KEEL_PLUGIN_STRIDES_H
#include <keel/keel_host.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace keel::plugin {

struct Space {
  struct Strides {
    std::array<int64_t, KEEL_MAX_RANK> of = {};  // in elements; 0 where the tensor is broadcast
    bool is_one = false;                         // one element for all of the space
    bool is_flat = false;                        // element i of the space is the tensor's element i
  };
  int64_t count = 1;  // elements
  uint32_t rank = 0;
  std::array<int64_t, KEEL_MAX_RANK> sizes = {};  // the last one varies fastest
  std::vector<Strides> tensors;
  int64_t most = 0;  // the greatest offset of a tensor, or `count` if that is more

  // Every tensor has one element or all: a kernel needs the count only.
  bool is_flat() const {
    return std::all_of(tensors.begin(), tensors.end(),
                       [](const Strides& t) { return t.is_one || t.is_flat; });
  }
  // u32 is enough for offsets and for counting with a grid stride of up to 2^31.
  bool fits_32_bits() const { return most <= INT32_MAX; }
};

// The space of tensors that are broadcast to each other, through keel_host.merge_dims, whose errors it
// returns. n >= 1.
inline keel_rc find_space(const keel_host* host, const keel_tensor* const* tensors, uint32_t n, Space* out) {
  std::vector<int64_t> strides(size_t{n} * KEEL_MAX_RANK);
  int32_t rank = 0;
  if (keel_rc rc = host->merge_dims(tensors, n, out->sizes.data(), strides.data(), &rank)) return rc;
  out->rank = static_cast<uint32_t>(rank);
  for (int32_t d = 0; d < rank; d++) out->count *= out->sizes[static_cast<size_t>(d)];
  out->most = out->count;
  for (uint32_t t = 0; t < n; t++) {
    Space::Strides s;
    const int64_t* from = &strides[size_t{t} * KEEL_MAX_RANK];
    int64_t last = 0, step = 1;
    s.is_one = s.is_flat = true;
    for (int32_t d = rank - 1; d >= 0; d--) {
      const size_t at = static_cast<size_t>(d);
      s.of[at] = from[d];
      s.is_one &= from[d] == 0;
      s.is_flat &= from[d] == step;
      step *= out->sizes[at];
      last += (out->sizes[at] - 1) * from[d];
    }
    out->most = std::max(out->most, last);
    out->tensors.push_back(s);
  }
  return KEEL_OK;
}

}  // namespace keel::plugin
#endif
