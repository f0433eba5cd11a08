// transplant.h: copies nodes into a graph of another module for known sizes: symbols become numbers;
// referenced constants and bodies are copied, too. A node with an effect is an error: the effect has already
// happened.
#pragma once

#include <vector>

#include "kernel/base/hash.h"
#include "kernel/graph/graph.h"

namespace keel {

class Transplant {
 public:
  Transplant(const Module& from, Module& to) : from_(from), to_(to), symbols_(from.dims.symbol_count(), -1) {}

  // Binds the symbols of `type` to the sizes of `given`, the type of the corresponding value in the target.
  void BindSymbols(const TensorType& type, const TensorType& given);
  // at: the value in `to` for each value of `from` (kNoValue: none yet); extended by the copied nodes.
  absl::Status Write(const Graph& from, const std::vector<bool>& nodes, Graph* to, std::vector<ValueId>* at);
  // The value in `to` for v; copies a constant on first use.
  absl::StatusOr<ValueId> Find(const Graph& from, ValueId v, Graph* to, std::vector<ValueId>* at);

 private:
  absl::StatusOr<Dim> Size(Dim dim) const;
  absl::StatusOr<Attrs> AttrsOf(Attrs attrs);
  absl::StatusOr<int64_t> Body(int64_t number);

  const Module& from_;
  Module& to_;
  std::vector<int64_t> symbols_;  // -1: unbound
  HashMap<int64_t, int64_t> bodies_;
};

}  // namespace keel
