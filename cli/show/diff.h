// diff.h: the differences between two arrays. Used by compare and verify.
#ifndef KEEL_CLI_DIFF_H
#define KEEL_CLI_DIFF_H
#include <keel/session.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cli {

struct Tolerance {
  double rtol, atol;
};
// Default tolerances by dtype; integers and booleans must be equal.
Tolerance default_tolerance(keel_dt dtype);
Tolerance tolerance_for(keel_dt dtype, std::optional<double> rtol, std::optional<double> atol);

struct Diff {
  bool same_type = true;  // else nothing below is set
  double max_abs = 0, max_rel = 0;
  int64_t outside = 0;      // elements with |got - want| > atol + rtol * |want|
  int64_t first = -1;       // the first of them, row-major
  std::string got, wanted;  // that element
  bool ok() const { return same_type && outside == 0; }
  nlohmann::ordered_json json() const;
};
// NaN equals NaN, and infinities equal themselves.
Diff diff_arrays(const keel::Array& got, const keel::Array& want, Tolerance tolerance);

}  // namespace cli
#endif
