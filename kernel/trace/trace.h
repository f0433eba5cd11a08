// trace.h: a graph that is written by running a program on symbolic arrays. A symbolic array stands for
// one value of the graph; applying an op to it appends a node and gives symbolic arrays for the results.
// Concrete arrays among the operands are captured: they become constants, which share their memory.
//
// Any thread may write, one at a time; symbolic arrays keep their trace alive. After End nothing can be
// added any more, and an array of the trace that leaked out of the program is an error that names it.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/graph/graph.h"
#include "kernel/values/array.h"

namespace keel {

class Trace : public std::enable_shared_from_this<Trace> {
 public:
  // Writes `graph` of `module`; what the graph has already (parameters) is kept. Nodes of ops bound to
  // another device than `device` get it as their scope.
  Trace(std::shared_ptr<Module> module, Graph* graph, std::string device);

  const std::shared_ptr<Module>& module() const { return module_; }
  Graph* graph() const { return graph_; }

  absl::StatusOr<ArrayRef> Param(std::string_view name, TensorType type);
  absl::StatusOr<ArrayRef> ArrayFor(ValueId value);  // a symbolic array
  // Operands may be symbolic arrays of this trace, concrete arrays, or null (left out).
  absl::Status Apply(const OpDef& op, const Attrs& attrs, const std::string& device,
                     std::span<keel_array* const> in, std::span<keel_array*> out);
  absl::Status Result(std::string_view name, keel_array* array);
  // Appends the gradient of ys (arrays of this trace) with respect to xs; null where nothing is connected.
  absl::Status Gradient(std::span<keel_array* const> ys, std::span<keel_array* const> seeds,
                        std::span<keel_array* const> xs, bool zeros, std::span<ArrayRef> out);
  absl::Status End();

  // The trace that a symbolic array belongs to; null: a concrete array.
  static Trace* Of(const keel_array* array);
  // That of the first symbolic operand; an error if another one belongs to another trace.
  static absl::StatusOr<Trace*> OfAll(std::span<keel_array* const> arrays);

 private:
  absl::Status CheckOpen(std::string_view doing) const;
  absl::StatusOr<ValueId> ValueFor(keel_array* array);
  absl::StatusOr<ValueId> Capture(keel_array* array);
  absl::StatusOr<ArrayRef> Symbol(ValueId value);

  std::shared_ptr<Module> module_;
  Graph* graph_;
  std::string device_;
  bool open_ = true;
  HashMap<const keel_array*, std::pair<ArrayRef, ValueId>> captured_;
  mutable std::mutex mutex_;
};

}  // namespace keel
