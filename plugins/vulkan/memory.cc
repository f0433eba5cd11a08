// memory.cc: a segment is a buffer with memory of its own and a device address.
#include <memory>

#include "device.h"

namespace vulkan {
namespace {

constexpr VkMemoryPropertyFlags kSeen =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

// The first type of the allowed ones that has all of these flags and none of those.
bool Find(const VkPhysicalDeviceMemoryProperties& all, uint32_t allowed, VkMemoryPropertyFlags flags,
          VkMemoryPropertyFlags without, uint32_t* out) {
  for (uint32_t i = 0; i < all.memoryTypeCount; i++) {
    const VkMemoryPropertyFlags has = all.memoryTypes[i].propertyFlags;
    if ((allowed >> i & 1) && (has & flags) == flags && !(has & without)) return *out = i, true;
  }
  return false;
}

keel_rc CreateBuffer(keel_dev d, uint64_t bytes, VkBuffer* out) {
  const uint32_t families[] = {d->families.compute, d->families.transfer};
  auto buffer = Typed<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  buffer.size = bytes;
  buffer.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  if (families[0] != families[1]) {
    buffer.sharingMode = VK_SHARING_MODE_CONCURRENT;
    buffer.queueFamilyIndexCount = 2;
    buffer.pQueueFamilyIndices = families;
  }
  VULKAN_TRY(d, CreateBuffer, d->device, &buffer, nullptr, out);
  return KEEL_OK;
}

// All buffers have the same usage, so they may have the same types of memory.
keel_rc AllowedTypes(keel_dev d, uint32_t* out) {
  VkBuffer probe = nullptr;
  if (keel_rc rc = CreateBuffer(d, 256, &probe)) return rc;
  VkMemoryRequirements needs;
  vk().GetBufferMemoryRequirements(d->device, probe, &needs);
  vk().DestroyBuffer(d->device, probe, nullptr);
  *out = needs.memoryTypeBits;
  return KEEL_OK;
}

keel_rc Allocate(keel_dev d, uint32_t kind, uint64_t bytes, Segment* s) {
  if (keel_rc rc = CreateBuffer(d, bytes, &s->buffer)) return rc;
  VkMemoryRequirements needs;
  vk().GetBufferMemoryRequirements(d->device, s->buffer, &needs);
  auto flags = Typed<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  auto memory = Typed<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  memory.pNext = &flags;
  memory.allocationSize = needs.size;
  memory.memoryTypeIndex = d->memory_types[kind];
  VULKAN_TRY(d, AllocateMemory, d->device, &memory, nullptr, &s->memory);
  VULKAN_TRY(d, BindBufferMemory, d->device, s->buffer, s->memory, 0);
  return KEEL_OK;
}

void Free(keel_dev d, const Segment& s) {
  vk().DestroyBuffer(d->device, s.buffer, nullptr);
  vk().FreeMemory(d->device, s.memory, nullptr);
}

// Device memory that the host reaches is mapped, for small copies by the host (Copy). The host can do without
// the mapping.
keel_rc Map(keel_dev d, uint32_t kind, Segment* s) {
  const VkMemoryPropertyFlags flags = d->memory_flags[kind];
  if ((flags & kSeen) != kSeen || (kind == KEEL_SEGMENT_DEVICE && settings().staging)) return KEEL_OK;
  void* host = nullptr;
  const VkResult mapped = vk().MapMemory(d->device, s->memory, 0, VK_WHOLE_SIZE, 0, &host);
  if (mapped == VK_ERROR_MEMORY_MAP_FAILED && kind == KEEL_SEGMENT_DEVICE) return KEEL_OK;
  if (keel_rc rc = d->Check(mapped, "vkMapMemory")) return rc;
  s->host = static_cast<char*>(host);
  s->host_reads = flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  return KEEL_OK;
}

}  // namespace

keel_rc ChooseMemory(keel_dev d) {
  uint32_t allowed = 0;
  if (keel_rc rc = AllowedTypes(d, &allowed)) return rc;
  VkPhysicalDeviceMemoryProperties all;
  vk().GetPhysicalDeviceMemoryProperties(d->physical, &all);
  const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  const bool direct = !settings().staging;
  auto find = [&](VkMemoryPropertyFlags flags, VkMemoryPropertyFlags without, uint32_t* out) {
    return Find(all, allowed, flags, without, out);
  };
  auto& [device, staging, readback, shared] = d->memory_types;
  const bool found = (find(local, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, &device) || find(local, 0, &device)) &&
                     (find(kSeen, local, &staging) || find(kSeen, 0, &staging)) &&
                     ((direct && find(kSeen | local, 0, &shared)) || find(kSeen, local, &shared) ||
                      find(kSeen, 0, &shared)) &&
                     (find(kSeen | cached, local, &readback) || find(kSeen | cached, 0, &readback) ||
                      find(kSeen, 0, &readback));
  if (!found)
    return d->host->fail(KEEL_UNAVAILABLE, "the driver has no host-visible, host-coherent memory type");
  // The host reads staging memory again when it copies to device memory.
  if (direct && (all.memoryTypes[device].propertyFlags & kSeen) == kSeen) staging = readback;
  for (size_t kind = 0; kind < d->memory_types.size(); kind++)
    d->memory_flags[kind] = all.memoryTypes[d->memory_types[kind]].propertyFlags;
  return KEEL_OK;
}

keel_rc SegmentAlloc(keel_dev d, uint32_t kind, uint64_t bytes, keel_segment* out) {
  if (keel_rc rc = d->CheckLost()) return rc;
  auto s = std::make_unique<Segment>();
  if (keel_rc rc = Allocate(d, kind, bytes, s.get())) return Free(d, *s), rc;
  auto address = Typed<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
  address.buffer = s->buffer;
  if (keel_rc rc = Map(d, kind, s.get())) return Free(d, *s), rc;
  void* host = kind == KEEL_SEGMENT_DEVICE ? nullptr : s->host;
  *out = {s.get(), vk().GetBufferDeviceAddress(d->device, &address), host, bytes, kind, 0};
  s.release();
  return KEEL_OK;
}

void SegmentFree(keel_dev d, const keel_segment* segment) {
  std::unique_ptr<Segment> s(static_cast<Segment*>(segment->handle));
  Free(d, *s);
}

}  // namespace vulkan
