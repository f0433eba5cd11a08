// disguise.cc: a device looks like another one. DRIVER_HIDE=NAME,NAME hides features; "device" hides all
// devices, "compute" the compute queues. DRIVER_DISCRETE=1: a discrete GPU, with a second queue and memory
// types 0: not for buffers, 1: of the device, 2: of the host, 3: of the host, cached.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "driver.h"

namespace driver {
namespace {

std::mutex queues;  // both are the driver's only one

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}
bool Hides(const char* name) {
  static const std::string all = "," + Variable("DRIVER_HIDE") + ",";
  return all.find("," + std::string(name) + ",") != std::string::npos;
}
bool IsIdle() {
  static const bool is = !Variable("DRIVER_IDLE").empty();
  return is;
}
bool IsDiscrete() {
  static const bool is = !Variable("DRIVER_DISCRETE").empty();
  return is;
}

// DRIVER_PLANT: "race" copies twice without a barrier, "free" destroys the destination of the first copy.
bool Plants(const char* fault) {
  static const std::string planted = Variable("DRIVER_PLANT");
  return planted == fault;
}
std::atomic<bool> freed;
std::atomic<VkDevice> made;

VkResult VKAPI_CALL EnumeratePhysicalDevices(VkInstance instance, uint32_t* n, VkPhysicalDevice* out) {
  if (Hides("device")) return *n = 0, VK_SUCCESS;
  return below.EnumeratePhysicalDevices(instance, n, out);
}

void VKAPI_CALL GetPhysicalDeviceFeatures2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* all) {
  below.GetPhysicalDeviceFeatures2(device, all);
#define HIDE(structure, feature) \
  if (Hides(#feature)) (structure).feature = VK_FALSE;
  HIDE(all->features, shaderInt64)
  HIDE(all->features, shaderInt16)
  HIDE(all->features, shaderFloat64)
  for (auto* next = static_cast<VkBaseOutStructure*>(all->pNext); next; next = next->pNext) {
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES) {
      HIDE(*reinterpret_cast<VkPhysicalDeviceVulkan11Features*>(next), storageBuffer16BitAccess)
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
      auto& f = *reinterpret_cast<VkPhysicalDeviceVulkan12Features*>(next);
      HIDE(f, storageBuffer8BitAccess)
      HIDE(f, shaderFloat16)
      HIDE(f, shaderInt8)
      HIDE(f, bufferDeviceAddress)
      HIDE(f, timelineSemaphore)
      HIDE(f, scalarBlockLayout)
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES) {
      auto& f = *reinterpret_cast<VkPhysicalDeviceVulkan13Features*>(next);
      HIDE(f, synchronization2)
      HIDE(f, maintenance4)
    }
  }
#undef HIDE
}

void VKAPI_CALL GetPhysicalDeviceProperties(VkPhysicalDevice device, VkPhysicalDeviceProperties* out) {
  below.GetPhysicalDeviceProperties(device, out);
  if (Hides("1.3")) out->apiVersion = VK_API_VERSION_1_2;
}

void VKAPI_CALL GetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice device, uint32_t* n,
                                                       VkQueueFamilyProperties* out) {
  below.GetPhysicalDeviceQueueFamilyProperties(device, n, out);
  for (uint32_t i = 0; out && i < *n; i++) {
    if (Hides("compute")) out[i].queueFlags &= ~static_cast<VkQueueFlags>(VK_QUEUE_COMPUTE_BIT);
    if (IsDiscrete()) out[i].queueCount = 2;
  }
}

void VKAPI_CALL GetPhysicalDeviceMemoryProperties(VkPhysicalDevice device,
                                                  VkPhysicalDeviceMemoryProperties* out) {
  below.GetPhysicalDeviceMemoryProperties(device, out);
  if (!IsDiscrete()) return;
  const VkMemoryPropertyFlags host =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags types[] = {
      VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
      VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, host, host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT};
  out->memoryTypeCount = 4;
  for (int i = 0; i < 4; i++) out->memoryTypes[i] = {types[i], 0};
}

void VKAPI_CALL GetBufferMemoryRequirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements* out) {
  below.GetBufferMemoryRequirements(device, buffer, out);
  if (IsDiscrete()) out->memoryTypeBits = 0b1110;
}

std::mutex lists;
std::vector<VkDeviceMemory> unmappable;

VkResult VKAPI_CALL AllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info,
                                   const VkAllocationCallbacks* callbacks, VkDeviceMemory* out) {
  if (!IsDiscrete()) return below.AllocateMemory(device, info, callbacks, out);
  if (info->memoryTypeIndex == 0) return VK_ERROR_UNKNOWN;
  VkMemoryAllocateInfo first = *info;
  first.memoryTypeIndex = 0;
  const VkResult result = below.AllocateMemory(device, &first, callbacks, out);
  std::lock_guard lock(lists);
  if (!result && info->memoryTypeIndex == 1) unmappable.push_back(*out);
  return result;
}

