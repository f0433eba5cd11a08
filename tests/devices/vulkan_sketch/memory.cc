// memory.cc: a segment is a buffer with memory of its own; launches see its device address.
#include <memory>

#include "device.h"

namespace sketch {
namespace {

// The first type that has all of these flags.
bool Find(const VkPhysicalDeviceMemoryProperties& all, VkMemoryPropertyFlags flags, uint32_t* out) {
  for (uint32_t i = 0; i < all.memoryTypeCount; i++)
    if ((all.memoryTypes[i].propertyFlags & flags) == flags) return *out = i, true;
  return false;
}

keel_rc Allocate(keel_dev d, uint32_t kind, uint64_t bytes, Segment* s) {
  const Vulkan& vk = vulkan();
  auto buffer = Typed<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  buffer.size = bytes;
  buffer.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  SKETCH_TRY(d->host, vk.CreateBuffer(d->device, &buffer, nullptr, &s->buffer));
  VkMemoryRequirements needs;
  vk.GetBufferMemoryRequirements(d->device, s->buffer, &needs);
  auto flags = Typed<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  auto memory = Typed<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  memory.pNext = &flags;
  memory.allocationSize = needs.size;
  memory.memoryTypeIndex = d->memory_types[kind];
  SKETCH_TRY(d->host, vk.AllocateMemory(d->device, &memory, nullptr, &s->memory));
  SKETCH_TRY(d->host, vk.BindBufferMemory(d->device, s->buffer, s->memory, 0));
  return KEEL_OK;
}

void Free(keel_dev d, const Segment& s) {
  vulkan().DestroyBuffer(d->device, s.buffer, nullptr);
  vulkan().FreeMemory(d->device, s.memory, nullptr);
}

}  // namespace

keel_rc ChooseMemory(keel_dev d) {
  VkPhysicalDeviceMemoryProperties all;
  vulkan().GetPhysicalDeviceMemoryProperties(d->physical, &all);
  const VkMemoryPropertyFlags seen =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  auto& [device, staging, readback, shared] = d->memory_types;
  bool found =
      Find(all, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, &device) && Find(all, seen, &staging) &&
      Find(all, seen, &shared) &&
      (Find(all, seen | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, &readback) || Find(all, seen, &readback));
  return found ? KEEL_OK : d->host->fail(KEEL_UNAVAILABLE, "the driver has no memory that the host sees");
}

keel_rc SegmentAlloc(keel_dev d, uint32_t kind, uint64_t bytes, keel_segment* out) {
  auto s = std::make_unique<Segment>();
  if (keel_rc rc = Allocate(d, kind, bytes, s.get())) return Free(d, *s), rc;
  auto address = Typed<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
  address.buffer = s->buffer;
  void* host = nullptr;
  if (kind != KEEL_SEGMENT_DEVICE) {
    VkResult mapped = vulkan().MapMemory(d->device, s->memory, 0, VK_WHOLE_SIZE, 0, &host);
    if (keel_rc rc = Check(d->host, mapped, "vkMapMemory")) return Free(d, *s), rc;
  }
  *out = {s.get(), vulkan().GetBufferDeviceAddress(d->device, &address), host, bytes, kind, 0};
  s.release();
  count_add(COUNT_SEGMENTS, 1);
  return KEEL_OK;
}

void SegmentFree(keel_dev d, const keel_segment* segment) {
  std::unique_ptr<Segment> s(static_cast<Segment*>(segment->handle));
  Free(d, *s);
  count_add(COUNT_SEGMENTS, -1);
}

}  // namespace sketch
