// op_graph.cc: see op_graph.h.
#include "kernel/runtime/plan/op_graph.h"

namespace keel {

absl::StatusOr<OpGraph> BuildOp(Module& module, const OpDef& op, const Attrs& attrs,
                                const std::vector<TensorType>& operands,
                                const std::vector<const Constant*>& constants) {
  ASSIGN_OR_RETURN(Graph * graph, module.AddGraph(OpName(op)));
  std::vector<ValueId> in;
  for (size_t i = 0; i < operands.size(); i++) {
    in.push_back(kNoValue);
    if (i < constants.size() && constants[i]) {
      Constant constant = *constants[i];
      constant.name.clear();
      ASSIGN_OR_RETURN(in.back(), graph->AddConstant(std::move(constant)));
    } else if (operands[i].dtype != DType::kNone) {
      ASSIGN_OR_RETURN(in.back(), graph->AddParam(absl::StrCat("operand", i), operands[i]));
    }
  }
  ASSIGN_OR_RETURN(NodeId node, graph->AddNode(&op, std::move(in), attrs));
  return OpGraph{graph, node};
}

}  // namespace keel
