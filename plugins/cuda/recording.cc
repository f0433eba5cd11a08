// recording.cc: see recording.h.
#include "recording.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace keel_cuda {
namespace {

keel_rc Begin(keel_queue q, keel_recording r) {
  keel_dev d = q->device;
  if (keel_rc rc = d->Kernel("system", "store", &r->store)) return rc;
  CUDA_TRY(d, cuMemAlloc, &r->memory, std::max<size_t>(1, r->table.size()) * sizeof(uint64_t));
  CUDA_TRY(d, cuStreamBeginCapture, q->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  return KEEL_OK;
}

// Ends the capture in any case: it would make later calls of this thread fail.
keel_rc End(keel_queue q, keel_recording r, bool keep) {
  keel_rc rc = q->device->Enter();
  CUgraph captured = nullptr;
  const CUresult ended = cuda().cuStreamEndCapture_(q->stream, &captured);
  if (!rc) rc = q->device->Check(ended, "cuStreamEndCapture");
  if (!rc && keep)
    rc = q->device->Check(cuda().cuGraphInstantiate_(&r->graph, captured, 0), "cuGraphInstantiate");
  if (captured) cuda().cuGraphDestroy_(captured);
  return rc;
}

}  // namespace

keel_rc RecordBegin(keel_queue q, const uint64_t* table, uint32_t n) {
  if (settings().no_recordings) return KEEL_UNIMPLEMENTED;
  if (keel_rc rc = q->device->Enter()) return rc;
  auto r = std::make_unique<keel_recording_s>();
  r->table.assign(table, table + n);
  if (keel_rc rc = Begin(q, r.get())) return RecordingFree(q->device, r.release()), rc;
  q->recording = r.release();
  return KEEL_OK;
}

keel_rc RecordEnd(keel_queue q, keel_recording* out) {
  keel_recording r = std::exchange(q->recording, nullptr);
  const keel_rc rc = End(q, r, out != nullptr);
  if (out && !rc)
    *out = r;
  else
    RecordingFree(q->device, r);
  return rc;
}

// The table travels as numbers of a kernel: the driver copies these at once, and needs no staging memory.
keel_rc Replay(keel_queue q, keel_recording r, const uint64_t* table, uint32_t n) {
  if (n != r->table.size()) return q->device->host->fail(KEEL_INVALID, "replay: the table has another size");
  if (keel_rc rc = q->device->Enter()) return rc;
  constexpr uint32_t kMost = kMostNumbers - 1;
  for (uint32_t at = 0; at < n; at += kMost) {
    KeelArgs args = {};
    args.address[0] = r->memory + at * sizeof(uint64_t);
    args.slot[0] = kNoSlot;
    args.numbers[0] = std::min(kMost, n - at);
    std::copy_n(table + at, args.numbers[0], args.numbers + 1);
    if (keel_rc rc = Launch(q, r->store, 1, args)) return rc;
  }
  CUDA_TRY(q->device, cuGraphLaunch, r->graph, q->stream);
  return KEEL_OK;
}

void RecordingFree(keel_dev d, keel_recording r) {
  if (d->EnterToDestroy()) {
    if (r->graph) cuda().cuGraphExecDestroy_(r->graph);
    if (r->memory) cuda().cuMemFree_(r->memory);
  }
  delete r;
}

}  // namespace keel_cuda
