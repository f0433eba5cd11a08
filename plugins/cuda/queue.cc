// queue.cc: see queue.h.
#include "queue.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

namespace keel_cuda {

keel_rc QueueOpen(keel_dev d, uint32_t kind, keel_queue* out) {
  if (kind > KEEL_QUEUE_DOWNLOAD) return KEEL_UNIMPLEMENTED;
  if (keel_rc rc = d->Enter()) return rc;
  auto q = std::make_unique<keel_queue_s>();
  q->device = d;
  CUDA_TRY(d, cuStreamCreate, &q->stream, CU_STREAM_NON_BLOCKING);
  *out = q.release();
  return KEEL_OK;
}

void QueueClose(keel_queue q) {
  if (q->device->EnterToDestroy()) {
    cuda().cuStreamSynchronize_(q->stream);
    for (const keel_queue_s::Flying& each : q->flying) cuda().cuEventDestroy_(each.event);
    for (CUevent event : q->spare) cuda().cuEventDestroy_(event);
    cuda().cuStreamDestroy_(q->stream);
  }
  delete q;
}

keel_rc Copy(keel_queue q, const keel_segment* to, uint64_t to_offset, const keel_segment* from,
             uint64_t from_offset, uint64_t bytes) {
  if (!bytes) return KEEL_OK;
  if (keel_rc rc = q->device->Enter()) return rc;
  CUDA_TRY(q->device, cuMemcpyAsync, to->address + to_offset, from->address + from_offset, bytes, q->stream);
  return KEEL_OK;
}

namespace {

// So that copies from the other device need no host memory; without it the driver copies through host memory.
keel_rc EnablePeer(keel_dev d, keel_dev other) {
  std::lock_guard lock(d->loading);
  if (!d->peers.insert(other->device).second) return KEEL_OK;
  int can = 0;
  CUDA_TRY(d, cuDeviceCanAccessPeer, &can, d->device, other->device);
  const CUresult result = can ? cuda().cuCtxEnablePeerAccess_(other->context, 0) : CUDA_SUCCESS;
  return d->Check(result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? CUDA_SUCCESS : result,
                  "cuCtxEnablePeerAccess");
}

}  // namespace

keel_rc CopyFrom(keel_queue q, const keel_segment* to, uint64_t to_offset, keel_dev other,
                 const keel_segment* from, uint64_t from_offset, uint64_t bytes) {
  if (!bytes) return KEEL_OK;
  keel_dev d = q->device;
  if (keel_rc rc = d->Enter()) return rc;
  if (keel_rc rc = EnablePeer(d, other)) return rc;
  CUDA_TRY(d, cuMemcpyPeerAsync, to->address + to_offset, d->context, from->address + from_offset,
           other->context, bytes, q->stream);
  return KEEL_OK;
}

keel_rc Fill(keel_queue q, const keel_segment* to, uint64_t offset, uint64_t bytes, uint32_t value) {
  if (!bytes) return KEEL_OK;
  if (keel_rc rc = q->device->Enter()) return rc;
  CUDA_TRY(q->device, cuMemsetD32Async, to->address + offset, value, bytes / 4, q->stream);
  return KEEL_OK;
}

namespace {

keel_rc NewEvent(keel_queue q, CUevent* out) {
  {
    std::lock_guard lock(q->mutex);
    if (!q->spare.empty()) {
      *out = q->spare.back();
      q->spare.pop_back();
      return KEEL_OK;
    }
  }
  CUDA_TRY(q->device, cuEventCreate, out, CU_EVENT_DISABLE_TIMING);
  return KEEL_OK;
}

}  // namespace

keel_rc Submit(keel_queue q, uint64_t* ticket) {
  if (keel_rc rc = q->device->Enter()) return rc;
  CUevent event = nullptr;
  if (keel_rc rc = NewEvent(q, &event)) return rc;
  const CUresult recorded = cuda().cuEventRecord_(event, q->stream);
  {
    std::lock_guard lock(q->mutex);
    if (recorded)
      q->spare.push_back(event);
    else
      q->flying.push_back({* ticket = ++q->submitted, event});
  }
  return q->device->Check(recorded, "cuEventRecord");
}

// The other queue keeps the event until cuStreamWaitEvent has read its state, for another thread may recycle
// it.
keel_rc QueueWait(keel_queue q, keel_queue other, uint64_t ticket) {
  if (keel_rc rc = q->device->Enter()) return rc;
  CUresult result = CUDA_SUCCESS;
  {
    std::lock_guard lock(other->mutex);
    if (ticket <= other->done) return KEEL_OK;
    const auto at =
        std::ranges::find_if(other->flying, [&](const auto& each) { return each.ticket >= ticket; });
    if (at != other->flying.end()) result = cuda().cuStreamWaitEvent_(q->stream, at->event, 0);
  }
  return q->device->Check(result, "cuStreamWaitEvent");
}

namespace {

// One look at the event of a ticket.
keel_rc Look(keel_queue q, uint64_t ticket, bool* done) {
  CUresult result = CUDA_SUCCESS;
  {
    std::lock_guard lock(q->mutex);
    *done = q->done >= ticket;
    const auto at = std::ranges::lower_bound(q->flying, ticket, {}, &keel_queue_s::Flying::ticket);
    if (!*done && at != q->flying.end()) result = q->Poll(static_cast<size_t>(at - q->flying.begin()), done);
  }
  return q->device->Check(result, "cuEventQuery");
}

// Between two looks. A sleep ends about 50 us late, so short waits do without.
void Pause(std::chrono::nanoseconds waited) {
  using namespace std::chrono_literals;
  if (waited < 50us) return;
  if (waited < 1ms) return std::this_thread::yield();
  std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(waited / 16, 1ms));
}

}  // namespace

