// recording.h: a recorded list of launches: a graph made by stream capture. Its kernels find addresses in a
// table in device memory, which a replay first writes, so the graph never changes.
#ifndef KEEL_PLUGINS_CUDA_RECORDING_H
#define KEEL_PLUGINS_CUDA_RECORDING_H
#include "queue.h"

struct keel_recording_s {
  std::vector<uint64_t> table;  // of record_begin
  CUdeviceptr memory = 0;       // the table of the replay
  CUgraphExec graph = nullptr;
  CUfunction store = nullptr;
};

namespace keel_cuda {

keel_rc RecordBegin(keel_queue q, const uint64_t* table, uint32_t n);
keel_rc RecordEnd(keel_queue q, keel_recording* out);
keel_rc Replay(keel_queue q, keel_recording recording, const uint64_t* table, uint32_t n);
void RecordingFree(keel_dev d, keel_recording recording);

}  // namespace keel_cuda
#endif