void VKAPI_CALL FreeMemory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* callbacks) {
  {
    std::lock_guard lock(lists);
    std::erase(unmappable, memory);
  }
  below.FreeMemory(device, memory, callbacks);
}

VkResult VKAPI_CALL MapMemory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size,
                              VkMemoryMapFlags flags, void** out) {
  std::lock_guard lock(lists);
  for (VkDeviceMemory each : unmappable)
    if (each == memory) return VK_ERROR_MEMORY_MAP_FAILED;
  return below.MapMemory(device, memory, offset, size, flags, out);
}

VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                 const VkAllocationCallbacks* callbacks, VkDevice* out) {
  struct Made {
    VkDevice* out;
    ~Made() { made = *out; }
  } keep{out};
  if (!IsDiscrete()) return below.CreateDevice(physical, info, callbacks, out);
  VkDeviceQueueCreateInfo one = info->pQueueCreateInfos[0];
  one.queueCount = 1;
  VkDeviceCreateInfo with = *info;
  with.queueCreateInfoCount = 1;
  with.pQueueCreateInfos = &one;
  return below.CreateDevice(physical, &with, callbacks, out);
}

void VKAPI_CALL GetDeviceQueue(VkDevice device, uint32_t family, uint32_t index, VkQueue* out) {
  below.GetDeviceQueue(device, family, IsDiscrete() ? 0 : index, out);
}

std::atomic<uint64_t> parts, cache_bytes, copied;

VkResult VKAPI_CALL CreatePipelineCache(VkDevice device, const VkPipelineCacheCreateInfo* info,
                                        const VkAllocationCallbacks* callbacks, VkPipelineCache* out) {
  cache_bytes = info->initialDataSize;
  return below.CreatePipelineCache(device, info, callbacks, out);
}

void VKAPI_CALL CmdCopyBuffer(VkCommandBuffer commands, VkBuffer from, VkBuffer to, uint32_t n,
                              const VkBufferCopy* ranges) {
  for (uint32_t i = 0; i < n; i++) copied += ranges[i].size;
  if (Plants("free") && !freed.exchange(true)) below.DestroyBuffer(made, to, nullptr);
  for (int i = Plants("race") ? 2 : 1; i > 0; i--) below.CmdCopyBuffer(commands, from, to, n, ranges);
}

VkResult VKAPI_CALL QueueSubmit2(VkQueue queue, uint32_t n, const VkSubmitInfo2* batches, VkFence fence) {
  parts += n;
  std::lock_guard lock(queues);
  if (!IsIdle()) return below.QueueSubmit2(queue, n, batches, fence);
  std::vector<VkSubmitInfo2> none(batches, batches + n);
  for (VkSubmitInfo2& batch : none) batch.commandBufferInfoCount = 0;
  return below.QueueSubmit2(queue, n, none.data(), fence);
}

struct Replacement {
  const char* name;
  PFN_vkVoidFunction function;
};
#define REPLACE(name) \
  { "vk" #name, reinterpret_cast<PFN_vkVoidFunction>(&name) }
const Replacement kAll[] = {REPLACE(EnumeratePhysicalDevices),
                            REPLACE(GetPhysicalDeviceFeatures2),
                            REPLACE(GetPhysicalDeviceProperties),
                            REPLACE(GetPhysicalDeviceQueueFamilyProperties),
                            REPLACE(GetPhysicalDeviceMemoryProperties),
                            REPLACE(GetBufferMemoryRequirements),
                            REPLACE(AllocateMemory),
                            REPLACE(FreeMemory),
                            REPLACE(MapMemory),
                            REPLACE(CreateDevice),
                            REPLACE(GetDeviceQueue),
                            REPLACE(QueueSubmit2),
                            REPLACE(CmdCopyBuffer),
                            REPLACE(CreatePipelineCache)};

}  // namespace

PFN_vkVoidFunction Disguise(const char* name) {
  for (const Replacement& each : kAll)
    if (!std::strcmp(each.name, name)) return each.function;
  return nullptr;
}

void WaitForQueues(VkDevice device) {
  std::lock_guard lock(queues);
  if (device && below.DeviceWaitIdle) below.DeviceWaitIdle(device);
}

}  // namespace driver

// Parts of batches and bytes of copies so far; bytes of the pipeline cache that the last device began with.
extern "C" __attribute__((visibility("default"))) uint64_t driver_parts() { return driver::parts; }
extern "C" __attribute__((visibility("default"))) uint64_t driver_copied() { return driver::copied; }
extern "C" __attribute__((visibility("default"))) uint64_t driver_cache_bytes() {
  return driver::cache_bytes;
}
