// select_loops.h: the loops of select and clamp, as tables of function pointers.
#pragma once

#include <cstdint>

#include "abi/keel_plugin.h"

namespace keel_cpu {

// c[i] = p[i * sp] ? a[i * sa] : b[i * sb]; steps are 0 (one element) or 1.
using SelectLoop = void (*)(const void* p, int64_t sp, const void* a, int64_t sa, const void* b, int64_t sb,
                            void* c, int64_t n);
// y[i] = min(max(x[i], *lo), *hi)
using ClampLoop = void (*)(const void* x, const void* lo, const void* hi, void* y, int64_t n);

struct SelectTable {
  SelectLoop (*select)(int64_t bytes);  // by element size
  ClampLoop (*clamp)(keel_dt);
};
const SelectTable& Selects();

}  // namespace keel_cpu
