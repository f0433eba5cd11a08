// depthwise.comp: a convolution in which each channel is a group: a thread computes COLUMNS adjacent results of a row of places, which
// share the image cells that they read. Images of two dims; padding adds exactly 0 even for infinite weights.
#version 460
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint COLUMNS = 8;
layout(constant_id = 3) const uint TAPS = 3; // of a row of the window
layout(constant_id = 4) const uint STRIDE = 1;
layout(constant_id = 5) const uint DIL = 1;
const uint kCells = (COLUMNS - 1) * STRIDE + (TAPS - 1) * DIL + 1;
#define SIZES uint count, channels, blocks // threads; blocks of a row of places
#define WINDOW_ID 6
#include "window.glsl"

void main() {
  Numbers p = READ_NUMBERS;
  uint count = p.count, channels = p.channels, blocks = p.blocks, window_rows = p.window[0];
  uint image_rows = p.image[0], place_rows = p.places[0], place_columns = p.places[1];
  int last = int(p.image[1]) - 1, stride = p.stride[0], dil = p.dil[0], lo_row = p.lo[0], lo_column = p.lo[1];
  uint64_t image = operand(0), weights = operand(1), result = RESULT;
  for (uint i = first_element(); i < count; i += grid_size()) {
    uint rest = i / blocks, column = (i - rest * blocks) * COLUMNS, plane = rest / place_rows, row = rest - plane * place_rows;
    uint weight = plane % channels * window_rows * TAPS;
    int left = int(column * STRIDE) - lo_column;
    A sums[COLUMNS];
    [[unroll]] for (uint j = 0; j < COLUMNS; j++) sums[j] = A(0);
    for (uint tap = 0; tap < window_rows; tap++, weight += TAPS) {
      int y = int(row) * stride + int(tap) * dil - lo_row;
      if (y < 0 || y >= int(image_rows)) continue;
      uint from = (plane * image_rows + uint(y)) * uint(last + 1);
      A cells[kCells];
      [[unroll]] for (uint j = 0; j < kCells; j++) cells[j] = load(image, from + uint(clamp(left + int(j), 0, last)));
      [[unroll]] for (uint k = 0; k < TAPS; k++) {
        A w = load(weights, weight + k);
        [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
          int x = left + int(j * STRIDE + k * DIL);
          if (x >= 0 && x <= last) sums[j] = MULTIPLY_ADD(cells[j * STRIDE + k * DIL], w, sums[j]);
        }
      }
    }
    [[unroll]] for (uint j = 0; j < COLUMNS; j++)
      if (column + j < place_columns) store(result, rest * place_columns + column + j, sums[j]);
  }
}
