// device.cc: opening and closing a device; errors of the driver.
#include "device.h"

#include <cmath>

keel_rc keel_dev_s::CheckLost() {
  if (!lost) return KEEL_OK;
  std::lock_guard lock(lost_mutex);
  const std::string text =
      "the device was lost earlier: " + why_lost + "; start a new process to use it again";
  return host->fail(KEEL_UNAVAILABLE, text.c_str());
}

void keel_dev_s::Lose(const std::string& why) {
  std::lock_guard lock(lost_mutex);
  if (why_lost.empty()) why_lost = why;
  lost = true;
}

keel_rc keel_dev_s::Check(VkResult result, const char* function) {
  if (result >= 0) return KEEL_OK;  // success, or a state such as VK_TIMEOUT
  const bool full = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
  std::string text = std::string(function) + " gave " + std::to_string(result);
  if (full) text += " (out of memory)";
  if (result == VK_ERROR_DEVICE_LOST) {
    text += " (device lost): a launch took longer than the driver allows, or wrote out of bounds";
    if (const std::string ops = vulkan::UnfinishedOps(this); !ops.empty()) text += "; it ran " + ops;
    Lose(text);
  }
  return host->fail(full ? KEEL_OOM : KEEL_UNAVAILABLE, text.c_str());
}

namespace vulkan {
namespace {

// The required features and those optional ones that the device has.
void Enable(const Optional& has, Features* f) {
  f->v13.synchronization2 = f->v13.maintenance4 = VK_TRUE;
  f->v12.timelineSemaphore = f->v12.bufferDeviceAddress = f->v12.scalarBlockLayout = VK_TRUE;
  f->v12.shaderFloat16 = has.f16;
  f->v12.storageBuffer8BitAccess = has.storage8;
  f->v12.shaderInt8 = has.i8;
  f->v11.storageBuffer16BitAccess = has.storage16;
  f->v12.vulkanMemoryModel = f->v12.vulkanMemoryModelDeviceScope = f->v13.subgroupSizeControl =
      f->v13.computeFullSubgroups = has.matrices.rows != 0;
  f->all.features.shaderInt64 = VK_TRUE;
  f->all.features.shaderInt16 = has.i16;
  f->all.features.shaderFloat64 = has.f64;
}

keel_rc CreateDevice(keel_dev d) {
  const Families& families = d->families;
  const float priorities[] = {1, 1};
  const bool one_family = families.transfer == families.compute;
  VkDeviceQueueCreateInfo queues[2];
  for (VkDeviceQueueCreateInfo& q : queues) {
    q = Typed<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
    q.queueCount = 1;
    q.pQueuePriorities = priorities;
  }
  queues[0].queueFamilyIndex = families.compute;
  queues[0].queueCount = one_family ? families.transfer_index + 1 : 1;
  queues[1].queueFamilyIndex = families.transfer;
  Features features;
  Enable(d->has, &features);
  auto info = Typed<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &features.all;
  info.queueCreateInfoCount = one_family ? 1 : 2;
  info.pQueueCreateInfos = queues;
  auto matrices = Typed<VkPhysicalDeviceCooperativeMatrixFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
  matrices.cooperativeMatrix = VK_TRUE;
  if (d->has.matrices.rows) {
    features.v13.pNext = &matrices;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &kCooperativeExtension;
  }
  VULKAN_TRY(d, CreateDevice, d->physical, &info, nullptr, &d->device);
  vk().GetDeviceQueue(d->device, families.compute, 0, &d->compute.queue);
  if (one_family && !families.transfer_index) return KEEL_OK;
  vk().GetDeviceQueue(d->device, families.transfer, families.transfer_index, &d->own_transfer.queue);
  d->transfer = &d->own_transfer;
  return KEEL_OK;
}

}  // namespace

keel_rc DeviceOpen(const keel_host* host, uint32_t i, const keel_kv*, uint32_t, keel_dev* out) {
  auto* d = new keel_dev_s;
  d->host = host;
  d->index = i;
  d->physical = vk().devices[i];
  d->families = ChooseFamilies(vk(), d->physical);
  d->has = OptionalFeatures(d->physical);
  VkPhysicalDeviceProperties properties;
  vk().GetPhysicalDeviceProperties(d->physical, &properties);
  d->is_processor = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU && !settings().tiles;
  d->nanoseconds = static_cast<uint64_t>(std::llround(properties.limits.timestampPeriod * 65536.0));
  keel_rc rc = CreateDevice(d);
  if (!rc) rc = ChooseMemory(d);
  if (!rc) rc = PipelinesOpen(d);
  if (rc) return DeviceClose(d), rc;
  *out = d;
  return KEEL_OK;
}

void DeviceClose(keel_dev d) {
  if (d->device) {
    PipelinesClose(d);
    vk().DestroyDevice(d->device, nullptr);
  }
  delete d;
}

}  // namespace vulkan
