// functions.h: the shape functions of static expressions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "kernel/opset/def.h"

namespace keel::opset {

using List = absl::InlinedVector<int64_t, 8>;

// A static value. Dims and integers are both kInt: a number, or a handle of the DimTable.
struct Val {
  enum Kind : uint8_t { kNone, kInt, kFloat, kBool, kStr, kDType, kList, kFloats } kind = kNone;
  int64_t i = 0;  // kInt; kBool: 0 or 1; kDType
  double f = 0;
  List list;
  std::string_view s;              // borrowed from the definition or the given attributes
  std::span<const double> floats;  // borrowed from there, too
};

struct Env;

struct Function {
  std::string_view name;
  uint8_t least, most;                                              // number of arguments
  absl::Status (*call)(Env&, std::span<const Val> args, Val* out);  // null: evaluated by eval.cc
  bool names = false;                                               // its argument is a name, not a value
};
const Function* FindFunction(std::string_view name);

// Broadcasts two shapes. An equality that depends on symbols becomes a check.
absl::Status Broadcast(Env&, std::span<const int64_t> a, std::span<const int64_t> b, List* out);

}  // namespace keel::opset
