// int8_pairs.cc: see int8_pairs.h.
#include "plugins/cpu/matmul/int8_pairs.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace keel_cpu {
namespace {

constexpr int64_t kMostShare =
    3;  // of the groups: with one extra group for three, 16-bit weights are as fast

int32_t Above(int32_t w) { return std::max(w, 0); }
bool Fits(int32_t a, int32_t b) { return Above(a) + Above(b) <= 128 && Above(-a) + Above(-b) <= 128; }

// The most groups of a vector of columns that have a pair that does not fit.
template <class T>
int64_t MostExtra(const T* b, int32_t shift, int64_t k, int64_t n) {
  std::vector<uint8_t> wide(static_cast<size_t>(n));
  std::vector<int64_t> extra(static_cast<size_t>((n + kPairColumns - 1) / kPairColumns));
  for (int64_t i = 0; i < k; i += 4) {
    std::fill(wide.begin(), wide.end(), 0);
    for (int64_t r = i; r < std::min(k, i + 4); r += 2) {
      const T *x = b + r * n, *y = r + 1 < k ? x + n : nullptr;
      for (int64_t j = 0; y != nullptr && j < n; j++)
        wide[static_cast<size_t>(j)] |= Fits(x[j] + shift, y[j] + shift) ? 0 : 1;
    }
    for (int64_t j = 0; j < n; j += kPairColumns)
      extra[static_cast<size_t>(j / kPairColumns)] += std::any_of(
          wide.begin() + j, wide.begin() + std::min(n, j + kPairColumns), [](uint8_t w) { return w != 0; });
  }
  return extra.empty() ? 0 : *std::ranges::max_element(extra);
}

// Weights that are on one side of 0 fit better around their mean.
template <class T>
PairShift Find(const T* b, int64_t matrices, int64_t k, int64_t n, bool may_shift) {
  const int64_t count = matrices * k * n, groups = (k + 3) / 4;
  if (count == 0) return {};
  const auto extra = [&](int32_t shift) {
    int64_t most = 0;
    for (int64_t m = 0; m < matrices && most <= groups; m++)
      most = std::max(most, MostExtra(b + m * k * n, shift, k, n));
    return PairShift{shift, most};
  };
  const auto [low, high] = std::minmax_element(b, b + count);
  int64_t sum = 0;
  for (int64_t i = 0; i < count; i++) sum += b[i];
  const int32_t middle = std::clamp<int32_t>(static_cast<int32_t>(-sum / count), -128 - *low, 127 - *high);
  PairShift best = std::is_signed_v<T> ? extra(0) : extra(-128);
  if (best.extra > 0 && may_shift) {
    const PairShift other = extra(middle);
    if (other.extra < best.extra) best = other;
  }
  if (best.extra > groups / kMostShare) best.extra = -1;
  return best;
}

}  // namespace

ExtraGroups ExtraGroups::At(const char* from, int64_t most) {
  ExtraGroups at = {0, from + 32, from + Bytes(most) - most * 32};
  if (most > 0) std::memcpy(&at.count, from, sizeof at.count);
  return at;
}

PairShift FindPairShift(const void* b, bool is_signed, int64_t matrices, int64_t k, int64_t n,
                        bool may_shift) {
  return is_signed ? Find(static_cast<const int8_t*>(b), matrices, k, n, may_shift)
                   : Find(static_cast<const uint8_t*>(b), matrices, k, n, may_shift);
}

void SplitPairs(char* panel, int64_t groups, int64_t columns, int64_t most) {
  if (most == 0) return;
  char* to = panel + groups * columns * 4;
  for (int64_t v = 0; v < columns; v += kPairColumns, to += ExtraGroups::Bytes(most)) {
    const ExtraGroups at = ExtraGroups::At(to, most);
    char *places = to + (at.places - to), *weights = to + (at.weights - to);
    int32_t count = 0;
    std::memset(to, 0, static_cast<size_t>(ExtraGroups::Bytes(most)));
    for (int64_t g = 0; g < groups; g++) {
      auto* from = reinterpret_cast<int8_t*>(panel) + (g * columns + v) * 4;
      bool found = false;
      for (int64_t i = 0; i < kPairColumns * 4; i += 2) {
        if (Fits(from[i], from[i + 1])) continue;
        for (int64_t one : {i, i + 1}) {
          const auto half = static_cast<int8_t>(from[one] / 2), rest = static_cast<int8_t>(from[one] - half);
          weights[count * 32 + one] = static_cast<char>(rest);
          from[one] = half;
        }
        found = true;
      }
      if (!found) continue;
      const auto place = static_cast<int32_t>(g);
      std::memcpy(places + count++ * 4, &place, sizeof place);
    }
    std::memcpy(to, &count, sizeof count);
  }
}

}  // namespace keel_cpu
