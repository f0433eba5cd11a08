// queue.cc: opening, submission and waits. The order of commands is in commands.cc.
#include "queue.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace vulkan {
namespace {

VkSemaphoreSubmitInfo At(VkSemaphore timeline, uint64_t ticket) {
  auto at = Typed<VkSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO);
  at.semaphore = timeline;
  at.value = ticket;
  at.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  return at;
}

VkResult WaitFor(keel_dev d, VkSemaphore timeline, uint64_t ticket, uint64_t timeout) {
  auto wait = Typed<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  wait.semaphoreCount = 1;
  wait.pSemaphores = &timeline;
  wait.pValues = &ticket;
  return vk().WaitSemaphores(d->device, &wait, timeout);
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
  vk().DestroyFence(device, q->batch.fence, nullptr);
  for (VkFence fence : q->spare_fences) vk().DestroyFence(device, fence, nullptr);
  vk().DestroyQueryPool(device, q->clock, nullptr);
  vk().DestroyCommandPool(device, q->pool, nullptr);
  vk().DestroySemaphore(device, q->timeline, nullptr);
}

// Fence mode: sets `done` to the last batch whose fence is signalled. Requires the queue's lock; its caller
// checks the result without the lock.
VkResult PollFences(keel_queue q) {
  for (const keel_queue_s::Batch& batch : q->flying) {
    if (batch.ticket <= q->done) continue;
    const VkResult state = vk().GetFenceStatus(q->device->device, batch.fence);
    if (state) return state == VK_NOT_READY ? VK_SUCCESS : state;
    q->done = batch.ticket;
  }
  return VK_SUCCESS;
}

// The fence of the first batch at or after the ticket, counted as waited for; NULL: the ticket is done. The
// queue is in order.
VkResult FenceOf(keel_queue q, uint64_t ticket, VkFence* out) {
  std::lock_guard lock(q->mutex);
  *out = nullptr;
  if (VkResult result = PollFences(q)) return result;
  if (q->done >= ticket) return VK_SUCCESS;
  for (const keel_queue_s::Batch& batch : q->flying)
    if (!*out && batch.ticket >= ticket) *out = batch.fence;
  q->waiters++;
  return VK_SUCCESS;
}

keel_rc WaitForFence(keel_queue q, uint64_t ticket, uint64_t timeout) {
  VkFence fence;
  if (keel_rc rc = q->device->Check(FenceOf(q, ticket, &fence), "vkGetFenceStatus")) return rc;
  if (!fence) return KEEL_OK;
  const VkResult result = vk().WaitForFences(q->device->device, 1, &fence, VK_TRUE, timeout);
  {
    std::lock_guard lock(q->mutex);
    q->waiters--;
  }
  return result == VK_TIMEOUT ? KEEL_CANCELLED : q->device->Check(result, "vkWaitForFences");
}

}  // namespace

keel_rc QueueOpen(keel_dev d, uint32_t kind, keel_queue* out) {
  if (kind > KEEL_QUEUE_TRANSFER) return KEEL_UNIMPLEMENTED;
  auto q = std::make_unique<keel_queue_s>();
  q->device = d;
  q->driver = kind == KEEL_QUEUE_COMPUTE ? &d->compute : d->transfer;
  if (keel_rc rc = OpenObjects(q.get())) return CloseObjects(q.get()), rc;
  std::lock_guard lock(d->queues_mutex);
  d->queues.push_back(q.get());
  *out = q.release();
  return KEEL_OK;
}

void QueueClose(keel_queue q) {
  if (!q->device->lost) {
    HostWait(q, q->submitted, UINT64_MAX);
    // The thread of lavapipe still uses the semaphore after the ticket is done.
    std::lock_guard lock(q->driver->mutex);
    vk().QueueWaitIdle(q->driver->queue);
  }
  {
    std::lock_guard lock(q->device->queues_mutex);
    std::erase(q->device->queues, q);
  }
  CloseObjects(q);
  delete q;
}

