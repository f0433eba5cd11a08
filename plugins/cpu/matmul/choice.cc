// choice.cc: see choice.h. tools/bench/products.py measures the table.
#include "plugins/cpu/matmul/choice.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

struct Measured {
  Isa isa;
  int64_t m, k, n;
  int varying, constant;  // time of the own loops in percent of oneDNN's, by whether b is a constant
};
constexpr Measured kMeasured[] = {
#include "plugins/cpu/matmul/choices.inc"
};

// A region also computes the ops after a product, so the own loops must win by more than that saves.
constexpr int kWins = 95;

// Up to here the own loops win on all classes: a call of oneDNN alone costs some 300 ns.
constexpr int64_t kSmallWork = 256 * 1024;

// How many times larger or smaller the dims are, as a logarithm.
double Distance(const Measured& a, const MatmulShape& s) {
  const auto ratio = [](int64_t x, int64_t y) {
    return std::fabs(std::log2(static_cast<double>(x) / static_cast<double>(y)));
  };
  return ratio(a.m, s.m) + ratio(a.k, s.k) + ratio(a.n, s.n);
}

// KEEL_CPU_PRODUCTS=own or onednn: all products that are not small, for measurements.
std::string_view Forced() {
  static const char* const given = secure_getenv("KEEL_CPU_PRODUCTS");
  return given == nullptr ? "" : given;
}

}  // namespace

bool PrefersOneDnn(const MatmulShape& s, bool constant) {
  if (s.Work() <= kSmallWork) return false;
  if (!Forced().empty()) return Forced() == "onednn";
  const Isa isa = std::min(UsedIsa(), Isa::kAvx512);  // AMX has no f32
  const Measured* nearest = nullptr;
  for (const Measured& each : kMeasured)
    if (each.isa == isa && (nearest == nullptr || Distance(each, s) < Distance(*nearest, s))) nearest = &each;
  return (constant ? nearest->constant : nearest->varying) > kWins;
}

}  // namespace keel_cpu
