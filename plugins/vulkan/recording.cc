// recording.cc: see recording.h.
#include "recording.h"

#include <cstring>

#include "launch.h"
#include "shaders.h"

namespace vulkan {
namespace {

struct RelocateParams {  // shaders/relocate.comp
  uint64_t table, relocations;
  uint32_t count, reserved;
};

keel_rc OpenCommands(keel_queue q, keel_recording r) {
  keel_dev d = q->device;
  auto pool = Typed<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = d->families.compute;
  VULKAN_TRY(d, CreateCommandPool, d->device, &pool, nullptr, &r->pool);
  auto one = Typed<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  one.commandPool = r->pool;
  one.level = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
  one.commandBufferCount = 1;
  VULKAN_TRY(d, AllocateCommandBuffers, d->device, &one, &r->commands);
  auto inheritance = Typed<VkCommandBufferInheritanceInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO);
  auto begin = Typed<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;  // earlier replays may still execute
  begin.pInheritanceInfo = &inheritance;
  VULKAN_TRY(d, BeginCommandBuffer, r->commands, &begin);
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
  VULKAN_TRY(q->device, EndCommandBuffer, r->commands);
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
  const auto groups = static_cast<uint32_t>((r->relocations.size() + 63) / 64);
  DispatchAt(q->device, q->open, r->relocate, r->memory.address, {std::min(groups, kMostGroups), 1, 1});
  q->Barrier();
}

}  // namespace

keel_rc RecordBegin(keel_queue q, const uint64_t* table, uint32_t n) {
  auto* r = new keel_recording_s;
  r->table.assign(table, table + n);
  if (keel_rc rc = OpenCommands(q, r)) return RecordingFree(q->device, r), rc;
  q->recording = r;
  q->launched = false;
  q->last_barrier = 0;
  q->verified.Clear();
  return KEEL_OK;
}

// The open batch stays open; commands that follow a recording come after a barrier.
keel_rc RecordEnd(keel_queue q, keel_recording* out) {
  keel_recording r = std::exchange(q->recording, nullptr);
  q->verified.Clear();
  q->launched = q->open != nullptr;
  keel_rc rc = out ? Finish(q, r) : KEEL_OK;
  if (out && !rc) *out = r;
  if (!out || rc) RecordingFree(q->device, r);
  return rc;
}

keel_rc Replay(keel_queue q, keel_recording r, const uint64_t* table, uint32_t n) {
  if (n != r->table.size()) return q->device->host->fail(KEEL_INVALID, "replay: the table has another size");
  VkCommandBuffer commands;
  if (keel_rc rc = q->ForAfterAll(&commands)) return rc;
  if (!r->relocations.empty()) Relocate(q, r, table);
  vk().CmdExecuteCommands(commands, 1, &r->commands);
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
