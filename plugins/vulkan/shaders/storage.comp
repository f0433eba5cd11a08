// storage.comp: cast from and to storage dtypes by the tables of sdk/plugin/storage_table.h. A thread makes a number, or a byte
// of codes.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint FROM = 8; // bits of a code of the operand; 0: numbers
layout(constant_id = 3) const uint TO = 0; // the same of the result
layout(constant_id = 4) const bool WRAPS = false; // numbers to codes: integers wrap
// table: results by code; or keys of steps, then their codes.
NUMBERS { uint64_t sign; uint elements, count, steps, unused; uint64_t table[]; };
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Codes { uint8_t v[]; };

uint64_t key(A x, uint64_t sign) {
#ifndef FLOATING
  return uint64_t(x) ^ sign;
#else
#if BYTES == 8
  uint64_t bits = packUint2x32(unpackDouble2x32(x));
#else
  uint64_t bits = floatBitsToUint(x);
#endif
  return (bits & sign) != 0 ? sign + (sign - 1) - bits : bits + sign;
#endif
}

uint in_a_byte(uint bits) { return 8 / max(bits, 1); }
uint64_t from_code(Numbers p, uint i) {
  uint bits = uint(Codes(operand(0)).v[i / in_a_byte(FROM)]) >> (i * FROM & 7u);
  return p.table[bits & (1u << FROM) - 1u];
}
uint from_number(Numbers p, uint i) {
  A x = load(operand(0), i);
  if (WRAPS) return uint(x);
  uint64_t wanted = key(x, p.sign);
  uint low = 0, high = p.steps;
  while (high - low > 1) {
    uint middle = (low + high) / 2;
    if (p.table[middle] <= wanted) low = middle;
    else high = middle;
  }
  return uint(p.table[p.steps + low]);
}
uint made_byte(Numbers p, uint i) {
  uint made = 0, first = i * in_a_byte(TO);
  for (uint at = first; at < min(first + in_a_byte(TO), p.elements); at++) {
    uint code = FROM != 0 ? uint(from_code(p, at)) : from_number(p, at);
    made |= (code & (1u << TO) - 1u) << (at - first) * TO;
  }
  return made;
}

void main() {
  Numbers p = READ_NUMBERS;
  for (uint i = first_element(); i < p.count; i += grid_size())
    if (TO == 0) store(RESULT, i, from_bits(from_code(p, i)));
    else Codes(RESULT).v[i] = uint8_t(made_byte(p, i));
}
