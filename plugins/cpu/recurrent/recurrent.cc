// recurrent.cc: a scan of the form of recurrent nets as one launch (form.h, net.h): products by constant
// weights, a block of units at a time, whose elementwise ops follow while its sums are in the first-level
// cache. libkeel runs the bodies of other scans launch by launch.
#include <algorithm>

#include "plugins/cpu/recurrent/net.h"
#include "plugins/cpu/recurrent/stage_body.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

// Of the time of the body's launches, 16 rows of 512 units, whose weights come from the third-level cache in
// each step, took 1.00 to 1.03; two to seven rows of 128 units took 1.03 to 1.05.
bool Gains(const RecurrentForm& form) {
  int64_t weights = 0;
  for (const Sum& sum : form.sums)
    for (const SumPart& part : sum.parts) weights += form.products[part.product].depth * form.units;
  const bool are_near = weights * static_cast<int64_t>(sizeof(float)) <= SecondLevelCache();
  return form.state[0] <= 1 || (form.state[0] >= kManyRows && are_near);
}

bool FitsNet(const Node& scan) {
  RecurrentForm form;
  if (!ReadRecurrent(scan, &form) || !Gains(form)) return false;
  for (uint32_t s = 0; s < form.stages; s++) {
    const auto sums = std::ranges::count_if(form.sums, [&](const Sum& sum) { return sum.stage == s; });
    const StageBody body(scan, form, s);
    if (static_cast<size_t>(sums) > kMostSums || body.results.empty() || !FitsMap(body.map)) return false;
  }
  return true;
}

constexpr keel_impl kImpls[] = {
    Impl("scan", "recurrent net", Prepare<PrepareNet>, 0, nullptr, 0, Match<FitsNet>),
    // By this impl the pass `within` recognises scans for the other.
    Impl("call", "step of a recurrent net", Prepare<PrepareNet>, 0, nullptr, 0, Match<FitsNet>)};

}  // namespace

Impls RecurrentImpls() { return kImpls; }

}  // namespace keel_cpu
