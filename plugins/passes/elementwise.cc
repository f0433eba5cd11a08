// elementwise.cc: the table of elementwise ops.
#include "elementwise.h"

#include <unordered_map>

namespace keel_passes {

uint32_t elementwise(std::string_view op) {
  constexpr uint32_t kPair = kBinary | kSpreads;
  static const std::unordered_map<std::string_view, uint32_t> kOps = {
      {"add", kPair},
      {"sub", kPair},
      {"mul", kPair},
      {"div", kPair},
      {"mod", kPair},
      {"rem", kPair},
      {"pow", kPair},
      {"maximum", kPair},
      {"minimum", kPair},
      {"equal", kPair},
      {"not_equal", kPair},
      {"less", kPair},
      {"less_equal", kPair},
      {"greater", kPair},
      {"greater_equal", kPair},
      {"logical_and", kPair},
      {"logical_or", kPair},
      {"logical_xor", kPair},
      {"bit_and", kPair},
      {"bit_or", kPair},
      {"bit_xor", kPair},
      {"shift_left", kPair},
      {"shift_right", kPair},
      {"logical_not", kUnary | kSelfInverse},
      {"bit_not", kUnary | kSelfInverse},
      {"neg", kUnary | kSelfInverse},
      {"abs", kUnary | kIdempotent},
      {"sign", kUnary | kIdempotent},
      {"sqrt", kUnary},
      {"rsqrt", kUnary},
      {"reciprocal", kUnary},
      {"exp", kUnary},
      {"log", kUnary},
      {"log1p", kUnary},
      {"sin", kUnary},
      {"cos", kUnary},
      {"tanh", kUnary},
      {"erf", kUnary},
      {"floor", kUnary | kIdempotent},
      {"ceil", kUnary | kIdempotent},
      {"round", kUnary | kIdempotent},
      {"relu", kUnary | kIdempotent},
      {"is_nan", kUnary},
      {"is_inf", kUnary},
      {"is_finite", kUnary},
      {"cast", kUnary},
      {"sigmoid", kUnary},
      {"gelu", kUnary},
      {"silu", kUnary},
      {"softplus", kUnary},
      {"leaky_relu", kUnary},
      {"square", kUnary},
      {"clamp", kUnary},  // its bounds are scalars
      {"select", kSpreads},
  };
  const auto found = kOps.find(op);
  return found == kOps.end() ? 0 : found->second;
}

}  // namespace keel_passes
