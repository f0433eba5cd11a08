// recording.cc: see recording.h.
#include "recording.h"

#include <cstring>
#include <memory>

#include "shaders.h"

namespace vulkan {
namespace {

struct RelocateParams {  // shaders/relocate.comp
  uint64_t table, relocations;
  uint32_t count, reserved;
};

keel_rc OpenPool(keel_queue q, keel_recording r) {
  auto pool = Typed<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = q->device->families.compute;
  VULKAN_TRY(q->device, CreateCommandPool, q->device->device, &pool, nullptr, &r->pool);
  return KEEL_OK;
}

keel_rc EndPart(keel_queue q, keel_recording r) {
  if (r->parts.empty()) return KEEL_OK;
  HostBarrier(r->parts.back());
  VULKAN_TRY(q->device, EndCommandBuffer, r->parts.back());
  return KEEL_OK;
}

keel_rc BeginPart(keel_queue q, keel_recording r) {
  keel_dev d = q->device;
  auto one = Typed<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  one.commandPool = r->pool;
  one.commandBufferCount = 1;
  VkCommandBuffer made;
  VULKAN_TRY(d, AllocateCommandBuffers, d->device, &one, &made);
  auto begin = Typed<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;  // earlier replays may still execute
  VULKAN_TRY(d, BeginCommandBuffer, made, &begin);
  r->parts.push_back(made);
  r->launches = 0;
  q->Barrier();
  return KEEL_OK;
}

uint64_t TableOffset() { return sizeof(RelocateParams) + 8; }  // a multiple of 32

keel_rc StoreRelocations(keel_queue q, keel_recording r) {
  const uint64_t table = 8 * r->table.size(), rest = sizeof(Relocation) * r->relocations.size();
  if (r->relocations.empty()) return KEEL_OK;
  if (keel_rc rc = SegmentAlloc(q->device, KEEL_SEGMENT_SHARED, TableOffset() + table + rest, &r->memory))
    return rc;
  const uint64_t at = r->memory.address + TableOffset();
  const RelocateParams params = {at, at + table, static_cast<uint32_t>(r->relocations.size()), 0};
  auto* host = static_cast<char*>(r->memory.host);
  std::memcpy(host, &params, sizeof params);
  std::memcpy(host + TableOffset() + table, r->relocations.data(), rest);
  return q->device->Pipeline(kRelocate, {}, &r->relocate);
}

keel_rc Finish(keel_queue q, keel_recording r) {
  if (keel_rc rc = EndPart(q, r)) return rc;
  return StoreRelocations(q, r);
}

// Earlier replays read the old addresses until the first barrier.
void Relocate(keel_queue q, keel_recording r, const uint64_t* table) {
  VkBuffer buffer = static_cast<Segment*>(r->memory.handle)->buffer;
  const uint64_t bytes = 8 * r->table.size();
  for (uint64_t at = 0; at < bytes; at += kMostUpdate)
    vk().CmdUpdateBuffer(q->open, buffer, TableOffset() + at, std::min(kMostUpdate, bytes - at),
                         reinterpret_cast<const char*>(table) + at);
  q->Barrier();
  // At most what every driver takes; the shader has a grid stride.
  const auto groups = static_cast<uint32_t>(std::min<size_t>((r->relocations.size() + 63) / 64, 65535));
  EncodeDispatch(q->device, q->open, r->relocate, {&r->memory.address, 1}, groups);
  q->Barrier();
}

}  // namespace

keel_rc RecordBegin(keel_queue q, const uint64_t* table, uint32_t n) {
  if (settings().no_recordings) return KEEL_UNIMPLEMENTED;
  if (keel_rc rc = q->device->CheckLost()) return rc;
  auto r = std::make_unique<keel_recording_s>();
  r->table.assign(table, table + n);
  if (keel_rc rc = OpenPool(q, r.get())) return rc;
  q->recording = r.release();
  q->launched = false;
  q->last_barrier = 0;
  q->verified.Clear();
  return KEEL_OK;
}

// The open batch stays open; commands that follow a recording come after a barrier.
keel_rc RecordEnd(keel_queue q, keel_recording* out) {
  keel_recording r = std::exchange(q->recording, nullptr);
  q->verified.Clear();
  q->launched = !q->IsEmpty();
  keel_rc rc = out ? Finish(q, r) : KEEL_OK;
  if (out && !rc) *out = r;
  if (!out || rc) RecordingFree(q->device, r);
  return rc;
}

keel_rc RecordingBuffer(keel_queue q, VkCommandBuffer* out, bool* begun) {
  keel_recording r = q->recording;
  *begun = r->parts.empty() || r->launches == (r->parts.size() == 1 ? kFirstLaunches : kMostLaunches);
  if (*begun) {
    if (keel_rc rc = EndPart(q, r)) return rc;
    if (keel_rc rc = BeginPart(q, r)) return rc;
  }
  r->launches++;
  *out = r->parts.back();
  return KEEL_OK;
}

keel_rc Replay(keel_queue q, keel_recording r, const uint64_t* table, uint32_t n) {
  if (n != r->table.size()) return q->device->host->fail(KEEL_INVALID, "replay: the table has another size");
  VkCommandBuffer commands;
  if (keel_rc rc = q->ForAfterAll(&commands)) return rc;
  if (!r->relocations.empty()) Relocate(q, r, table);
  if (keel_rc rc = q->End()) return rc;
  for (VkCommandBuffer part : r->parts) {
    q->Append(part);
    if (part != r->parts.back()) q->Cut();
  }
  q->launches = r->launches;
  q->batch.ops.insert(q->batch.ops.end(), r->ops.begin(), r->ops.end());
  q->launched = true;
  q->last_barrier = 0;
  return KEEL_OK;
}

void RecordingFree(keel_dev d, keel_recording r) {
  if (r->memory.handle) SegmentFree(d, &r->memory);
  vk().DestroyCommandPool(d->device, r->pool, nullptr);
  delete r;
}

}  // namespace vulkan
