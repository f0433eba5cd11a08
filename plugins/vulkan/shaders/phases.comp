// phases.comp: the image of a convolution for product.comp: padded with zeros, and with strides s in s phases, so that the cells at
// one window cell of adjacent windows are adjacent. [channel][phase][cells], twice with COPIES 2, the second time from element 1 on:
// then a pair at any offset is aligned in one of them. A table has the offset of (channel, window cell) for each k.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 1) const uint COPIES = 1;
// channels: of all images; cells: of a phase; taps, window, dilation: of the window, with `inner` k's. The numbers of window.glsl are those
// of a window whose places are the cells of a phase, and whose cells are the phases.
#define SIZES uint channels, cells, phases, inner, taps, of_window[kRank], dilation[kRank]; uint64_t to_image, to_table
#define WINDOW_ID 2
#include "window.glsl"
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Elements { T v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Table { uint v[]; };
#if BYTES == 8
#define N uint64_t
#else
#define N uint
#endif
// The offset of window cell `tap` in a channel.
uint offset(Numbers p, uint tap) {
  uint cell = 0, phase = 0, plane = 1, phases = 1;
  for (int d = int(RANK) - 1; d >= 0; d--) {
    uint rest = tap / p.of_window[d], z = (tap - rest * p.of_window[d]) * p.dilation[d], stride = uint(strides[d]);
    cell += z / stride * plane;
    phase += z % stride * phases;
    plane *= places[d];
    phases *= cells[d];
    tap = rest;
  }
  return phase * plane + cell;
}

void main() {
  Numbers p = READ_NUMBERS;
  read_window(p);
  Elements to = Elements(SCRATCH + p.to_image), from = Elements(operand(0));
  Table table = Table(SCRATCH + p.to_table);
  uint plane = p.cells, phases = p.phases, channels = p.channels, all = channels * phases * plane, pixels = 1;
  for (uint d = 0; d < RANK; d++) pixels *= images[d];
  for (uint i = gl_GlobalInvocationID.x; i < plane; i += grid_size())
    for (uint phase = 0; phase < phases; phase++) {
      int at = image_cell(i, phase);
      for (uint channel = gl_WorkGroupID.y; channel < channels; channel += gl_NumWorkGroups.y) {
        N x = at < 0 ? N(0) : N(from.v[channel * pixels + uint(at)]);
        uint element = (channel * phases + phase) * plane + i;
        to.v[element] = T(x);
        if (COPIES == 2 && element > 0) to.v[all + element - 1] = T(x);
      }
    }
  uint inner = p.inner, taps = p.taps;
  for (uint k = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 64 + gl_LocalInvocationID.x; k < inner;
       k += gl_NumWorkGroups.y * grid_size()) {
    uint channel = k / taps, at = channel * phases * plane + offset(p, k - channel * taps);
    table.v[k] = COPIES == 2 && at % 2 == 1 ? all + at - 1 : at;
  }
}
