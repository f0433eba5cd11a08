// plugin.cc: the device table and the table of impls.
#include "ops/shader_op.h"
#include "recording.h"
#include "sdk/plugin/guard.h"
#include "sdk/plugin/table.h"

namespace vulkan {
namespace {

using keel::plugin::Guarded;

uint32_t Count(const keel_host* host) {
  keel::plugin::guard_host() = host;
  if (!vk().why.empty()) host->fail(KEEL_UNAVAILABLE, vk().why.c_str());
  return static_cast<uint32_t>(vk().devices.size());
}

keel_rc Info(const keel_host*, uint32_t i, keel_device_info* out) {
  Describe(vk().devices[i], out);
  out->dl_id = static_cast<int32_t>(i);
  return KEEL_OK;
}

const Impls& AllImpls() {
  static const Impls impls = [] {
    Impls all;
    for (auto family : {ElementwiseImpls(), MatmulImpls(), ReduceImpls(), LineImpls(), GatherImpls(),
                        ScatterImpls(), NormImpls(), CopyImpls(), NumberImpls(), PoolImpls(), ConvImpls(),
                        AttentionImpls(), StorageImpls(), SuppressImpls(), TreeImpls()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  return impls;
}

// An op without impl runs as ops that compute.
const char* Lacks(uint32_t i, const char* op, keel_dt dtype) {
  const Optional has = OptionalFeatures(vk().devices[i]);
  keel_tensor t = {};
  t.dtype = {static_cast<uint8_t>(dtype), static_cast<uint8_t>(dtype >> 8), 1};
  for (const keel_impl& impl : AllImpls()) {
    if (std::string_view(impl.op) != op) continue;
    if (impl.match == Guarded<MatchWidths>) return LackOfWidth(has, t);
    if (impl.match != Guarded<MatchNumbers>) return LackOfElementwise(has, op, dtype);
  }
  return LackOfNumbers(has, t);
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
    .lacks = Guarded<Lacks>,
};

const keel_plugin& Description() {
  static const keel_plugin plugin = keel::plugin::device_plugin(
      "vulkan", "0.1.0", "devices with Vulkan 1.3: GPUs, and processors by lavapipe", &kDevice,
      AllImpls().data(), AllImpls().size());
  return plugin;
}

}  // namespace
}  // namespace vulkan

KEEL_PLUGIN(vulkan::Description())
