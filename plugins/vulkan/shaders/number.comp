// number.comp: iota, a number (dim), and one_hot.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint OP = 0;
layout(constant_id = 3) const uint INDEX_BYTES = 8;
const uint kIota = 0, kNumber = 1, kOneHot = 2; // ops/number.cc
NUMBERS { uint64_t value; uint count, size, inner; };

A number(uint i) {
#ifdef HALF // more than 24 bits: rounded to odd, so that bf16 rounds once
  if (i >= 1u << 24) return float(i >> 8 | uint((i & 255u) != 0u)) * 256;
#endif
  return A(i);
}

void main() {
  Numbers p = READ_NUMBERS;
  for (uint i = first_element(); i < p.count; i += grid_size()) {
    uint at = i / p.inner % p.size;
    A y = OP == kNumber ? from_bits(p.value) : number(at);
    if (OP == kOneHot) y = A(read_index(operand(0), i / (p.inner * p.size) * p.inner + i % p.inner, INDEX_BYTES) == int64_t(at));
    store(RESULT, i, y);
  }
}
