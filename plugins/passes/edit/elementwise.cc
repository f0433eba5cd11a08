// elementwise.cc: the table of elementwise ops.
#include "plugins/passes/edit/elementwise.h"

#include <unordered_map>

namespace keel_passes {

uint32_t elementwise(std::string_view op) {
  constexpr uint32_t kPair = kBinary | kSpreads;
  static const std::unordered_map<std::string_view, uint32_t> kOps = {
      {"add", kPair | kPostOp},
      {"sub", kPair | kPostOp},
      {"mul", kPair | kPostOp},
      {"div", kPair | kPostOp},
      {"mod", kPair},
      {"rem", kPair},
      {"pow", kPair},
      {"maximum", kPair | kPostOp},
      {"minimum", kPair | kPostOp},
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
      {"logical_not", kUnary},
      {"bit_not", kUnary},
      {"neg", kUnary | kPostOp},
      {"abs", kUnary | kPostOp},
      {"sign", kUnary},
      {"sqrt", kUnary | kPostOp},
      {"rsqrt", kUnary},
      {"reciprocal", kUnary},
      {"exp", kUnary | kPostOp},
      {"log", kUnary | kPostOp},
      {"log1p", kUnary},
      {"sin", kUnary},
      {"cos", kUnary},
      {"tanh", kUnary | kPostOp},
      {"erf", kUnary},
      {"floor", kUnary},
      {"ceil", kUnary},
      {"round", kUnary | kPostOp},
      {"relu", kUnary | kPostOp},
      {"is_nan", kUnary},
      {"is_inf", kUnary},
      {"is_finite", kUnary},
      {"cast", kUnary},
      {"sigmoid", kUnary | kPostOp},
      {"gelu", kUnary | kPostOp},
      {"silu", kUnary | kPostOp},
      {"softplus", kUnary | kPostOp},
      {"leaky_relu", kUnary | kPostOp},
      {"square", kUnary | kPostOp},
      {"clamp", kUnary | kPostOp},  // its bounds are scalars
      {"select", kSpreads},
  };
  const auto found = kOps.find(op);
  return found == kOps.end() ? 0 : found->second;
}

bool surely_spreads(const Edit& e, const Dims& dims, const Dims& result) {
  if (dims.size() > result.size()) return false;
  for (size_t back = 1; back <= dims.size(); back++) {
    const keel_dim d = dims[dims.size() - back];
    if (d != 1 && !e.same(d, result[result.size() - back])) return false;
  }
  return true;
}

}  // namespace keel_passes
