// fold.h: what the two files of folding share: places of broadcast elements, and the movers' table.
#pragma once
#include "plugins/onnx/import/call.h"

namespace onnx_import {

constexpr int64_t kMostFolded = 256;  // longer results become data

// False where the shapes do not match or the result has more than kMostFolded elements.
bool broadcast_shape(const Ints& a, const Ints& b, Ints* out);
// For each element of an array of shape `to`: where in the array of shape `from` it comes from.
std::vector<size_t> broadcast_places(const Ints& from, const Ints& to);

struct Mover {
  Text op;
  bool (*fold)(Call&);
};
std::span<const Mover> movers();

}  // namespace onnx_import
