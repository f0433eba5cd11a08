#include "kernel/program/grad/joint.h"

#include "kernel/program/grad/slice.h"

namespace keel {

absl::StatusOr<Joint> Join(const Graph& body, const std::vector<bool>& ys, const std::vector<bool>& xs,
                           GradientAppender append) {
  Joint joint{CopyGraph(body), {}, {}};
  Graph& graph = *joint.graph;
  std::vector<ValueId> of, at;
  for (size_t i = 0; i < ys.size(); i++) {
    if (!ys[i]) continue;
    of.push_back(body.results[i]);
    ASSIGN_OR_RETURN(joint.seeds.emplace_back(), graph.AddParam("", body.values[of.back()].type));
  }
  for (size_t i = 0; i < xs.size(); i++)
    if (xs[i]) at.push_back(body.params[i]);
  GraphSink sink(graph);
  ASSIGN_OR_RETURN(joint.dxs, append(sink, {of, joint.seeds, at, true}));
  return joint;
}

}  // namespace keel
