// chain.h: products by the own loops, one after the other, each with the elementwise ops after it, as one
// launch: one or more layers of a network. The nodes alone give the same bits.
//
// Where to start: chain_read.cc finds the stages in the body of a call; chain.cc prepares and runs them.
#pragma once

#include <deque>

#include "plugins/cpu/map/map.h"

namespace keel_cpu {

// A product of the stage before it (of the first: an operand of the call) and an operand of the call, and
// elementwise ops on it and on other operands.
struct ChainStage {
  const keel_body_node* matmul = nullptr;
  keel_tensor y = {};  // its result
  // The elementwise nodes, with operands of the call, then the product, numbered from 0 on.
  std::vector<keel_body_node> nodes;
  std::deque<std::vector<uint32_t>> in;
  keel_body body = {};
  MapBody map;
};

class ChainBody {
 public:
  explicit ChainBody(const Node& call);
  ChainBody(const ChainBody&) = delete;
  ChainBody& operator=(const ChainBody&) = delete;
  // Whether the call is a chain for the own loops, and its dims are numbers.
  bool Fits() const;
  Node Product(const ChainStage& s) const { return {host_, s.matmul->node}; }
  const keel_tensor& Right(const ChainStage& s) const { return operands_[s.matmul->in[1]]; }

  std::deque<ChainStage> stages;  // none: the call is something else

 private:
  bool Read(const keel_body& body);
  bool Begin(const keel_body_node& matmul);
  bool Add(const keel_body_node& node);
  bool OwnLoopsAreFast() const;

  const keel_host* host_;
  std::vector<keel_tensor> operands_;
  uint32_t made_ = 0;  // the value that the last node of the last stage makes
};

bool IsChain(const Node& call);
keel_rc PrepareChain(const Node& call, keel_launch* launch);

}  // namespace keel_cpu
