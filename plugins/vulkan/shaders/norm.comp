// norm.comp: layer_norm and rms_norm along the last dim.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
#include "rows.glsl"
const uint kLayer = 0, kRms = 1; // ops/norm.cc
NUMBERS { uint64_t epsilon; uint rows, size; };

void main() {
  Numbers p = READ_NUMBERS;
  uint64_t x = operand(0), y = RESULT;
  for (uint i = first_row(); i < p.rows; i += row_step()) {
    uint base = i * p.size;
    A mean = A(0), squares = A(0);
    if (OP == kLayer) {
      for (uint k = first_column(); k < p.size; k += column_step()) mean += load(x, base + k);
      mean = sum_of(mean) / A(p.size);
    }
    for (uint k = first_column(); k < p.size; k += column_step()) {
      A d = load(x, base + k) - mean;
      squares += d * d;
    }
    A scale = A(1) / sqrt(sum_of(squares) / A(p.size) + from_bits(p.epsilon));
    for (uint k = first_column(); k < p.size; k += column_step()) {
      A z = (load(x, base + k) - mean) * scale * load(operand(1), k);
      store(y, base + k, OP == kLayer ? z + load(operand(2), k) : z);
    }
  }
}
