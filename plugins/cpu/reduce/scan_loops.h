// scan_loops.h: running sums of f32, four lines at a time: a line alone waits for each addition.
#pragma once

#include <cstdint>

namespace keel_cpu {

// Continues the running sums of four lines by n elements. x and y are the next element of the first line;
// the lines are `apart` elements apart. sums: those of the lines before and after. The same bits as line by
// line.
using ScanLoop = void (*)(const float* x, float* y, int64_t n, int64_t apart, double* sums);
ScanLoop FindScan(bool reverse, bool exclusive);  // null: this machine has none

}  // namespace keel_cpu
