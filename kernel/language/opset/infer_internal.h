// infer_internal.h: the steps of inference, in the order of Infer (infer.cc).
#pragma once

#include "kernel/language/opset/eval.h"

namespace keel::opset {

// infer.cc: runs all steps. Afterwards the Env has every binding that expanding the body needs.
absl::Status InferInto(Env&, const Attrs& given, Inferred* out, const GraphTypesOf* graphs = nullptr,
                       const VarTypeOf* vars = nullptr);

// attrs.cc
absl::Status BindAttrs(Env&, const Attrs& given);  // given values, and defaults that need no operand
absl::Status SettleAttrs(Env&);                    // broadcasts, normalises, matches; groups are bound
void ExportAttrs(const Env&, Attrs* out);          // to the form used by kernels and files
void Export(const Val&, int32_t kind, AttrValue* to);

// match.cc
absl::Status MatchVariable(Env&, const AttrDef&, const TensorType&);
absl::Status MatchOperands(Env&);
absl::Status MatchWeak(Env&, std::vector<DType>* operand_dtypes);
// Matches dims with items. operand: its index, or -1 and `name` for an attribute. A symbolic dim that must
// equal a number is replaced by it.
absl::Status MatchItems(Env&, const Pattern&, std::span<const int64_t> dims, int operand,
                        std::string_view name);
absl::Status NormaliseAxis(const Env&, std::string_view name, int64_t positions, int64_t* axis);

// control.cc: types of control ops: `out y...: by RULE`.
const ControlRule* FindControlRule(std::string_view name);  // null: unknown
absl::Status InferControl(Env&, const GraphTypesOf* graphs, Inferred* out);

}  // namespace keel::opset
