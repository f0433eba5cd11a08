// effects.h: side effects of nodes and graphs. Effects take place in the order of the nodes; plans preserve
// it. The order is not stored. node_effects.h has the effects of nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/language/opset/opset.h"

namespace keel {

struct Effects {
  std::vector<uint32_t> reads, writes;  // indices of the module's variables, ascending
  bool err = false, out = false;        // prints to stderr, stdout
  bool guard = false, rng = false, host = false;
  bool fails = false;  // may fail on its data: not an effect, but effects before it must have taken place

  bool MustRun() const { return !writes.empty() || err || out || guard || host; }
  bool Any() const { return MustRun() || !reads.empty() || rng; }
  void Add(const Effects& other);
};
// The effects of an op itself, without the graphs that it calls. Does not set `fails`.
Effects OwnEffects(const OpDef& op, const Attrs& attrs);

}  // namespace keel
