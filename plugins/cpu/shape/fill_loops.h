// fill_loops.h: repeats one element, as a loop.
#pragma once

#include <cstdint>
#include <cstring>

namespace keel_cpu {

// Repeats a pattern of eight bytes, copies of an element; y is aligned to the element. The last copy of the
// pattern may be cut.
using FillLoop = void (*)(uint64_t pattern, char* y, int64_t bytes);
FillLoop FindFill();

// y[i] = v for i below n.
template <class T>
void FillRow(T* y, int64_t n, T v) {
  constexpr int kEach = sizeof(uint64_t) / sizeof(T);
  T pattern[kEach];
  for (T& each : pattern) each = v;
  uint64_t bits;
  std::memcpy(&bits, pattern, sizeof bits);
  FindFill()(bits, reinterpret_cast<char*>(y), n * static_cast<int64_t>(sizeof(T)));
}

}  // namespace keel_cpu
