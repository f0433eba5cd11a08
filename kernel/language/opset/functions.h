// functions.h: the shape functions of static expressions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/language/opset/env.h"

namespace keel::opset {

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
