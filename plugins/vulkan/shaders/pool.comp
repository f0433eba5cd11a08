// pool.comp: a thread for each window: its maximum, the index of that, or its mean. Without cells: the lowest value, -1, NaN.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint OP = 0;
layout(constant_id = 3) const uint OPTION = 0; // kIndex: column_major; kMean: count_pad
const uint kMax = 0, kIndex = 1, kMean = 2; // ops/pool.cc
#define SIZES uint64_t lowest; uint count, pixels, windows, taps
#define WINDOW_ID 4
#include "window.glsl"

// The offset of the maximum, the first of equals, or of the first NaN; -1: no cells.
int greatest(Numbers p, uint base, uint place) {
  int best = -1;
  A highest = A(0);
  for (uint tap = 0, taps = p.taps; tap < taps; tap++) {
    int at = image_cell(place, tap);
    if (at < 0) continue;
    A x = load(operand(0), base + uint(at));
    if (best >= 0 && (is_nan(highest) || !(is_nan(x) || highest < x))) continue;
    best = at;
    highest = x;
  }
  return best;
}
// The same cell with the first image dim varying fastest.
int column_major(Numbers p, int offset) {
  uint rest = uint(offset), index[RANK], at = 0;
  for (int d = int(RANK) - 1; d >= 0; d--) {
    index[d] = rest % images[d];
    rest /= images[d];
  }
  for (int d = int(RANK) - 1; d >= 0; d--) at = at * images[d] + index[d];
  return int(at);
}
// Whether a cell is in the image or in its padding lo and hi, not beyond.
bool padded(Numbers p, uint place, uint tap) {
  for (int d = int(RANK) - 1; d >= 0; d--) {
    int z = int(place % places[d]) * strides[d] + int(tap % cells[d]) * dils[d] - los[d];
    if (z >= int(images[d]) + p.hi[d]) return false;
    place /= places[d];
    tap /= cells[d];
  }
  return true;
}
A mean(Numbers p, uint base, uint place) {
  A sum = A(0);
  uint counted = 0;
  for (uint tap = 0, taps = p.taps; tap < taps; tap++) {
    int at = image_cell(place, tap);
    if (at >= 0) sum += load(operand(0), base + uint(at));
    if (at >= 0 || (OPTION != 0 && padded(p, place, tap))) counted++;
  }
  return sum / A(counted);
}

void main() {
  Numbers p = READ_NUMBERS;
  read_window(p);
  for (uint i = first_element(); i < p.count; i += grid_size()) {
    uint windows = p.windows, base = i / windows * p.pixels, place = i % windows;
    if (OP == kMean) {
      store(RESULT, i, mean(p, base, place));
      continue;
    }
    int best = greatest(p, base, place);
    if (OP == kMax) store(RESULT, i, best < 0 ? from_bits(p.lowest) : load(operand(0), base + uint(best)));
    else if (best < 0) Longs(RESULT).v[i] = -1;
    else Longs(RESULT).v[i] = int64_t(base) + int64_t(OPTION != 0 ? column_major(p, best) : best);
  }
}
