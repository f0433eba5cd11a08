// queue.cc: opening, submission and waits. The order of commands is in commands.cc.
#include "queue.h"

#include <chrono>
#include <memory>

#include "recording.h"

namespace vulkan {
namespace {

VkSemaphoreSubmitInfo At(VkSemaphore timeline, uint64_t ticket) {
  auto at = Typed<VkSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO);
  at.semaphore = timeline;
  at.value = ticket;
  at.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  return at;
}

keel_rc NewFence(keel_queue q, VkFence* out) {
  {
    std::lock_guard lock(q->mutex);
    if (!q->spare_fences.empty()) {
      *out = q->spare_fences.back();
      q->spare_fences.pop_back();
      return KEEL_OK;
    }
  }
  auto info = Typed<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
  VULKAN_TRY(q->device, CreateFence, q->device->device, &info, nullptr, out);
  return KEEL_OK;
}

keel_rc OpenObjects(keel_queue q) {
  keel_dev d = q->device;
  auto type = Typed<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  auto semaphore = Typed<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
  semaphore.pNext = &type;
  VULKAN_TRY(d, CreateSemaphore, d->device, &semaphore, nullptr, &q->timeline);
  auto pool = Typed<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = q->driver == &d->compute ? d->families.compute : d->families.transfer;
  VULKAN_TRY(d, CreateCommandPool, d->device, &pool, nullptr, &q->pool);
  auto clock = Typed<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
  clock.queryType = VK_QUERY_TYPE_TIMESTAMP;
  clock.queryCount = kClocks;
  VULKAN_TRY(d, CreateQueryPool, d->device, &clock, nullptr, &q->clock);
  return KEEL_OK;
}

void CloseObjects(keel_queue q) {
  VkDevice device = q->device->device;
  for (const keel_queue_s::Batch& batch : q->flying) vk().DestroyFence(device, batch.fence, nullptr);
  for (VkFence fence : q->spare_fences) vk().DestroyFence(device, fence, nullptr);
  vk().DestroyQueryPool(device, q->clock, nullptr);
  vk().DestroyCommandPool(device, q->pool, nullptr);
  vk().DestroySemaphore(device, q->timeline, nullptr);
  delete q;
}

keel_rc EndBatch(keel_queue q) {
  // Results in host-visible memory become visible to the host.
  GlobalBarrier(q->open, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
  VULKAN_TRY(q->device, EndCommandBuffer, q->open);
  return KEEL_OK;
}

// Fence mode: the number of the last batch whose fence is signalled.
keel_rc PollFences(keel_queue q) {
  for (const keel_queue_s::Batch& batch : q->flying) {
    if (batch.ticket <= q->done) continue;
    const VkResult state = vk().GetFenceStatus(q->device->device, batch.fence);
    if (keel_rc rc = q->device->Check(state, "vkGetFenceStatus")) return rc;
    if (state == VK_NOT_READY) break;
    q->done = batch.ticket;
  }
  return KEEL_OK;
}

// The queue is in order: the fence of the first batch at or after the ticket.
keel_rc WaitForFence(keel_queue q, uint64_t ticket, uint64_t timeout) {
  VkFence fence = nullptr;
  {
    std::lock_guard lock(q->mutex);
    if (keel_rc rc = PollFences(q)) return rc;
    if (q->done >= ticket) return KEEL_OK;
    for (const keel_queue_s::Batch& batch : q->flying)
      if (!fence && batch.ticket >= ticket) fence = batch.fence;
    q->waiters++;
  }
  const VkResult result = vk().WaitForFences(q->device->device, 1, &fence, VK_TRUE, timeout);
  std::lock_guard lock(q->mutex);
  q->waiters--;
  return result == VK_TIMEOUT ? KEEL_CANCELLED : q->device->Check(result, "vkWaitForFences");
}

}  // namespace

keel_rc QueueOpen(keel_dev d, uint32_t kind, keel_queue* out) {
  if (kind > KEEL_QUEUE_TRANSFER) return KEEL_UNIMPLEMENTED;
  auto* q = new keel_queue_s;
  q->device = d;
  q->driver = kind == KEEL_QUEUE_COMPUTE ? &d->compute : d->transfer;
  if (keel_rc rc = OpenObjects(q)) return CloseObjects(q), rc;
  *out = q;
  return KEEL_OK;
}

void QueueClose(keel_queue q) {
  if (!q->device->lost) HostWait(q, q->submitted, UINT64_MAX);
  CloseObjects(q);
}

keel_rc Submit(keel_queue q, uint64_t* ticket) {
  if (keel_rc rc = q->device->CheckLost()) return rc;
  const VkSemaphoreSubmitInfo done = At(q->timeline, q->submitted + 1);
  auto commands = Typed<VkCommandBufferSubmitInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO);
  commands.commandBuffer = q->open;
  auto batch = Typed<VkSubmitInfo2>(VK_STRUCTURE_TYPE_SUBMIT_INFO_2);
  batch.waitSemaphoreInfoCount = static_cast<uint32_t>(q->waits.size());
  batch.pWaitSemaphoreInfos = q->waits.data();
  batch.signalSemaphoreInfoCount = 1;
  batch.pSignalSemaphoreInfos = &done;
  if (q->open) {
    if (keel_rc rc = EndBatch(q)) return rc;
    batch.commandBufferInfoCount = 1;
    batch.pCommandBufferInfos = &commands;
  }
  VkFence fence = nullptr;
  if (settings().fences)
    if (keel_rc rc = NewFence(q, &fence)) return rc;
  {
    std::lock_guard lock(q->driver->mutex);
    VULKAN_TRY(q->device, QueueSubmit2, q->driver->queue, 1, &batch, fence);
  }
  *ticket = ++q->submitted;
  q->waits.clear();
  std::lock_guard lock(q->mutex);
  q->flying.push_back({std::exchange(q->open, nullptr), *ticket, fence});
  return KEEL_OK;
}

