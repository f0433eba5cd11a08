// plugin.cc: the device table and the table of impls.
#include "ops/op.h"
#include "recording.h"
#include "sdk/plugin/table.h"

namespace keel_cuda {
namespace {

uint32_t Count(const keel_host* host) {
  keel::plugin::guard_host() = host;
  if (!cuda().why.empty()) host->fail(KEEL_UNAVAILABLE, cuda().why.c_str());
  return static_cast<uint32_t>(cuda().devices.size());
}

keel_rc Info(const keel_host*, uint32_t i, keel_device_info* out) {
  DescribeDevice(cuda().devices[i], out);
  out->dl_id = cuda().devices[i];
  return KEEL_OK;
}

const Impls& AllImpls() {
  static const Impls impls = [] {
    Impls all;
    for (auto family : {ElementwiseImpls(), FusedImpls(),     CopyImpls(), GatherImpls(),   NumberImpls(),
                        ReduceImpls(),      MatmulImpls(),    GemvImpls(), EpilogueImpls(), Int8Impls(),
                        BlocksImpls(),      AttentionImpls(), LineImpls(), ScatterImpls(),  PoolImpls(),
                        ConvImpls(),        SortImpls(),      NormImpls(), StorageImpls(),  SuppressImpls(),
                        TreeImpls()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  return impls;
}

const char* Lacks(uint32_t, const char* op, keel_dt dtype) {
  if (op == std::string_view("cast")) return nullptr;
  for (const keel_impl& impl : AllImpls())
    if (std::string_view(impl.op) == op && impl.match == Guarded<MatchWidths>) return LackOfWidth(dtype);
  return LackOfNumbers(dtype);
}

constexpr keel_device kDevice = {
    .struct_size = sizeof(keel_device),
    .flags = 0,
    .count = Guarded<Count>,
    .info = Guarded<Info>,
    .open = Guarded<DeviceOpen>,
    .close = Guarded<DeviceClose>,
    .segment_alloc = Guarded<SegmentAlloc>,
    .segment_free = Guarded<SegmentFree>,
    .queue_open = Guarded<QueueOpen>,
    .queue_close = Guarded<QueueClose>,
    .copy = Guarded<Copy>,
    .fill = Guarded<Fill>,
    .submit = Guarded<Submit>,
    .queue_wait = Guarded<QueueWait>,
    .host_wait = Guarded<HostWait>,
    .query = Guarded<Query>,
    .copy_from = Guarded<CopyFrom>,
    .run_lanes = nullptr,
    .cost = nullptr,
    .record_begin = Guarded<RecordBegin>,
    .record_end = Guarded<RecordEnd>,
    .replay = Guarded<Replay>,
    .recording_free = Guarded<RecordingFree>,
    .timestamp = Guarded<Timestamp>,
    .segment_wrap = Guarded<SegmentWrap>,
    .segment_unwrap = Guarded<SegmentUnwrap>,
    .lacks = Guarded<Lacks>,
};

const keel_plugin& Description() {
  static const keel_plugin plugin = keel::plugin::device_plugin(
      "cuda", "0.1.0", "NVIDIA GPUs with CUDA 13", &kDevice, AllImpls().data(), AllImpls().size());
  return plugin;
}

}  // namespace
}  // namespace keel_cuda

KEEL_PLUGIN(keel_cuda::Description())
