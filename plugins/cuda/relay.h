// relay.h: operands of products whose addresses change all the time. A graph that keeps an address of its own
// for such an operand, and copies to or from the address of the run, serves all runs.
#ifndef KEEL_PLUGINS_CUDA_RELAY_H
#define KEEL_PLUGINS_CUDA_RELAY_H
#include "launch.h"

namespace keel_cuda {

// Allocates memory for all operands of products that are relative to entry `slot` of the table, and has the
// launches use it. *bytes: its size; 0, and nothing is done, if they have more than `most`.
keel_rc AddRelays(keel_dev d, std::vector<RecordedLaunch>& launches, uint16_t slot, uint64_t most,
                  CUdeviceptr* memory, uint64_t* bytes);

}  // namespace keel_cuda
#endif