namespace {

// Describes the open batch to the driver: parts in order, waits before the first, the signal after the last.
void DescribeParts(keel_queue q, const VkSemaphoreSubmitInfo* done) {
  q->parts.assign(q->cuts.size() + 1, Typed<VkSubmitInfo2>(VK_STRUCTURE_TYPE_SUBMIT_INFO_2));
  size_t begin = 0;
  for (size_t i = 0; i < q->parts.size(); i++) {
    const size_t end = i < q->cuts.size() ? q->cuts[i] : q->ready.size();
    q->parts[i].commandBufferInfoCount = static_cast<uint32_t>(end - begin);
    q->parts[i].pCommandBufferInfos = q->ready.data() + begin;
    begin = end;
  }
  q->parts.front().waitSemaphoreInfoCount = static_cast<uint32_t>(q->waits.size());
  q->parts.front().pWaitSemaphoreInfos = q->waits.data();
  q->parts.back().signalSemaphoreInfoCount = 1;
  q->parts.back().pSignalSemaphoreInfos = done;
}

}  // namespace

// After a failure the batch stays open, and the next call submits it. A ticket of nothing is done at once,
// and the driver's timeline skips its number.
keel_rc Submit(keel_queue q, uint64_t* ticket) {
  bool idle = false;
  if (keel_rc rc = q->FindIdle(&idle)) return rc;
  if (idle) {
    std::lock_guard lock(q->mutex);
    *ticket = q->done = ++q->submitted;
    return KEEL_OK;
  }
  if (keel_rc rc = q->End()) return rc;
  if (settings().fences && !q->batch.fence)
    if (keel_rc rc = NewFence(q, &q->batch.fence)) return rc;
  const VkSemaphoreSubmitInfo done = At(q->timeline, q->submitted + 1);
  DescribeParts(q, &done);
  {
    std::lock_guard lock(q->mutex);
    q->batch.ticket = q->submitted + 1;
    q->flying.push_back(std::move(q->batch));
    q->batch = {};
  }
  VkResult result;
  {
    std::lock_guard lock(q->driver->mutex);
    result = vk().QueueSubmit2(q->driver->queue, static_cast<uint32_t>(q->parts.size()), q->parts.data(),
                               q->flying.back().fence);
  }
  const keel_rc rc = q->device->Check(result, "vkQueueSubmit2");
  if (rc) {
    std::lock_guard lock(q->mutex);
    q->batch = std::move(q->flying.back());
    q->flying.pop_back();
    return rc;
  }
  *ticket = ++q->submitted;
  q->waits.clear();
  q->ready.clear();
  q->cuts.clear();
  q->launches = 0;
  return KEEL_OK;
}

// A batch waits as a whole, so commands encoded before are submitted first.
keel_rc QueueWait(keel_queue q, keel_queue other, uint64_t ticket) {
  if (other->KnowsDone(ticket)) return q->device->CheckLost();
  if (!q->IsEmpty()) {
    uint64_t before;
    if (keel_rc rc = Submit(q, &before)) return rc;
  }
  q->waits.push_back(At(other->timeline, ticket));
  return KEEL_OK;
}

keel_rc HostWait(keel_queue q, uint64_t ticket, uint64_t timeout) {
  if (keel_rc rc = q->device->CheckLost()) return rc;
  if (q->KnowsDone(ticket)) return KEEL_OK;
  if (settings().fences) return WaitForFence(q, ticket, timeout);
  const VkResult result = WaitFor(q->device, q->timeline, ticket, timeout);
  if (keel_rc rc = q->device->Check(result, "vkWaitSemaphores")) return rc;
  if (result == VK_TIMEOUT) return KEEL_CANCELLED;
  std::lock_guard lock(q->mutex);
  q->done = std::max(q->done, ticket);
  return KEEL_OK;
}

keel_rc Query(keel_queue q, uint64_t* done) {
  if (keel_rc rc = q->device->CheckLost()) return rc;
  *done = q->submitted;
  if (q->KnowsDone(*done)) return KEEL_OK;
  if (settings().fences) {
    std::unique_lock lock(q->mutex);
    const VkResult result = PollFences(q);
    *done = q->done;
    lock.unlock();
    return q->device->Check(result, "vkGetFenceStatus");
  }
  VULKAN_TRY(q->device, GetSemaphoreCounterValue, q->device->device, q->timeline, done);
  std::lock_guard lock(q->mutex);
  *done = q->done = std::max(q->done, *done);
  return KEEL_OK;
}

