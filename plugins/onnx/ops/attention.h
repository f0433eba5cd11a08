// attention.h: parts of attention that ai.onnx and com.microsoft share.
#pragma once
#include "plugins/onnx/import/call.h"

namespace onnx_import {

// [b, h, s, d] with each key head repeated, as it serves several of the `heads` query heads.
keel_value repeat_heads(Edit& e, keel_value x, keel_dim heads);

struct Angle {
  keel_value cos, sin;  // broadcast over x, with rotated / 2 entries in the last dim
};
// x of 4 dims with pairs of its first `rotated` entries of the last dim turned. A pair is an entry and the
// one half of `rotated` behind it; interleaved: an entry and the next.
keel_value rotate_pairs(Edit& e, keel_value x, const Angle& angle, keel_dim rotated, bool interleaved);

}  // namespace onnx_import
