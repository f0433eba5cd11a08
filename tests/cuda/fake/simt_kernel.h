// simt_kernel.h: a kernel that was compiled for the processor, and what its threads read.
#pragma once
#include <cstddef>

struct SimtIndex {
  unsigned x = 0, y = 0, z = 0;
};
struct Simt {
  SimtIndex thread, block, block_size, grid_size;
  void (*meet)() = nullptr;  // __syncthreads
  void (*complain)(const char* text) = nullptr;
};
// What the fake driver finds by name: simt_NAME.
struct SimtKernel {
  void (*run)(const void* args);
  size_t bytes;     // of its parameter
  bool has_blocks;  // its threads meet
};
