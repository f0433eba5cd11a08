// softmax.comp: softmax, log_softmax and log_sum_exp of rows x[outer, :, inner].
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
#include "rows.glsl"
const uint kSoftmax = 0, kLogSoftmax = 1, kLogSumExp = 2; // ops/norm.cc
NUMBERS { uint rows, size, inner; };

void main() {
  Numbers p = READ_NUMBERS;
  uint64_t x = operand(0), y = RESULT;
  for (uint i = first_row(); i < p.rows; i += row_step()) {
    uint base = i / p.inner * p.size * p.inner + i % p.inner;
    A highest = uintBitsToFloat(0xff800000u), sum = A(0);
    for (uint k = first_column(); k < p.size; k += column_step()) highest = greater(load(x, base + k * p.inner), highest);
    highest = highest_of(highest);
    for (uint k = first_column(); k < p.size; k += column_step()) sum += exp(load(x, base + k * p.inner) - highest);
    sum = sum_of(sum);
    if (OP == kLogSumExp) {
      if (first_column() == 0) store(y, i, log(sum) + highest);
      continue;
    }
    A log_sum = log(sum);
    for (uint k = first_column(); k < p.size; k += column_step()) {
      A d = load(x, base + k * p.inner) - highest;
      store(y, base + k * p.inner, OP == kLogSoftmax ? d - log_sum : exp(d) / sum);
    }
  }
}
