// diff.cc: see diff.h.
#include "cli/show/diff.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/data/scalar.h"

namespace cli {
namespace {

struct Row {
  keel_dt dtype;
  Tolerance tolerance;
};
constexpr Row kDefaults[] = {
    {KEEL_F64, {1e-9, 1e-12}}, {KEEL_F32, {1e-4, 1e-5}}, {KEEL_F16, {1e-2, 1e-3}}, {KEEL_BF16, {4e-2, 1e-2}}};

template <class T>
void diff_elements(const T* got, const T* want, int64_t count, Tolerance t, Diff& diff) {
  for (int64_t i = 0; i < count; i++) {
    auto a = static_cast<double>(got[i]), b = static_cast<double>(want[i]);
    bool equal = got[i] == want[i] || (std::isnan(a) && std::isnan(b));
    if (equal) continue;
    double delta = std::fabs(a - b);  // NaN counts as outside
    double relative = b != 0 ? delta / std::fabs(b) : INFINITY;
    diff.max_abs = std::max(diff.max_abs, std::isnan(delta) ? INFINITY : delta);
    diff.max_rel = std::max(diff.max_rel, std::isnan(relative) ? INFINITY : relative);
    // A one-sided infinity is never within tolerance, although rtol * inf is inf.
    if (is_floating<T> && std::isfinite(a) && std::isfinite(b) && delta <= t.atol + t.rtol * std::fabs(b))
      continue;
    if (diff.outside++ > 0) continue;
    diff.first = i;
    diff.got = fmt::format("{:.9g}", a);
    diff.wanted = fmt::format("{:.9g}", b);
  }
}

nlohmann::ordered_json finite(double v) {
  return std::isfinite(v) ? nlohmann::ordered_json(v) : nlohmann::ordered_json("inf");
}

}  // namespace

Tolerance default_tolerance(keel_dt dtype) {
  for (const Row& row : kDefaults)
    if (row.dtype == dtype) return row.tolerance;
  return {0, 0};
}

Tolerance tolerance_for(keel_dt dtype, std::optional<double> rtol, std::optional<double> atol) {
  Tolerance t = default_tolerance(dtype);
  return {rtol.value_or(t.rtol), atol.value_or(t.atol)};
}

nlohmann::ordered_json Diff::json() const {
  nlohmann::ordered_json out{{"ok", ok()}};
  if (!same_type) {
    out["why"] = "dtype or shape differ";
    return out;
  }
  out["max_abs"] = finite(max_abs);
  out["max_rel"] = finite(max_rel);
  out["outside"] = outside;
  if (first >= 0) {
    out["first"] = first;
    out["got"] = got;
    out["wanted"] = wanted;
  }
  return out;
}

Diff diff_arrays(const keel::Array& got, const keel::Array& want, Tolerance tolerance) {
  Diff diff;
  diff.same_type = got.dtype() == want.dtype() && std::ranges::equal(got.shape(), want.shape());
  if (!diff.same_type) return diff;
  const keel::PlainElements ours(got), theirs(want);
  visit(ours.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    diff_elements(static_cast<const T*>(ours.data()), static_cast<const T*>(theirs.data()), got.size(),
                  tolerance, diff);
  });
  return diff;
}

}  // namespace cli
