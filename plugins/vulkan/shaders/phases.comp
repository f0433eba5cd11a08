// phases.comp: the image of a convolution for product.comp: padded with zeros, and with strides s in s phases, so that the cells at
// one window cell of adjacent windows are adjacent. [channel][phase][cells], twice with COPIES 2, the second time from element 1 on:
// then a pair at any offset is aligned in one of them. A table has the offset of (channel, window cell) for each k.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 1) const uint COPIES = 1;
layout(constant_id = 2) const uint RANK = 2;
layout(constant_id = 3) const uint SMALL = 0; // as in window.glsl
NUMBERS {
  uint channels, cells, phases, inner, taps; // channels: of all images; cells: of a phase
  uint image[kRank], extent[kRank], phase[kRank], window[kRank]; // phase: their number
  int stride[kRank], dil[kRank], lo[kRank];
  uint64_t to_image, to_table;
};
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Elements { T v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Table { uint v[]; };
#if BYTES == 8
#define N uint64_t
#else
#define N uint
#endif
uint over(uint n, uint d) { return SMALL != 0 ? uint((float(n) + 0.5) / float(d)) : n / d; }

// Copies in registers: each use of p would be a load.
uint images[kRank], extents[kRank], phase[kRank], windows[kRank];
int strides[kRank], dils[kRank], los[kRank];
void read_numbers(Numbers p) {
  for (uint d = 0; d < RANK; d++) {
    images[d] = p.image[d];
    extents[d] = p.extent[d];
    phase[d] = p.phase[d];
    windows[d] = p.window[d];
    strides[d] = p.stride[d];
    dils[d] = p.dil[d];
    los[d] = p.lo[d];
  }
}

// The image cell at a cell of a phase; -1: padding.
int source(uint of_phases, uint cell) {
  int at = 0, step = 1;
  bool inside = true;
  for (int d = int(RANK) - 1; d >= 0; d--) {
    uint of_cell = over(cell, extents[d]), of_phase = of_phases / phase[d];
    int z = int(cell - of_cell * extents[d]) * strides[d] + int(of_phases - of_phase * phase[d]) - los[d];
    inside = inside && z >= 0 && z < int(images[d]);
    at += z * step;
    step *= int(images[d]);
    cell = of_cell;
    of_phases = of_phase;
  }
  return inside ? at : -1;
}
// The offset of window cell `tap` in a channel.
uint offset(uint tap, uint plane_cells) {
  uint cell = 0, of_phases = 0, cells = 1, phases = 1;
  for (int d = int(RANK) - 1; d >= 0; d--) {
    uint rest = tap / windows[d], z = (tap - rest * windows[d]) * uint(dils[d]), s = uint(strides[d]);
    cell += z / s * cells;
    of_phases += z % s * phases;
    cells *= extents[d];
    phases *= phase[d];
    tap = rest;
  }
  return of_phases * plane_cells + cell;
}

void main() {
  Numbers p = READ_NUMBERS;
  read_numbers(p);
  Elements to = Elements(SCRATCH + p.to_image), from = Elements(operand(0));
  Table table = Table(SCRATCH + p.to_table);
  uint cells = p.cells, phases = p.phases, channels = p.channels, all = channels * phases * cells, pixels = 1;
  for (uint d = 0; d < RANK; d++) pixels *= images[d];
  for (uint i = gl_GlobalInvocationID.x; i < cells; i += grid_size())
    for (uint of_phases = 0; of_phases < phases; of_phases++) {
      int at = source(of_phases, i);
      for (uint channel = gl_WorkGroupID.y; channel < channels; channel += gl_NumWorkGroups.y) {
        N x = at < 0 ? N(0) : N(from.v[channel * pixels + uint(at)]);
        uint element = (channel * phases + of_phases) * cells + i;
        to.v[element] = T(x);
        if (COPIES == 2 && element > 0) to.v[all + element - 1] = T(x);
      }
    }
  uint inner = p.inner, taps = p.taps;
  for (uint k = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 64 + gl_LocalInvocationID.x; k < inner;
       k += gl_NumWorkGroups.y * grid_size()) {
    uint channel = k / taps, at = channel * phases * cells + offset(k - channel * taps, cells);
    table.v[k] = COPIES == 2 && at % 2 == 1 ? all + at - 1 : at;
  }
}
