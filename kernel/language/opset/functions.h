// functions.h: the shape functions of static expressions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/language/opset/env.h"

namespace keel::opset {

struct Function {
  std::string_view name;
  // One letter per argument: l list, b bool, d dtype, v any value, n the name of an operand.
  std::string_view arguments;
  absl::Status (*call)(Env&, std::span<const Val> args, Val* out);  // null: evaluated by eval.cc, or:
  absl::Status (*each)(Env&, int64_t a, int64_t b, int64_t* out) = nullptr;  // elementwise
};
const Function* FindFunction(std::string_view name);
absl::Status CheckArguments(const Env&, const Function&, std::span<const Val> args);

// Broadcasts two shapes. An equality that depends on symbols becomes a check.
absl::Status Broadcast(Env&, std::span<const int64_t> a, std::span<const int64_t> b, List* out);

}  // namespace keel::opset
