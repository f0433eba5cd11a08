// choice.cc: see choice.h. tools/bench/products.py measures the table.
#include "plugins/cpu/matmul/choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "plugins/cpu/matmul/tuned.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

struct Measured {
  Chip chip;
  Isa isa;
  int64_t m, k, n;
  int varying, constant;  // time of the own loops in percent of oneDNN's, by whether b is a constant
};
constexpr Measured kMeasured[] = {
#include "plugins/cpu/matmul/choices.inc"
};

// The own loops are chosen up to so many percent of oneDNN's time. A region also computes the ops after a
// product, so they must win by more than that saves: nothing for a few rows, and the less the longer the sums
// are. On an EPYC with AVX-512 it is below 2 % for k of 768 (GPT-2, BERT-base, an MLP of 60,000 rows).
int Wins(int64_t m, int64_t k) {
  constexpr int64_t kLong = 512;
  static const bool is_measured = ThisChip() == Chip::kAmd && UsedIsa() >= Isa::kAvx512;
  return m <= 8 ? 100 : is_measured && k >= kLong ? 98 : 95;
}

// Up to here the own loops win on all classes: a call of oneDNN alone costs some 300 ns.
constexpr int64_t kSmallWork = 256 * 1024;

// Places in ProductReasons.
enum : size_t { kSmall, kDots, kBatches, kForcedOwn, kForcedOneDnn, kTunedOwn, kTunedOneDnn, kTable };

// The lines of this class, measured on a processor of this maker if there are any.
std::vector<Measured> Lines() {
  const Isa isa = std::min(UsedIsa(), Isa::kAvx512);  // AMX has no f32
  std::vector<Measured> lines, others;
  for (const Measured& each : kMeasured)
    if (each.isa == isa) (each.chip == ThisChip() ? lines : others).push_back(each);
  return lines.empty() ? others : lines;
}
const std::vector<Measured>& Table() {
  static const std::vector<Measured> lines = Lines();
  return lines;
}

ProductReason ReasonOf(const Measured& line, bool constant) {
  const int percent = constant ? line.constant : line.varying;
  const bool onednn = percent > Wins(line.m, line.k);
  std::string name = (onednn ? "oneDNN: own loops take " : "own loops: ") + std::to_string(percent) +
                     (onednn ? " % of its time at " : " % of oneDNN's time at ");
  name += std::to_string(line.m) + "x" + std::to_string(line.k) + "x" + std::to_string(line.n) +
          (constant ? ", constant b (" : " (") + NameOf(line.isa) + ")";
  return {onednn, std::move(name)};
}

std::vector<ProductReason> MakeReasons() {
  std::vector<ProductReason> reasons = {
      {false, "own loops: small product"},    {false, "own loops: a few rows by a transposed matrix"},
      {false, "own loops: many matrices"},    {false, "own loops: KEEL_CPU_PRODUCTS"},
      {true, "oneDNN: KEEL_CPU_PRODUCTS"},    {false, "own loops: tuned on this machine"},
      {true, "oneDNN: tuned on this machine"}};
  for (const Measured& line : Table())
    for (const bool constant : {false, true}) reasons.push_back(ReasonOf(line, constant));
  return reasons;
}

// Dims as logarithms: the distance of two shapes is how many times larger or smaller their dims are.
using Place = std::array<float, 3>;
Place PlaceOf(int64_t m, int64_t k, int64_t n) {
  const auto log = [](int64_t dim) { return std::log2(static_cast<float>(dim)); };
  return {log(m), log(k), log(n)};
}
float Distance(const Place& a, const Place& b) {
  return std::fabs(a[0] - b[0]) + std::fabs(a[1] - b[1]) + std::fabs(a[2] - b[2]);
}
std::vector<Place> PlacesOf(const std::vector<Measured>& lines) {
  std::vector<Place> places;
  for (const Measured& line : lines) places.push_back(PlaceOf(line.m, line.k, line.n));
  return places;
}

// The line of the nearest shape.
size_t Nearest(const MatmulShape& s) {
  static const std::vector<Place> places = PlacesOf(Table());
  const Place mine = PlaceOf(s.m, s.k, s.SharesLeft() ? s.b_matrices * s.n : s.n);
  const auto nearer = [&](const Place& a, const Place& b) { return Distance(a, mine) < Distance(b, mine); };
  return static_cast<size_t>(std::min_element(places.begin(), places.end(), nearer) - places.begin());
}

// Products of so many matrices that they come from farther than the second-level cache, where two have room:
// the own loops fetch the next ones meanwhile, and take 0.71 to 0.98 of oneDNN's time on an EPYC of Zen 4
// (96x128x64 by 96x64x128, 12x512x64 by 12x64x512, both classes). Not measured on Intel, and for fewer rows.
bool AreManyMatrices(const MatmulShape& s) {
  constexpr int64_t kRows = 96;
  const int64_t bytes = (s.m + s.n) * s.k * static_cast<int64_t>(sizeof(float)), cache = SecondLevelCache();
  return ThisChip() == Chip::kAmd && UsedIsa() >= Isa::kAvx2 && s.m >= kRows && !s.ta && !s.tb &&
         s.Batches() == s.b_matrices && bytes <= cache / 4 && s.b_matrices * bytes > cache;
}

// KEEL_CPU_PRODUCTS=own or onednn: all products that are not small, for measurements.
std::string_view Forced() {
  static const char* const given = secure_getenv("KEEL_CPU_PRODUCTS");
  return given == nullptr ? "" : given;
}

}  // namespace

const std::vector<ProductReason>& ProductReasons() {
  static const std::vector<ProductReason> reasons = MakeReasons();
  return reasons;
}

size_t ReasonFor(const MatmulShape& s, bool constant) {
  if (s.Work() <= kSmallWork) return kSmall;
  if (!Forced().empty()) return Forced() == "onednn" ? kForcedOneDnn : kForcedOwn;
  if (!constant && s.IsDots()) return kDots;
  if (!constant && AreManyMatrices(s)) return kBatches;
  if (const std::optional<Timing> tuned = Tuned(s, constant))
    return 100 * tuned->own > Wins(s.m, s.k) * tuned->onednn ? kTunedOneDnn : kTunedOwn;
  return kTable + 2 * Nearest(s) + (constant ? 1 : 0);
}

bool PrefersOneDnn(const MatmulShape& s, bool constant) {
  return ProductReasons()[ReasonFor(s, constant)].onednn;
}

double OwnPercent(const MatmulShape& s, bool constant) {
  constexpr double kForced = 1000;
  const size_t reason = ReasonFor(s, constant);
  if (reason == kTunedOwn || reason == kTunedOneDnn) {
    const Timing tuned = *Tuned(s, constant);
    return 100 * tuned.own / tuned.onednn;
  }
  if (reason < kTable) return reason == kForcedOneDnn ? kForced : 100;
  const Measured& line = Table()[(reason - kTable) / 2];
  return constant ? line.constant : line.varying;
}

bool AreOwnLoopsFaster(const MatmulShape& s) {
  if (!Forced().empty()) return Forced() == "own";
  if (const std::optional<Timing> tuned = Tuned(s, true)) return tuned->own <= tuned->onednn;
  return Table()[Nearest(s)].constant <= 100;
}

}  // namespace keel_cpu
