// batch_norm.comp: x * k + h with k, h of the channel: x[images, channels, pixels].
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
NUMBERS { uint64_t epsilon; uint count, channels, pixels; };

void main() {
  Numbers p = READ_NUMBERS;
  for (uint i = first_element(); i < p.count; i += grid_size()) {
    uint c = i / p.pixels % p.channels;
    A k = load(operand(1), c) / sqrt(load(operand(4), c) + from_bits(p.epsilon));
    A h = load(operand(2), c) - load(operand(3), c) * k;
    store(RESULT, i, load(operand(0), i) * k + h);
  }
}
