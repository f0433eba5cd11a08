// node.h: one node as seen by plugins, and a body of such nodes, as shown by keel_host.node_body and
// node_graph.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "abi/keel_plugin.h"
#include "kernel/language/opset/opset.h"

namespace keel {
struct BodyView;
// Device memory for the states of launches.
class StateMemory {
 public:
  virtual ~StateMemory() = default;
  // data null: uninitialized. Does not wait.
  virtual absl::StatusOr<keel_memory*> NewMemory(const void* data, uint64_t bytes, uint64_t* address) = 0;
};
}  // namespace keel

// Freed by the destructor.
struct keel_memory {
  virtual ~keel_memory() = default;
};

// One op with known operands, for match, prepare and passes. Created by the planner or by a pass.
struct keel_node {
  const keel::OpDef* op = nullptr;
  std::string name;
  struct Side {  // an operand or a result; omitted: dtype none
    keel::DType dtype = keel::DType::kNone;
    std::vector<int64_t> dims;  // -1: unknown
    const void* data = nullptr;
  };
  std::vector<Side> in, out;
  keel::Attrs attrs;                           // complete; dims are numbers, or handles in a pass
  bool exact_convolution = false;              // session option
  std::shared_ptr<const keel::BodyView> body;  // of a call
  std::vector<std::shared_ptr<const keel::BodyView>> graphs;  // of a control op
  keel::StateMemory* memory = nullptr;                        // null: host memory, or not in prepare
  // Passes visit many nodes but mostly read their ops: other members are filled in on first access.
  std::function<void(keel_node*)> fill;
};

namespace keel {

struct BodyView {
  std::vector<keel_node> nodes;
  std::vector<keel_body_node> rows;
  std::vector<std::vector<uint32_t>> in;
  std::vector<uint32_t> results;
  uint32_t n_values = 0;
};

}  // namespace keel
