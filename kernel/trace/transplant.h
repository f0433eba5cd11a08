// transplant.h: nodes of one module written into a graph of another, for sizes that are known there: symbols
// become numbers, and the constants and bodies that nodes name come along. Effects stay behind: they happened
// when the nodes were run.
#pragma once

#include <vector>

#include "kernel/base/hash.h"
#include "kernel/graph/graph.h"

namespace keel {

class Transplant {
 public:
  Transplant(const Module& from, Module& to) : from_(from), to_(to), symbols_(from.dims.symbol_count(), -1) {}

  // What stands for a value of that type has this one, which tells symbols.
  void Learn(const TensorType& type, const TensorType& given);
  // at: by value of `from`, what stands for it (kNoValue: nothing yet); nodes add what they compute.
  absl::Status Write(const Graph& from, const std::vector<bool>& nodes, Graph* to, std::vector<ValueId>* at);
  // A value that is there, or a constant.
  absl::StatusOr<ValueId> Find(const Graph& from, ValueId v, Graph* to, std::vector<ValueId>* at);

 private:
  absl::StatusOr<Dim> Size(Dim dim) const;
  absl::StatusOr<Attrs> AttrsOf(Attrs attrs);
  absl::StatusOr<int64_t> Body(int64_t number);

  const Module& from_;
  Module& to_;
  std::vector<int64_t> symbols_;  // -1: not known
  HashMap<int64_t, int64_t> bodies_;
};

}  // namespace keel
