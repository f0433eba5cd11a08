// queue.cc: a queue of Keel is a timeline semaphore and command buffers, one a batch; all share the driver's
// one queue.
#include <memory>

#include "device.h"

keel_rc keel_queue_s::Begin() {
  using namespace sketch;
  const Vulkan& vk = vulkan();
  uint64_t done = 0;
  SKETCH_TRY(device->host, vk.GetSemaphoreCounterValue(device->device, timeline, &done));
  std::erase_if(flying, [&](const Batch& batch) {
    if (batch.ticket <= done) spare.push_back(batch.commands);
    return batch.ticket <= done;
  });
  if (spare.empty()) {
    auto one = Typed<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    one.commandPool = pool;
    one.commandBufferCount = 1;
    VkCommandBuffer made;
    SKETCH_TRY(device->host, vk.AllocateCommandBuffers(device->device, &one, &made));
    spare.push_back(made);
  }
  auto once = Typed<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  once.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  SKETCH_TRY(device->host, vk.BeginCommandBuffer(spare.back(), &once));
  open = spare.back();
  spare.pop_back();
  Barrier();  // against the batches before
  return KEEL_OK;
}

void keel_queue_s::Barrier() {
  using namespace sketch;
  auto all = Typed<VkMemoryBarrier2>(VK_STRUCTURE_TYPE_MEMORY_BARRIER_2);
  all.srcStageMask = all.dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  all.srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT;
  all.dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT;
  auto barrier = Typed<VkDependencyInfo>(VK_STRUCTURE_TYPE_DEPENDENCY_INFO);
  barrier.memoryBarrierCount = 1;
  barrier.pMemoryBarriers = &all;
  vulkan().CmdPipelineBarrier2(open, &barrier);
  count_add(COUNT_BARRIERS, 1);
  hazards.Clear();
  launched = false;
}

keel_rc keel_queue_s::Record(const keel_call* call, VkCommandBuffer* out) {
  if (!open) {
    if (keel_rc rc = Begin()) return rc;
    last_barrier = call->number - 1;
  } else if (call->number == 1) {
    if (launched || !hazards.Empty()) Barrier();
    last_barrier = 0;
  } else if (call->depends > last_barrier) {
    Barrier();
    last_barrier = call->number - 1;
  }
  launched = true;
  *out = open;
  return KEEL_OK;
}

keel_rc keel_queue_s::Record(const sketch::Range& reads, const sketch::Range& writes, VkCommandBuffer* out) {
  if (!open) {
    if (keel_rc rc = Begin()) return rc;
  }
  if (launched || hazards.Conflict(reads, writes)) Barrier();
  hazards.Add(reads, writes);
  *out = open;
  return KEEL_OK;
}

namespace sketch {
namespace {

Range Of(const keel_segment* s, uint64_t offset, uint64_t bytes) {
  return {s->address + offset, s->address + offset + bytes};
}
VkBuffer BufferOf(const keel_segment* s) { return static_cast<Segment*>(s->handle)->buffer; }

VkSemaphoreSubmitInfo At(VkSemaphore timeline, uint64_t ticket) {
  auto at = Typed<VkSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO);
  at.semaphore = timeline;
  at.value = ticket;
  at.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  return at;
}

VkResult WaitFor(keel_queue q, uint64_t ticket, uint64_t timeout) {
  auto wait = Typed<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  wait.semaphoreCount = 1;
  wait.pSemaphores = &q->timeline;
  wait.pValues = &ticket;
  return vulkan().WaitSemaphores(q->device->device, &wait, timeout);
}

}  // namespace

keel_rc QueueOpen(keel_dev d, uint32_t kind, keel_queue* out) {
  if (kind > KEEL_QUEUE_TRANSFER) return KEEL_UNIMPLEMENTED;
  auto q = std::make_unique<keel_queue_s>();
  q->device = d;
  auto type = Typed<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  auto semaphore = Typed<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
  semaphore.pNext = &type;
  SKETCH_TRY(d->host, vulkan().CreateSemaphore(d->device, &semaphore, nullptr, &q->timeline));
  auto pool = Typed<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = d->family;
  VkResult made = vulkan().CreateCommandPool(d->device, &pool, nullptr, &q->pool);
  if (keel_rc rc = Check(d->host, made, "vkCreateCommandPool"))
    return vulkan().DestroySemaphore(d->device, q->timeline, nullptr), rc;
  count_add(COUNT_QUEUES, 1);
  *out = q.release();
  return KEEL_OK;
}

