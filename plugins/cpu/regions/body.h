// body.h: the body of a `call` as this plugin works with it: values with their uses and constants, and
// nodes that our own impls can be prepared for.
#pragma once

#include <deque>
#include <map>

#include "plugins/cpu/common.h"

namespace keel_cpu {

inline constexpr uint32_t kNone = KEEL_NO_VALUE;

struct BodyValue {
  Dims dims;
  keel_dt dtype = 0;
  const void* data = nullptr;   // where it is a constant
  uint32_t producer = kNone;    // node; none: an operand of the call
  uint32_t result = kNone;      // number among the call's results
  std::vector<uint32_t> users;  // nodes, one entry for each use
  int64_t Count() const { return Product(dims.data(), static_cast<int64_t>(dims.size())); }
};

struct Body;
// What stands for a node towards an impl of ours. It shows the data of constants, which in the body are
// only operands of the call, and remembers attributes: programs for other numbers of threads are made
// when Keel's node is gone.
struct InnerNode {
  Body* body;
  uint32_t number;
  const keel_node* node;  // Keel's
};

struct BodyNode {
  std::string op, name;
  Node node;  // through the body's own host table
  std::vector<uint32_t> in, out;
  struct Known {
    keel_attr attr;
    std::string bytes;  // what it points to
  };
  std::map<std::string, Known, std::less<>> attrs;
};

struct Body {
  keel_host host;  // Keel's, but for reading nodes
  const keel_host* outer = nullptr;
  uint32_t n_in = 0;
  std::vector<BodyValue> values;
  std::vector<BodyNode> nodes;
  std::vector<uint32_t> results;
  std::deque<InnerNode> inner;
  bool open = true;                // Keel's nodes may be asked
  bool exact_convolution = false;  // the session's option

  Body() = default;
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
};

// In match dims may be -1. False: the node has no body.
bool ReadBody(const Node& call, Body* body);

// A body of this one node.
void BodyOf(const Node& node, Body* body);
bool IsInner(const Node& node);  // of a body
// One node as a region (region.cc): in parts, between which a run can be stopped.
keel_rc PrepareAlone(const Node& node, keel_launch* launch);

// The impl of this plugin for a node of a body that oneDNN does not serve, or null.
const keel_impl* FindImpl(const BodyNode& node);

}  // namespace keel_cpu
