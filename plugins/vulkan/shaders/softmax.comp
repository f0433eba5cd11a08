// softmax.comp: a work group for each row x[outer, :, inner]; LOG: log_softmax.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint LOG = 0;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Elements { float v[]; };
PARAMS { uint64_t x, y, scratch, fault, code; uint outer, axis, inner; };
shared float partial[64];

float larger(float a, float b) { return isnan(a) || a > b ? a : b; }

float highest_of(float mine) {
  uint thread = gl_LocalInvocationID.x;
  barrier();
  partial[thread] = mine;
  for (uint half_size = 32; half_size > 0; half_size /= 2) {
    barrier();
    if (thread < half_size) partial[thread] = larger(partial[thread + half_size], partial[thread]);
  }
  barrier();
  return partial[0];
}
float sum_of(float mine) {
  uint thread = gl_LocalInvocationID.x;
  barrier();
  partial[thread] = mine;
  for (uint half_size = 32; half_size > 0; half_size /= 2) {
    barrier();
    if (thread < half_size) partial[thread] += partial[thread + half_size];
  }
  barrier();
  return partial[0];
}

void main() {
  Params p = Params(push.params);
  Elements x = Elements(p.x), y = Elements(p.y);
  for (uint i = gl_WorkGroupID.x; i < p.outer * p.inner; i += gl_NumWorkGroups.x) {
    uint base = i / p.inner * p.axis * p.inner + i % p.inner, first = gl_LocalInvocationID.x;
    float highest = uintBitsToFloat(0xff800000u), sum = 0;
    for (uint k = first; k < p.axis; k += 64) highest = larger(x.v[base + k * p.inner], highest);
    highest = highest_of(highest);
    for (uint k = first; k < p.axis; k += 64) sum += exp(x.v[base + k * p.inner] - highest);
    sum = sum_of(sum);
    float log_sum = log(sum);
    for (uint k = first; k < p.axis; k += 64) {
      float d = x.v[base + k * p.inner] - highest;
      y.v[base + k * p.inner] = LOG != 0 ? d - log_sum : exp(d) / sum;
    }
  }
}
