// linker.h: copies graphs into another module, including called graphs; constants and variables are reused if
// the target has them. A taken name gets a numeric suffix.
#pragma once

#include "kernel/language/graph/copier.h"
#include "kernel/runtime/plugin/body.h"

namespace keel {

struct LinkRules {
  // Map dims and variables of the source module to the target module.
  DimMap dims;
  std::function<absl::StatusOr<uint32_t>(const ModuleVariable&)> variable = {};  // absent: added by name
  // Copies needed nodes only, for known sizes: without names, declared types and origins. A node with an
  // effect is an error, because the effect has already happened.
  bool recompute = false;
};

class Linker {
 public:
  Linker(Module& to, const Module& from, LinkRules rules)
      : to_(to), from_(from), rules_(std::move(rules)), graphs_(from.graphs.size(), -1) {}

  // The number of the graph in the target module; called graphs are copied before it.
  absl::StatusOr<int64_t> GraphFor(int64_t number);
  // Reuses a constant with the same memory. `user` (may be null): a graph whose value names must stay unique.
  absl::StatusOr<uint32_t> ConstantFor(uint32_t number, const Graph* user);

 private:
  friend class LinkedCopy;
  absl::Status Copy(const Graph& source, const std::vector<bool>& wanted, Graph& made);
  absl::Status MapAttrs(Attrs* attrs);
  absl::StatusOr<Origin> OriginOf(const Node& node);

  Module& to_;
  const Module& from_;
  LinkRules rules_;
  std::vector<int64_t> graphs_;  // number in the target module; -1: not copied yet
};

// Copies nodes into a graph of the target module. `user`: see Linker::ConstantFor.
class LinkedCopy : public GraphCopier {
 public:
  LinkedCopy(Linker& linker, const Graph& from, Graph& to, const Graph* user, std::vector<ValueId> map = {})
      : GraphCopier(from, to, std::move(map)), linker_(linker), user_(user) {}

 protected:
  absl::Status Adapt(NodeId n, Draft* draft) override;
  absl::StatusOr<uint32_t> ConstantFor(uint32_t number) override;

 private:
  Linker& linker_;
  const Graph* user_;
};

}  // namespace keel
