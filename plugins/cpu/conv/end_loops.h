// end_loops.h: the last steps of the plugin's own convolutions of images with channels last.
#pragma once

#include <cstdint>

namespace keel_cpu {

// y + added, bounded, for rows of channels that are `step` elements apart; `added` may be null. A NaN stays.
using EndRows = void(float* y, const float* added, int64_t step, int64_t rows, int64_t channels, float low,
                     float high);
EndRows* EndLoop();

}  // namespace keel_cpu
