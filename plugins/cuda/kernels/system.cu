// system.cu: kernels of queues: the clock, and numbers to memory.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"

#if defined(__CUDACC__)
DEVICE u64 nanoseconds() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
#endif

KERNEL(clock) {
  if (first_element() == 0) *operand<u64>(args, 0) = nanoseconds();
}

// Operand 0 receives the numbers from the second on; the first is how many.
KERNEL(store) {
  for (i64 i = first_element(); i < args.numbers[0]; i += grid_size()) operand<i64>(args, 0)[i] = args.numbers[1 + i];
}

// Copies numbers[0] bytes from operand 0 to operand 1; both are aligned to 16.
KERNEL(relay) {
  struct alignas(16) Words {
    u64 low, high;
  };
  const i64 bytes = args.numbers[0];
  const char* from = operand<const char>(args, 0);
  char* to = operand<char>(args, 1);
  for (i64 i = first_element(); i < bytes / 16; i += grid_size()) ((Words*)to)[i] = ((const Words*)from)[i];
  if (first_element() == 0)
    for (i64 i = bytes / 16 * 16; i < bytes; i++) to[i] = from[i];
}
