// sample.h: values of an image at computed places.
#pragma once
#include "plugins/onnx/ops/term.h"

namespace onnx_import {

// Along one image dim: the cells that a place reads and their weights, all with the same dims.
struct Tap {
  Term index;   // i64, within the image
  Term weight;  // float; 0 outside the image
};
using Taps = std::vector<Tap>;

// The two cells around each place, weighted by their distance; a cell outside the image weighs 0.
Taps linear_taps(const Term& place, keel_dim size);

// image: [b, cells, c], the image dims `size` flattened; taps: per image dim, with dims [b, n].
// Returns [b, n, c]: the sum over all combinations of taps.
Term sampled(const Term& image, const std::vector<Taps>& taps, const Dims& size);

// [n, c, image ...] as [n, cells, c].
Term channels_last(const Term& x);

}  // namespace onnx_import
