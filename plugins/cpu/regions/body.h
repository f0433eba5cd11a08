// body.h: the body of a `call` as this plugin represents it: values with their uses and constants, and nodes
// for which impls of the plugin can be prepared.
#pragma once

#include <deque>
#include <map>

#include "plugins/cpu/common.h"

namespace keel_cpu {

inline constexpr uint32_t kNone = KEEL_NO_VALUE;

struct BodyValue {
  Dims dims;
  keel_dt dtype = 0;
  const void* data = nullptr;   // of a constant, else null
  uint32_t producer = kNone;    // the producing node; kNone: an operand of the call
  uint32_t result = kNone;      // index among the call's results
  std::vector<uint32_t> users;  // consuming nodes, one entry per use
  int64_t Count() const { return Product(dims.data(), static_cast<int64_t>(dims.size())); }
};

struct Body;
// The keel_node that impls of this plugin see for a node of a body. It exposes the data of constants, which
// in the body are only operands of the call, and keeps attributes, since programs for other numbers of
// threads are built after Keel's node is gone.
struct InnerNode {
  Body* body;
  uint32_t number;
  const keel_node* node;  // Keel's
};

struct BodyNode {
  std::string op, name;
  Node node;  // uses the body's own host table
  std::vector<uint32_t> in, out;
  struct SavedAttr {
    keel_attr attr;
    std::string bytes;  // the data it points to
  };
  std::map<std::string, SavedAttr, std::less<>> attrs;
};

struct Body {
  keel_host host;  // Keel's, with node accessors replaced
  const keel_host* outer = nullptr;
  uint32_t n_in = 0;
  std::vector<BodyValue> values;
  std::vector<BodyNode> nodes;
  std::vector<uint32_t> results;
  std::deque<InnerNode> inner;
  bool open = true;                // Keel's nodes may still be read
  bool single = false;             // the only node is the launch's own
  bool exact_convolution = false;  // the session's option

  Body() = default;
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
};

// During match dims may be -1. False: the node has no body.
bool ReadBody(const Node& call, Body* body);

// Makes a body of this single node.
void BodyOf(const Node& node, Body* body);
bool IsInner(const Node& node);  // whether the node is one of a body
// Prepares one node as a region (region.cc), split into parts so that a run can be cancelled between them.
keel_rc PrepareSingleOp(const Node& node, keel_launch* launch);

// For people: how the launch computes, and why so. The text lives as long as the launch's state.
inline void Explain(keel_launch* launch, const char* way) {
  if (launch->struct_size >= KEEL_END(keel_launch, steps)) launch->steps = way;
}

// This plugin's impl of a body node that oneDNN does not serve, or null.
const keel_impl* FindImpl(const BodyNode& node);

}  // namespace keel_cpu
