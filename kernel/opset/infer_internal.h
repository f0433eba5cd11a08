// infer_internal.h: the steps of inference, in the order in which Infer (infer.cc) takes them.
#pragma once

#include "kernel/opset/eval.h"

namespace keel::opset {

// infer.cc: all steps; afterwards the Env holds every binding, which bodies are written with.
absl::Status InferInto(Env&, const Attrs& given, Inferred* out, const GraphTypesOf* graphs = nullptr,
                       const VarTypeOf* vars = nullptr);

// attrs.cc
absl::Status BindAttrs(Env&, const Attrs& given);  // what was given, and defaults that need no operand
absl::Status SettleAttrs(Env&);                    // spread, normalised, matched, once groups are known
void ExportAttrs(const Env&, Attrs* out);          // to the form that kernels and files see

// match.cc
absl::Status MatchVariable(Env&, const AttrDef&, const TensorType&);
absl::Status MatchOperands(Env&);
absl::Status MatchWeak(Env&, std::vector<DType>* operand_dtypes);
// Dims against items; `operand` is its number, or -1 with `name` for an attribute. Dims may become
// more specific: where only symbols can tell that two are equal, the number is kept.
absl::Status MatchItems(Env&, const Pattern&, std::span<const int64_t> dims, int operand,
                        std::string_view name);
absl::Status NormaliseAxis(const Env&, std::string_view name, int64_t positions, int64_t* axis);
const OperandDef& OperandAt(const OpDef&, size_t index);

// control.cc: types of ops that run graphs under control: `out y...: by RULE`.
const ControlRule* FindControlRule(std::string_view name);  // null: there is none
absl::Status InferControl(Env&, const GraphTypesOf* graphs, Inferred* out);

}  // namespace keel::opset
