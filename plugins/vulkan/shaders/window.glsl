// window.glsl: window cells and image cells, as in plugins/reference/window.h. SIZES: numbers of the shader besides those of
// the window, which ops/window.h writes. A cell is an offset in an image of any rank.
NUMBERS { SIZES; uint rank, image[kRank], window[kRank], places[kRank]; int stride[kRank], dil[kRank], lo[kRank], hi[kRank]; };

// The image cell that is cell `tap` of the window at `place`; -1: outside.
int image_cell(Numbers p, uint place, uint tap) {
  int at = 0, step = 1;
  for (int d = int(p.rank) - 1; d >= 0; d--) {
    int z = int(place % p.places[d]) * p.stride[d] + int(tap % p.window[d]) * p.dil[d] - p.lo[d];
    if (z < 0 || z >= int(p.image[d])) return -1;
    at += z * step;
    step *= int(p.image[d]);
    place /= p.places[d];
    tap /= p.window[d];
  }
  return at;
}
// The inverse: the place whose window cell `tap` is the image cell; -1: none.
int place_of(Numbers p, uint cell, uint tap) {
  int at = 0, step = 1;
  for (int d = int(p.rank) - 1; d >= 0; d--) {
    int t = int(cell % p.image[d]) + p.lo[d] - int(tap % p.window[d]) * p.dil[d];
    if (t < 0 || t % p.stride[d] != 0 || t / p.stride[d] >= int(p.places[d])) return -1;
    at += t / p.stride[d] * step;
    step *= int(p.places[d]);
    cell /= p.image[d];
    tap /= p.window[d];
  }
  return at;
}
