// scatter.comp: scatter_add and scatter_nd: y[outer, place of row r, inner] is combined with u[outer, r, inner], in the order of
// r. A thread owns one inner element of a range of places, and goes through all rows, so the order is that of the rows. An
// index out of range is a fault. A step takes `batch` rows (kMostIterations in ops/shader_op.h).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint INDEX_BYTES = 4;
layout(constant_id = 3) const uint MODE = 0;
layout(constant_id = 4) const uint FROM_X = 0; // scatter_nd: operands x, index, u; otherwise index, u
const uint kSet = 0, kAdd = 1, kMul = 2, kMax = 3, kMin = 4; // ops/scatter.cc
NUMBERS { uint outer, places, inner, rows, k, share, shares, batch, bounds[kRank], strides[kRank]; };

#ifdef HALF // sums of scatter_add stay f32 until the end
#define KEEP_WIDE (FROM_X == 0)
#else
#define KEEP_WIDE false
#endif

A combined(A old, A now) {
  switch (MODE) {
    case kAdd: return old + now;
    case kMul: return old * now;
    case kMax: return greater(old, now);
    case kMin: return lesser(old, now);
  }
  return now;
}
uint place_of(Numbers p, uint row) {
  uint place = 0;
  bool found = true;
  for (uint d = 0; d < p.k; d++) {
    int64_t index = read_index(operand(FROM_X), row * p.k + d, INDEX_BYTES);
    if (fails(index, p.bounds[d])) found = false;
    place += uint(index) * p.strides[d];
  }
  return found ? place : 0xffffffffu;
}

void scatter(Numbers p, uint outer, uint inner, uint first, uint end) {
  uint64_t u = operand(FROM_X + 1);
  uint base = outer * p.places * p.inner + inner;
  uint begin = uint(push.step) * p.batch, stop = min(begin + p.batch, p.rows);
  for (uint place = first; begin == 0 && place < end; place++) {
    uint at = base + place * p.inner;
    if (KEEP_WIDE) Wide(SCRATCH).v[at] = A(0);
    else store(RESULT, at, FROM_X != 0 ? load(operand(0), at) : A(0));
  }
  for (uint row = begin; row < stop; row++) {
    uint place = place_of(p, row);
    if (place >= first && place < end) {
      uint at = base + place * p.inner;
      A now = load(u, (outer * p.rows + row) * p.inner + inner);
      if (KEEP_WIDE) Wide(SCRATCH).v[at] += now;
      else store(RESULT, at, combined(load(RESULT, at), now));
    }
  }
  for (uint place = first; KEEP_WIDE && stop == p.rows && place < end; place++) {
    uint at = base + place * p.inner;
    store(RESULT, at, Wide(SCRATCH).v[at]);
  }
}

void main() {
  Numbers p = READ_NUMBERS;
  for (uint i = first_element(); i < p.outer * p.inner * p.shares; i += grid_size()) {
    uint inner = i % p.inner, share = i / p.inner % p.shares, first = share * p.share;
    scatter(p, i / (p.inner * p.shares), inner, first, min(first + p.share, p.places));
  }
}