std::string UnfinishedOps(keel_dev d) {
  std::vector<std::string> names;
  std::lock_guard all(d->queues_mutex);
  for (keel_queue q : d->queues) {
    std::lock_guard lock(q->mutex);
    const auto at =
        std::ranges::find_if(q->flying, [&](const auto& batch) { return batch.ticket > q->done; });
    if (at == q->flying.end()) continue;
    for (const char* op : at->ops)
      if (std::ranges::find(names, op) == names.end()) names.emplace_back(op);
  }
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); i++) text += (i ? ", " : "") + names[i];
  if (names.size() > kShown) text += ", and " + std::to_string(names.size() - kShown) + " other ops";
  return text;
}

}  // namespace vulkan

// Command buffers and fences of batches that are done become spare. A fence with waiters must not be reset.
keel_rc keel_queue_s::Recycle() {
  uint64_t last = 0;
  if (keel_rc rc = vulkan::Query(this, &last)) return rc;
  std::unique_lock lock(mutex);
  if (waiters) return KEEL_OK;
  VkResult reset = VK_SUCCESS;
  for (; !reset && !flying.empty() && flying.front().ticket <= last; flying.pop_front()) {
    Batch& over = flying.front();
    spare.insert(spare.end(), over.buffers.begin(), over.buffers.end());
    over.buffers.clear();
    if (!over.fence) continue;
    reset = vulkan::vk().ResetFences(device->device, 1, &over.fence);
    if (!reset)
      spare_fences.push_back(over.fence);
    else  // still signalled: a batch with it would count as done at once
      vulkan::vk().DestroyFence(device->device, over.fence, nullptr);
  }
  lock.unlock();
  return device->Check(reset, "vkResetFences");
}

bool keel_queue_s::KnowsDone(uint64_t ticket) {
  std::lock_guard lock(mutex);
  return ticket <= done;
}

keel_rc keel_queue_s::FindIdle(bool* idle) {
  *idle = false;
  if (keel_rc rc = device->CheckLost()) return rc;
  if (!IsEmpty() || !waits.empty() || recording) return KEEL_OK;
  uint64_t last = 0;
  if (keel_rc rc = vulkan::Query(this, &last)) return rc;
  *idle = last == submitted;
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
  batch.buffers.push_back(spare.back());
  open = spare.back();
  spare.pop_back();
  Barrier();  // after earlier command buffers
  return KEEL_OK;
}

// Waits, before the device counts as lost, for all work that it still executes.
void keel_queue_s::LoseEncodedWork() {
  std::vector<std::pair<VkSemaphore, uint64_t>> last;
  {
    std::lock_guard all(device->queues_mutex);
    for (keel_queue q : device->queues) {
      std::lock_guard lock(q->mutex);
      if (!q->flying.empty()) last.emplace_back(q->timeline, q->flying.back().ticket);
    }
  }
  constexpr uint64_t kLongest = 10'000'000'000;  // nanoseconds
  for (const auto& [semaphore, ticket] : last) vulkan::WaitFor(device, semaphore, ticket, kLongest);
  device->Lose("vkEndCommandBuffer failed, and encoded work is gone");
}

keel_rc keel_queue_s::End() {
  if (!open) return KEEL_OK;
  ready.reserve(ready.size() + 1);  // before the command buffer ends, because it may throw
  vulkan::HostBarrier(open);
  const VkResult ended = vulkan::vk().EndCommandBuffer(open);
  if (ended && ended != VK_ERROR_DEVICE_LOST) LoseEncodedWork();
  VkCommandBuffer commands = std::exchange(open, nullptr);
  if (keel_rc rc = device->Check(ended, "vkEndCommandBuffer")) return rc;
  Append(commands);
  return KEEL_OK;
}

void keel_queue_s::Append(VkCommandBuffer commands) {
  auto info = vulkan::Typed<VkCommandBufferSubmitInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO);
  info.commandBuffer = commands;
  ready.push_back(info);
}

void keel_queue_s::Cut() {
  cuts.push_back(ready.size());
  launches = 0;
}
