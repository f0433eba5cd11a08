// eval.h: the evaluation of static expressions.
#pragma once

#include "kernel/language/opset/env.h"

namespace keel::opset {

absl::Status Eval(const Expr&, Env&, Val* out);
absl::Status EvalInt(const Expr&, Env&, int64_t* out);
absl::Status EvalList(const Expr&, Env&, List* out);  // a scalar becomes a list of one
absl::Status EvalBool(const Expr&, Env&, bool* out);  // unknown is an error
std::string Fill(const Template&, Env&);              // an expression that fails is replaced by "?"

}  // namespace keel::opset
