// turns.h: alternating measurement of two or three implementations of one task.
#pragma once
#include <cmath>
#include <functional>
#include <numeric>

#include "../hot/harness.h"

namespace map_bench {

// Processor time in nanoseconds of a body that handles n elements.
inline double Time(const std::function<void()>& body, int64_t n) {
  const int64_t times = std::max<int64_t>(1, 2'000'000 / (n + 200));
  const double start = hot::ProcessorNow();
  for (int64_t i = 0; i < times; i++) body();
  return (hot::ProcessorNow() - start) / static_cast<double>(times);
}

struct Turns {
  std::vector<std::vector<double>> times;  // [implementation][round]
  Turns(const std::vector<std::function<void()>>& ways, int64_t n, int rounds) : times(ways.size()) {
    for (int r = 0; r < rounds; r++)
      for (size_t w = 0; w < ways.size(); w++) times[w].push_back(Time(ways[w], n));
  }
  double Micros(size_t way) const { return hot::Summarise("", 0, times[way]).median / 1e3; }
  // Median and quartiles over the rounds of the ratio of two implementations.
  std::string Ratio(size_t way, size_t of) const {
    std::vector<double> ratios;
    for (size_t r = 0; r < times[way].size(); r++) ratios.push_back(times[way][r] / times[of][r]);
    std::sort(ratios.begin(), ratios.end());
    const auto at = [&](double q) {
      return ratios[static_cast<size_t>(q * static_cast<double>(ratios.size() - 1))];
    };
    char text[64];
    std::snprintf(text, sizeof(text), "%.2f [%.2f, %.2f]", at(0.5), at(0.25), at(0.75));
    return text;
  }
};

inline int64_t Count(const keel_tensor& t) {
  return std::accumulate(t.shape, t.shape + t.ndim, int64_t{1}, std::multiplies<>());
}

// A flat f32[shape] filled with a wave.
inline keel_array* Wave(keel_context* context, const std::vector<int64_t>& shape, float height) {
  keel_array* array = hot::Filled(context, KEEL_F32, shape, height);
  keel_tensor t;
  keel_array_tensor(array, &t);
  float* x = static_cast<float*>(t.data);
  for (int64_t i = 0; i < Count(t); i++)
    x[i] = height * static_cast<float>(std::sin(0.1 * static_cast<double>(i)));
  return array;
}

}  // namespace map_bench
