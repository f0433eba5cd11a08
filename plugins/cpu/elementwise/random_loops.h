// random_loops.h: loops of random numbers, as a table of function pointers.
#pragma once

#include <cstdint>

namespace keel_cpu {

struct RandomLoops {
  // The four 32-bit numbers of each of n blocks, see random.cc.
  void (*philox)(uint64_t key, uint64_t first_block, int64_t n, uint32_t* words);
  // Two normal numbers from each of n pairs of 32-bit numbers.
  void (*normal)(const uint32_t* words, int64_t n, double* out);
};
const RandomLoops& Random();

}  // namespace keel_cpu
