// simt_kernel.h: a kernel that was compiled for the processor, and what its threads read.
#pragma once
#include <cstddef>

struct SimtIndex {
  unsigned x = 0, y = 0, z = 0;
};
struct Simt {
  SimtIndex thread, block, block_size, grid_size;
  void (*meet)() = nullptr;  // __syncthreads
  // Shuffles: the value that lane `from` of the thread's warp gives, once all lanes of the mask give one.
  unsigned long long (*exchange)(unsigned mask, unsigned long long value, unsigned from) = nullptr;
  void (*complain)(const char* finding) = nullptr;
};
// What the fake driver finds by name: simt_NAME.
struct SimtKernel {
  void (*run)(const void* args);
  size_t bytes;     // of its parameter
  bool has_blocks;  // its threads meet
  unsigned most;    // threads of a block
};
