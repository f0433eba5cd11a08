// commands.cc: copies, fills and timestamps, and the barriers between commands.
#include <cstring>

#include "recording.h"
#include "shaders.h"

namespace vulkan {
namespace {

Range RangeOf(const keel_segment* s, uint64_t offset, uint64_t bytes) {
  return {s->address + offset, s->address + offset + bytes};
}
const Segment& Own(const keel_segment* s) { return *static_cast<Segment*>(s->handle); }
VkBuffer BufferOf(const keel_segment* s) { return Own(s).buffer; }

// Operands, results and scratch of a launch. Arrays in device memory are row-major.
struct Touched {
  std::vector<Range> reads, writes;
  explicit Touched(const keel_call& call) {
    for (uint32_t i = 0; i < call.n_in; i++)
      if (call.in[i]) reads.push_back(Of(call.in[i]));
    for (uint32_t i = 0; i < call.n_out; i++) writes.push_back(Of(call.out[i]));
    const auto scratch = reinterpret_cast<uint64_t>(call.scratch);
    if (scratch) writes.push_back({scratch, scratch + call.scratch_bytes});
  }
  static Range Of(const keel_tensor* t) {
    const auto begin = reinterpret_cast<uint64_t>(keel_ptr(t));
    return {begin, begin + keel_bytes(keel_dt_of(t), keel_count(t))};
  }
};

}  // namespace

void GlobalBarrier(VkCommandBuffer commands, VkPipelineStageFlags2 to, VkAccessFlags2 access) {
  auto all = Typed<VkMemoryBarrier2>(VK_STRUCTURE_TYPE_MEMORY_BARRIER_2);
  all.srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  all.srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT;
  all.dstStageMask = to;
  all.dstAccessMask = access;
  auto barrier = Typed<VkDependencyInfo>(VK_STRUCTURE_TYPE_DEPENDENCY_INFO);
  barrier.memoryBarrierCount = 1;
  barrier.pMemoryBarriers = &all;
  vk().CmdPipelineBarrier2(commands, &barrier);
}

void HostBarrier(VkCommandBuffer commands) {
  GlobalBarrier(commands, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
}

void EncodeDispatch(keel_dev d, VkCommandBuffer commands, VkPipeline pipeline, std::span<const uint64_t> push,
                    uint32_t groups) {
  vk().CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  vk().CmdPushConstants(commands, d->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        static_cast<uint32_t>(push.size_bytes()), push.data());
  vk().CmdDispatch(commands, groups, 1, 1);
}

// A small copy that nothing precedes is done by the host, so that a small run is one submission: its
// launches.
keel_rc Copy(keel_queue q, const keel_segment* to, uint64_t to_offset, const keel_segment* from,
             uint64_t from_offset, uint64_t bytes) {
  if (!bytes) return KEEL_OK;
  const Segment &there = Own(to), &here = Own(from);
  bool idle = false;
  if (bytes <= kMostByHost && there.host && here.host && here.host_reads && !settings().staging)
    if (keel_rc rc = q->FindIdle(&idle)) return rc;
  if (idle) return std::memcpy(there.host + to_offset, here.host + from_offset, bytes), KEEL_OK;
  VkCommandBuffer commands;
  if (keel_rc rc =
          q->ForTransfer(RangeOf(from, from_offset, bytes), RangeOf(to, to_offset, bytes), &commands))
    return rc;
  const VkBufferCopy range = {from_offset, to_offset, bytes};
  vk().CmdCopyBuffer(commands, BufferOf(from), BufferOf(to), 1, &range);
  return KEEL_OK;
}

keel_rc Fill(keel_queue q, const keel_segment* to, uint64_t offset, uint64_t bytes, uint32_t value) {
  if (!bytes) return KEEL_OK;
  VkCommandBuffer commands;
  if (keel_rc rc = q->ForTransfer({0, 0}, RangeOf(to, offset, bytes), &commands)) return rc;
  vk().CmdFillBuffer(commands, BufferOf(to), offset, bytes, value);
  return KEEL_OK;
}

// The clock's ticks are copied to the segment; a shader converts them to nanoseconds there.
keel_rc Timestamp(keel_queue q, const keel_segment* to, uint64_t offset) {
  VkCommandBuffer commands;
  if (keel_rc rc = q->ForAfterAll(&commands)) return rc;
  const uint32_t at = q->next_clock++ % kClocks;
  vk().CmdResetQueryPool(commands, q->clock, at, 1);
  vk().CmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, q->clock, at);
  vk().CmdCopyQueryPoolResults(commands, q->clock, at, 1, BufferOf(to), offset, sizeof(uint64_t),
                               VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  q->Barrier();
  const uint64_t params[] = {to->address + offset, q->device->nanoseconds};
  VkPipeline convert;
  if (keel_rc rc = q->device->Pipeline(kClock, {}, &convert)) return rc;
  EncodeDispatch(q->device, commands, convert, params, 1);
  q->Barrier();
  return KEEL_OK;
}

}  // namespace vulkan

void keel_queue_s::Barrier() {
  vulkan::GlobalBarrier(recording ? recording->parts.back() : open);
  transfers.Clear();
  verified.Clear();
  launched = false;
}

// Launch numbers begin again at 1; last_barrier counts like them.
bool keel_queue_s::NeedsBarrier(const keel_call* call) const {
  static const bool drops = vulkan::settings().plant == "barrier";
  if (vulkan::settings().barriers) return true;
  if (call->number == 1) return launched || !transfers.empty();
  return call->depends > last_barrier && !drops;
}

keel_rc keel_queue_s::ForLaunch(const keel_call* call, const char* op, VkCommandBuffer* out) {
  bool fresh = false;  // the command buffer begins with a barrier
  if (recording) {
    if (keel_rc rc = vulkan::RecordingBuffer(this, out, &fresh)) return rc;
    recording->ops.push_back(op);
  } else {
    if (launches >= vulkan::kMostLaunches) {
      if (keel_rc rc = End()) return rc;
      Cut();
    }
    fresh = !open;
    if (keel_rc rc = Begin()) return rc;
    launches++;
    batch.ops.push_back(op);
    *out = open;
  }
  if (!fresh && NeedsBarrier(call)) {
    Barrier();
    fresh = true;
  }
  if (fresh || call->number == 1) last_barrier = call->number - 1;
  launched = true;
  if (vulkan::settings().verify) {
    const vulkan::Touched touched(*call);
    Verify(touched.reads, touched.writes, "launch");
  }
  return KEEL_OK;
}

keel_rc keel_queue_s::ForTransfer(const vulkan::Range& reads, const vulkan::Range& writes,
                                  VkCommandBuffer* out) {
  if (keel_rc rc = Begin()) return rc;
  if (launched || vulkan::settings().barriers || transfers.Conflicts({reads}, {writes})) Barrier();
  transfers.Add({reads}, {writes});
  if (vulkan::settings().verify) Verify({reads}, {writes}, "transfer");
  *out = open;
  return KEEL_OK;
}

keel_rc keel_queue_s::ForAfterAll(VkCommandBuffer* out) {
  if (keel_rc rc = Begin()) return rc;
  if (launched || !transfers.empty()) Barrier();
  *out = open;
  return KEEL_OK;
}

void keel_queue_s::Verify(const std::vector<vulkan::Range>& reads, const std::vector<vulkan::Range>& writes,
                          const char* what) {
  if (verified.Conflicts(reads, writes)) {
    const std::string text = std::string("missing barrier: a ") + what +
                             " uses memory of an earlier command since the last barrier";
    vulkan::Complain("verifier", text.c_str());
  }
  verified.Add(reads, writes);
}
