// queue.h: a queue is a stream; a ticket is an event in it. The stream executes in the order of encoding, so
// no launch needs a barrier.
#ifndef KEEL_PLUGINS_CUDA_QUEUE_H
#define KEEL_PLUGINS_CUDA_QUEUE_H
#include <deque>
#include <vector>

#include "device.h"
#include "kernels/args.h"

namespace keel_cuda {
struct RecordedLaunches;  // launch.h
}  // namespace keel_cuda

struct keel_queue_s {
  struct Flying {
    uint64_t ticket;
    CUevent event;
  };
  keel_dev device = nullptr;
  CUstream stream = nullptr;
  keel_cuda::RecordedLaunches* recording = nullptr;  // between record_begin and record_end

  std::mutex mutex;  // of the members below: host_wait and query run next to encoding
  std::deque<Flying> flying;
  std::vector<CUevent> spare;
  uint64_t submitted = 0, done = 0;

  // Whether the event of an entry has occurred; then it and the earlier ones move to `spare`. Requires the
  // mutex; the caller checks the result without it.
  CUresult Poll(size_t entry, bool* occurred);
};

namespace keel_cuda {

keel_rc QueueOpen(keel_dev d, uint32_t kind, keel_queue* out);
void QueueClose(keel_queue q);
keel_rc Copy(keel_queue q, const keel_segment* to, uint64_t to_offset, const keel_segment* from,
             uint64_t from_offset, uint64_t bytes);
keel_rc CopyFrom(keel_queue q, const keel_segment* to, uint64_t to_offset, keel_dev other,
                 const keel_segment* from, uint64_t from_offset, uint64_t bytes);
keel_rc Fill(keel_queue q, const keel_segment* to, uint64_t offset, uint64_t bytes, uint32_t value);
keel_rc Submit(keel_queue q, uint64_t* ticket);
keel_rc QueueWait(keel_queue q, keel_queue other, uint64_t ticket);
keel_rc HostWait(keel_queue q, uint64_t ticket, uint64_t timeout);
keel_rc Query(keel_queue q, uint64_t* done);
keel_rc Timestamp(keel_queue q, const keel_segment* to, uint64_t offset);
// Encodes a kernel; the arguments are copied.
keel_rc Launch(keel_queue q, CUfunction kernel, uint32_t blocks, const KeelArgs& args,
               uint32_t threads = kThreads);

}  // namespace keel_cuda
#endif
