// inject.h: makes the n-th call of a kind fail, on this thread, while armed. inject.cc interposes the calls.
#pragma once

#include <cstdint>

namespace keel::test {

enum class Kind : uint8_t {
  kNone,
  kMemory,  // malloc, calloc, realloc, aligned_alloc, posix_memalign, and thus operator new
  kFile     // open, fstat, mmap, write, fsync, rename, close and their relatives
};
enum class Mode : uint8_t { kOnce, kFromThenOn };

// The n-th call of the kind from now on fails; n from 1. `error`: the errno of a failing file operation.
void Arm(Kind kind, Mode mode, int64_t n, int error = 0);
// Disarms. True if a call was made to fail.
bool Disarm();
// While the sum of the arguments is above 0, nothing fails on this thread.
void Spare(int more);
// The name of the first failed call since Arm: "malloc", "write".
const char* FailedCall();

int64_t LiveBlocks();  // allocated and not freed, by all threads
int64_t OpenFiles();

}  // namespace keel::test
