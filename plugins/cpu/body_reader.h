// body_reader.h: the traversal of a graph's nodes in order, the bodies of calls included, for launches that
// compute a whole graph: a recurrent net (recurrent/form.h), a loop over scalars (jit/jit.h).
#pragma once

#include <optional>

#include "plugins/cpu/common.h"

namespace keel_cpu {

// A derived class stores values and ops, and numbers its values. Calls and identities are resolved here, so
// it receives other nodes only, each with one result. A declined constant or node declines the graph.
class BodyReader {
 protected:
  using Number = std::optional<uint32_t>;  // none: declined
  using Numbers = std::vector<uint32_t>;

  explicit BodyReader(const keel_host* host) : host_(host) {}
  BodyReader(const BodyReader&) = default;
  ~BodyReader() = default;

  static std::optional<keel_body> BodyOfCall(const Node& node);  // none: not a call
  static std::optional<keel_body> GraphOf(const Node& node, uint32_t i);
  // The numbers of the graph's results, from its operands' numbers.
  std::optional<Numbers> ReadNodes(const keel_body& graph, Numbers operands);

 private:
  virtual Number AddConstant(const keel_tensor& t) = 0;
  // `node`: n.node; `in`: the numbers of its operands. No operand is omitted.
  virtual Number AddOp(const Node& node, const keel_body_node& n, const Numbers& in) = 0;

  bool ReadNode(const keel_body_node& n);
  bool ReadCall(const Node& call, const keel_body_node& n, Numbers in);
  Number NumberOf(const Node& node, const keel_body_node& n, uint32_t k);  // of operand k

  const keel_host* host_;
  Numbers numbers_;  // by value of the graph being read; KEEL_NO_VALUE: not read yet
};

}  // namespace keel_cpu