// Polls: an event cannot be waited for with a time limit, and another thread may recycle it meanwhile.
keel_rc HostWait(keel_queue q, uint64_t ticket, uint64_t timeout) {
  using std::chrono::steady_clock;
  if (keel_rc rc = q->device->Enter()) return rc;
  const auto begin = steady_clock::now();
  for (;;) {
    bool done = false;
    if (keel_rc rc = Look(q, ticket, &done); rc || done) return rc;
    const std::chrono::nanoseconds waited = steady_clock::now() - begin;
    if (static_cast<uint64_t>(waited.count()) >= timeout) return KEEL_CANCELLED;
    Pause(waited);
  }
}

// The last event first: if it has occurred, one call is enough.
keel_rc Query(keel_queue q, uint64_t* done) {
  if (keel_rc rc = q->device->Enter()) return rc;
  CUresult result = CUDA_SUCCESS;
  {
    std::lock_guard lock(q->mutex);
    bool occurred = false;
    if (q->flying.size() > 1) result = q->Poll(q->flying.size() - 1, &occurred);
    for (occurred = true; !result && occurred && !q->flying.empty();) result = q->Poll(0, &occurred);
    *done = q->done;
  }
  return q->device->Check(result, "cuEventQuery");
}

keel_rc Launch(keel_queue q, CUfunction kernel, uint32_t blocks, const KeelArgs& args, uint32_t threads) {
  void* parameters[] = {const_cast<KeelArgs*>(&args)};
  CUDA_TRY(q->device, cuLaunchKernel, kernel, blocks, 1, 1, threads, 1, 1, 0, q->stream, parameters, nullptr);
  return KEEL_OK;
}

keel_rc Timestamp(keel_queue q, const keel_segment* to, uint64_t offset) {
  CUfunction clock;
  if (keel_rc rc = q->device->Kernel("system", "clock", &clock)) return rc;
  KeelArgs args = {};
  args.address[0] = to->address + offset;
  return Launch(q, clock, 1, args);
}

}  // namespace keel_cuda

CUresult keel_queue_s::Poll(size_t entry, bool* occurred) {
  const CUresult result = keel_cuda::cuda().cuEventQuery_(flying[entry].event);
  *occurred = !result;
  if (result) return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
  done = flying[entry].ticket;
  for (size_t n = entry + 1; n > 0; n--) {
    spare.push_back(flying.front().event);
    flying.pop_front();
  }
  return CUDA_SUCCESS;
}
