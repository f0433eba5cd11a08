// fold.h: shared by the files of folding: index mapping of broadcasts, and the tables of moves and of floats.
#pragma once
#include "plugins/onnx/import/call.h"

namespace onnx_import {

constexpr int64_t kMostFolded = 256;  // longer results become data

// False if the shapes do not match or the result has more than kMostFolded elements.
bool broadcast_shape(const Ints& a, const Ints& b, Ints* out);
// For each element of an array of shape `to`: the index of its source in an array of shape `from`.
std::vector<size_t> broadcast_sources(const Ints& from, const Ints& to);

struct Mover {
  Text op;
  bool (*fold)(Call&);
};
std::span<const Mover> movers();
std::span<const Mover> number_folds();  // of floats; tried after those of sizes

}  // namespace onnx_import
