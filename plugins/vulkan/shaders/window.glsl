// window.glsl: window cells and image cells, as in plugins/reference/window.h. SIZES: numbers of the shader besides those of
// the window, which ops/window.h writes; WINDOW_ID: its first constant. A cell is an offset in an image of any rank.
layout(constant_id = WINDOW_ID) const uint RANK = 2;
layout(constant_id = WINDOW_ID + 1) const uint SMALL = 0; // numbers below 2^20, which over() divides in f32
NUMBERS { SIZES; uint rank, image[kRank], window[kRank], places[kRank]; int stride[kRank], dil[kRank], lo[kRank], hi[kRank]; };
// Copies in registers: each use of p would be a load. Of RANK, not kRank: glslang gives arrays of one type and size one type,
// with the stride of the block's, which variables must not have.
uint images[RANK], cells[RANK], places[RANK];
int strides[RANK], dils[RANK], los[RANK];
void read_window(Numbers p) {
  for (uint d = 0; d < RANK; d++) {
    images[d] = p.image[d];
    cells[d] = p.window[d];
    places[d] = p.places[d];
    strides[d] = p.stride[d];
    dils[d] = p.dil[d];
    los[d] = p.lo[d];
  }
}
// n / d. With 0.5 more, a quotient is farther from an integer than the error of a division in f32.
uint over(uint n, uint d) { return SMALL != 0 ? uint((float(n) + 0.5) / float(d)) : n / d; }

// The image cell that is cell `tap` of the window at `place`; -1: outside.
int image_cell(uint place, uint tap) {
  int at = 0, step = 1;
  bool inside = true;
  for (int d = int(RANK) - 1; d >= 0; d--) {
    uint of_place = over(place, places[d]), of_tap = over(tap, cells[d]);
    int z = int(place - of_place * places[d]) * strides[d] + int(tap - of_tap * cells[d]) * dils[d] - los[d];
    inside = inside && z >= 0 && z < int(images[d]);
    at += z * step;
    step *= int(images[d]);
    place = of_place;
    tap = of_tap;
  }
  return inside ? at : -1;
}
// The inverse: the place whose window cell `tap` is the image cell; -1: none.
int place_of(uint cell, uint tap) {
  int at = 0, step = 1;
  bool found = true;
  for (int d = int(RANK) - 1; d >= 0; d--) {
    uint of_cell = over(cell, images[d]), of_tap = over(tap, cells[d]);
    int t = int(cell - of_cell * images[d]) + los[d] - int(tap - of_tap * cells[d]) * dils[d];
    int place = int(over(uint(max(t, 0)), uint(strides[d])));
    found = found && t >= 0 && place * strides[d] == t && place < int(places[d]);
    at += place * step;
    step *= int(places[d]);
    cell = of_cell;
    tap = of_tap;
  }
  return found ? at : -1;
}
