// suppress.cc: non_max_suppression, which chooses the best of boxes that overlap.
#include <algorithm>
#include <cmath>
#include <vector>

#include "call.h"
#include "families.h"

namespace reference {
namespace {

struct Box {
  float low[2] = {}, high[2] = {};  // without NaN; an empty box overlaps none
};

Box box_at(const float* x, bool center) {
  Box b;
  for (int k = 0; k < 2; ++k) {
    const float half = x[k + 2] / 2;
    b.low[k] = center ? x[k] - half : std::min(x[k], x[k + 2]);
    b.high[k] = center ? x[k] + half : std::max(x[k], x[k + 2]);
    if (std::isnan(x[k]) || std::isnan(x[k + 2]) || std::isnan(b.low[k]) || std::isnan(b.high[k])) return {};
  }
  return b;
}

float area(const Box& b) { return (b.high[0] - b.low[0]) * (b.high[1] - b.low[1]); }

bool overlap(const Box& a, const Box& b, float limit) {
  Box common;
  for (int k = 0; k < 2; ++k) {
    common.low[k] = std::max(a.low[k], b.low[k]);
    common.high[k] = std::min(a.high[k], b.high[k]);
    if (!(common.high[k] > common.low[k])) return false;
  }
  const float shared = area(common);
  return shared > 0 && shared / (area(a) + area(b) - shared) > limit;
}

struct SuppressState {
  int64_t size;
  bool center;
  void read(Attributes& a) {
    size = a.i64("size");
    center = a.boolean("center");
  }
};

// The boxes with a score above `low`, the highest first.
std::vector<int64_t> candidates(const float* scores, int64_t n, float low) {
  std::vector<int64_t> found;
  for (int64_t i = 0; i < n; ++i)
    if (std::isnan(low) ? !std::isnan(scores[i]) : scores[i] > low) found.push_back(i);
  std::stable_sort(found.begin(), found.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  return found;
}

int64_t most_of(const keel_call& c) {
  return in_type(c, 2) == KEEL_I32 ? *in<int32_t>(c, 2) : *in<int64_t>(c, 2);
}

keel_rc non_max_suppression(const SuppressState& s, const keel_call& c) {
  const Dims dims = dims_of(*c.in[1]);
  const int64_t n = dims[2], most = std::min(most_of(c), s.size);
  const float limit = *in<float>(c, 3);
  int64_t *row = out<int64_t>(c), *const end = row + keel_count(c.out[0]), count = 0;
  for (int64_t r = 0; r < dims[0] * dims[1]; ++r) {
    if (cancelled(c)) return KEEL_CANCELLED;
    std::vector<Box> chosen;
    for (int64_t i : candidates(in<float>(c, 1) + r * n, n, *in<float>(c, 4))) {
      if (static_cast<int64_t>(chosen.size()) >= most) break;
      const Box b = box_at(in<float>(c, 0) + (r / dims[1] * n + i) * 4, s.center);
      if (std::any_of(chosen.begin(), chosen.end(), [&](const Box& a) { return overlap(a, b, limit); }))
        continue;
      chosen.push_back(b);
      for (int64_t v : {r / dims[1], r % dims[1], i}) *row++ = v;
      ++count;
    }
  }
  std::fill(row, end, 0);
  *out<int64_t>(c, 1) = count;
  return KEEL_OK;
}

constexpr keel_impl kImpls[] = {
    row<SuppressState, non_max_suppression>(REFERENCE_OP("non_max_suppression"), 0),
};

}  // namespace

std::span<const keel_impl> suppress_impls() { return kImpls; }

}  // namespace reference