// A batch waits as a whole, so commands encoded before are submitted first.
keel_rc QueueWait(keel_queue q, keel_queue other, uint64_t ticket) {
  if (q->open) {
    uint64_t before;
    if (keel_rc rc = Submit(q, &before)) return rc;
  }
  q->waits.push_back(At(other->timeline, ticket));
  return KEEL_OK;
}

keel_rc HostWait(keel_queue q, uint64_t ticket, uint64_t timeout) {
  if (keel_rc rc = q->device->CheckLost()) return rc;
  if (settings().fences) return WaitForFence(q, ticket, timeout);
  auto wait = Typed<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  wait.semaphoreCount = 1;
  wait.pSemaphores = &q->timeline;
  wait.pValues = &ticket;
  const VkResult result = vk().WaitSemaphores(q->device->device, &wait, timeout);
  return result == VK_TIMEOUT ? KEEL_CANCELLED : q->device->Check(result, "vkWaitSemaphores");
}

keel_rc Query(keel_queue q, uint64_t* done) {
  if (keel_rc rc = q->device->CheckLost()) return rc;
  if (!settings().fences) {
    VULKAN_TRY(q->device, GetSemaphoreCounterValue, q->device->device, q->timeline, done);
    return KEEL_OK;
  }
  std::lock_guard lock(q->mutex);
  if (keel_rc rc = PollFences(q)) return rc;
  *done = q->done;
  return KEEL_OK;
}

}  // namespace vulkan

// Command buffers and fences of batches that are done become spare. A fence with waiters must not be reset.
keel_rc keel_queue_s::Recycle() {
  uint64_t last = 0;
  if (keel_rc rc = vulkan::Query(this, &last)) return rc;
  std::lock_guard lock(mutex);
  if (waiters) return KEEL_OK;
  for (; !flying.empty() && flying.front().ticket <= last; flying.pop_front()) {
    const Batch& batch = flying.front();
    if (batch.commands) spare.push_back(batch.commands);
    if (!batch.fence) continue;
    VULKAN_TRY(device, ResetFences, device->device, 1, &batch.fence);
    spare_fences.push_back(batch.fence);
  }
  return KEEL_OK;
}

keel_rc keel_queue_s::Begin() {
  using namespace vulkan;
  if (open) return KEEL_OK;
  if (keel_rc rc = Recycle()) return rc;
  if (spare.empty()) {
    auto one = Typed<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    one.commandPool = pool;
    one.commandBufferCount = 1;
    VkCommandBuffer made;
    VULKAN_TRY(device, AllocateCommandBuffers, device->device, &one, &made);
    spare.push_back(made);
  }
  auto once = Typed<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  once.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  VULKAN_TRY(device, BeginCommandBuffer, spare.back(), &once);
  open = spare.back();
  spare.pop_back();
  Barrier();  // after earlier batches
  return KEEL_OK;
}
