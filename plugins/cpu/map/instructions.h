// instructions.h: the instruction of one node of a map's body: its loop, and its machine code if there is
// some.
#pragma once

#include <optional>

#include "plugins/cpu/map/map.h"

namespace keel_cpu {

struct Instruction {
  MapStep step = {};
  int64_t cost = 1;
  const JitRow* jit = nullptr;  // null: no machine code, only the loop
};

// Without operands; none if the node is not an elementwise op.
std::optional<Instruction> FindInstruction(const Node& node, const keel_body_node& n);

// Copies one slot of elements of so many bytes to another, unless they are the same memory.
MapStep CopyStep(uint16_t from, uint16_t to, uint8_t size);

}  // namespace keel_cpu