void QueueClose(keel_queue q) {
  WaitFor(q, q->submitted, UINT64_MAX);
  vulkan().DestroyCommandPool(q->device->device, q->pool, nullptr);
  vulkan().DestroySemaphore(q->device->device, q->timeline, nullptr);
  count_add(COUNT_QUEUES, -1);
  delete q;
}

keel_rc Copy(keel_queue q, const keel_segment* to, uint64_t to_offset, const keel_segment* from,
             uint64_t from_offset, uint64_t bytes) {
  if (!bytes) return KEEL_OK;
  VkCommandBuffer commands;
  if (keel_rc rc = q->Record(Of(from, from_offset, bytes), Of(to, to_offset, bytes), &commands)) return rc;
  const VkBufferCopy range = {from_offset, to_offset, bytes};
  vulkan().CmdCopyBuffer(commands, BufferOf(from), BufferOf(to), 1, &range);
  count_copy(to, from, bytes);
  return KEEL_OK;
}

keel_rc Fill(keel_queue q, const keel_segment* to, uint64_t offset, uint64_t bytes, uint32_t value) {
  if (!bytes) return KEEL_OK;
  VkCommandBuffer commands;
  if (keel_rc rc = q->Record({0, 0}, Of(to, offset, bytes), &commands)) return rc;
  vulkan().CmdFillBuffer(commands, BufferOf(to), offset, bytes, value);
  count_add(COUNT_FILLS, 1);
  return KEEL_OK;
}

keel_rc Submit(keel_queue q, uint64_t* ticket) {
  const VkSemaphoreSubmitInfo done = At(q->timeline, q->submitted + 1);
  auto commands = Typed<VkCommandBufferSubmitInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO);
  commands.commandBuffer = q->open;
  auto batch = Typed<VkSubmitInfo2>(VK_STRUCTURE_TYPE_SUBMIT_INFO_2);
  batch.waitSemaphoreInfoCount = static_cast<uint32_t>(q->waits.size());
  batch.pWaitSemaphoreInfos = q->waits.data();
  batch.signalSemaphoreInfoCount = 1;
  batch.pSignalSemaphoreInfos = &done;
  if (q->open) {
    SKETCH_TRY(q->device->host, vulkan().EndCommandBuffer(q->open));
    batch.commandBufferInfoCount = 1;
    batch.pCommandBufferInfos = &commands;
  }
  {
    std::lock_guard lock(q->device->submitting);
    SKETCH_TRY(q->device->host, vulkan().QueueSubmit2(q->device->queue, 1, &batch, nullptr));
  }
  *ticket = ++q->submitted;
  if (q->open) q->flying.push_back({std::exchange(q->open, nullptr), *ticket});
  q->waits.clear();
  count_add(COUNT_SUBMITS, 1);
  return KEEL_OK;
}

// A batch waits as a whole; commands recorded before must not wait, so they are submitted first.
keel_rc QueueWait(keel_queue q, keel_queue other, uint64_t ticket) {
  if (q->open) {
    uint64_t before;
    if (keel_rc rc = Submit(q, &before)) return rc;
  }
  q->waits.push_back(At(other->timeline, ticket));
  count_add(COUNT_QUEUE_WAITS, 1);
  return KEEL_OK;
}

keel_rc HostWait(keel_queue q, uint64_t ticket, uint64_t timeout) {
  count_add(COUNT_HOST_WAITS, 1);
  VkResult result = WaitFor(q, ticket, timeout);
  return result == VK_TIMEOUT ? KEEL_CANCELLED : Check(q->device->host, result, "vkWaitSemaphores");
}

keel_rc Query(keel_queue q, uint64_t* done) {
  count_add(COUNT_QUERIES, 1);
  SKETCH_TRY(q->device->host, vulkan().GetSemaphoreCounterValue(q->device->device, q->timeline, done));
  return KEEL_OK;
}

}  // namespace sketch
