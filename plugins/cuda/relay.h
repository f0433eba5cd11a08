// relay.h: operands of products whose addresses change all the time. A graph that keeps an address of its own
// for such an operand, and copies to or from the address of the run, serves all runs.
#ifndef KEEL_PLUGINS_CUDA_RELAY_H
#define KEEL_PLUGINS_CUDA_RELAY_H
#include "launch.h"

namespace keel_cuda {

struct Relays {
  CUdeviceptr memory = 0;  // of all operands; 0: there are none
  uint64_t bytes = 0;
};
// For all operands of products that are relative to entry `slot` of the table. KEEL_OOM, and the launches are
// as before, if they have more than `most` bytes.
keel_rc AddRelays(keel_queue q, std::vector<RecordedLaunch>& launches, uint16_t slot, uint64_t most,
                  Relays* out);

}  // namespace keel_cuda
#endif
