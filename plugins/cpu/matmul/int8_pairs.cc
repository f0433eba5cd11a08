// int8_pairs.cc: see int8_pairs.h.
#include "plugins/cpu/matmul/int8_pairs.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace keel_cpu {
namespace {

constexpr int64_t kMostShare = 5;  // of the groups: with one extra group for five, 16-bit weights are as fast

// Groups of vectors of columns that have a pair that does not fit.
struct Extra {
  int64_t most = 0, all = 0;  // of a vector; together
};
template <class T>
void Count(const T* b, int32_t shift, int64_t k, int64_t n, Extra* to) {
  std::vector<uint8_t> wide(static_cast<size_t>(n));
  std::vector<int64_t> extra(static_cast<size_t>((n + kPairColumns - 1) / kPairColumns));
  for (int64_t i = 0; i < k; i += 4) {
    std::fill(wide.begin(), wide.end(), 0);
    for (int64_t r = i; r < std::min(k, i + 4); r += 2) {
      const T *x = b + r * n, *y = r + 1 < k ? x + n : nullptr;
      for (int64_t j = 0; y != nullptr && j < n; j++)
        wide[static_cast<size_t>(j)] |= FitsPair(x[j] + shift, y[j] + shift) ? 0 : 1;
    }
    for (int64_t j = 0; j < n; j += kPairColumns)
      extra[static_cast<size_t>(j / kPairColumns)] += std::any_of(
          wide.begin() + j, wide.begin() + std::min(n, j + kPairColumns), [](uint8_t w) { return w != 0; });
  }
  for (int64_t e : extra) to->most = std::max(to->most, e), to->all += e;
}

// The shift that moves the mean of weights to 0, as far as all stay bytes.
template <class T>
int32_t Middle(const T* b, int64_t count) {
  const auto [low, high] = std::minmax_element(b, b + count);
  int64_t sum = 0;
  for (int64_t i = 0; i < count; i++) sum += b[i];
  return std::clamp<int32_t>(static_cast<int32_t>(-sum / count), -128 - *low, 127 - *high);
}

// Weights that are on one side of 0 fit better around their mean.
template <class T>
PairShift Find(const T* b, int64_t matrices, int64_t k, int64_t n) {
  const int64_t count = matrices * k * n;
  if (count == 0) return {};
  const auto extra = [&](int32_t shift) {
    Extra found;
    for (int64_t m = 0; m < matrices; m++) Count(b + m * k * n, shift, k, n, &found);
    return found;
  };
  PairShift best = {std::is_signed_v<T> ? 0 : -128};
  Extra found = extra(best.shift);
  if (found.all > 0) {
    const int32_t middle = Middle(b, count);
    const Extra other = extra(middle);
    if (other.all < found.all) best.shift = middle, found = other;
  }
  const int64_t vectors = matrices * ((n + kPairColumns - 1) / kPairColumns);
  if (found.all * kMostShare <= vectors * ((k + 3) / 4)) best.extra = found.most;
  return best;
}

}  // namespace

PairShift FindPairShift(const void* b, bool is_signed, int64_t matrices, int64_t k, int64_t n) {
  return is_signed ? Find(static_cast<const int8_t*>(b), matrices, k, n)
                   : Find(static_cast<const uint8_t*>(b), matrices, k, n);
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
        if (FitsPair(from[i], from[i + 1])) continue;
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
