// integer.h: conv_integer as this plugin serves it.
#pragma once

#include "plugins/cpu/conv/conv.h"

namespace keel_cpu {

// Zero points of a conv_integer that this plugin serves.
struct ConvZeros {
  int32_t x = 0, w = 0;
};
// False: the op's body serves the node. The weights are constant and, less their zero point, signed bytes.
bool ServesIntegers(const Node& node, ConvZeros* zeros);
// The weights less their zero point.
std::vector<int8_t> SignedWeights(const Node& node, const ConvZeros& zeros);

}  // namespace keel_cpu
