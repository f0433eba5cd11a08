// plugin.cc: the device table and the table of impls.
#include "guard.h"
#include "ops/ops.h"
#include "recording.h"

namespace vulkan {
namespace {

uint32_t Count(const keel_host* host) {
  SetHost(host);
  if (!vk().why.empty()) host->fail(KEEL_UNAVAILABLE, vk().why.c_str());
  return static_cast<uint32_t>(vk().devices.size());
}

keel_rc Info(const keel_host*, uint32_t i, keel_device_info* out) {
  Describe(vk().devices[i], out);
  out->dl_id = static_cast<int32_t>(i);
  return KEEL_OK;
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
    .copy_from = nullptr,
    .run_lanes = nullptr,
    .cost = nullptr,
    .record_begin = Guarded<RecordBegin>,
    .record_end = Guarded<RecordEnd>,
    .replay = Guarded<Replay>,
    .recording_free = Guarded<RecordingFree>,
    .timestamp = Guarded<Timestamp>,
    .segment_wrap = nullptr,
    .segment_unwrap = nullptr,
};

const keel_plugin& Description() {
  static const std::vector<keel_impl> impls = [] {
    std::vector<keel_impl> all;
    for (auto family :
         {ElementwiseImpls(), MatmulImpls(), ReduceImpls(), LineImpls(), GatherImpls(), ScatterImpls(),
          NormImpls(), CopyImpls(), NumberImpls(), PoolImpls(), ConvImpls(), AttentionImpls()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  static const keel_plugin plugin = {KEEL_PLUGIN_HEADER,
                                     "vulkan",
                                     "0.1.0",
                                     "devices with Vulkan 1.3: GPUs, and processors by lavapipe",
                                     &kDevice,
                                     impls.data(),
                                     static_cast<uint32_t>(impls.size()),
                                     sizeof(keel_impl),
                                     nullptr,
                                     nullptr,
                                     0,
                                     0,
                                     nullptr,
                                     0,
                                     0};
  return plugin;
}

}  // namespace
}  // namespace vulkan

KEEL_PLUGIN(vulkan::Description())
