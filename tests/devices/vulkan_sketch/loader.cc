// loader.cc: libvulkan is not linked: where there is none, the plugin loads and says why it has no devices.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../counts.h"
#include "vulkan.h"

namespace sketch {
namespace {

VKAPI_ATTR VkBool32 VKAPI_CALL Report(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                      const VkDebugUtilsMessengerCallbackDataEXT* message, void*) {
  count_add(COUNT_VALIDATION, 1);
  std::fprintf(stderr, "vulkan-sketch: validation: %s\n", message->pMessage);
  return VK_FALSE;
}

struct Instance {
  VkApplicationInfo app = Typed<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  VkDebugUtilsMessengerCreateInfoEXT messages =
      Typed<VkDebugUtilsMessengerCreateInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  VkValidationFeaturesEXT features =
      Typed<VkValidationFeaturesEXT>(VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT);
  VkInstanceCreateInfo info = Typed<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  const char* layer = "VK_LAYER_KHRONOS_validation";
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  VkValidationFeatureEnableEXT order = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;

  Instance() {
    app.apiVersion = VK_API_VERSION_1_3;
    info.pApplicationInfo = &app;
  }
  void Validate() {
    messages.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messages.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    messages.pfnUserCallback = Report;
    features.pNext = &messages;
    features.enabledValidationFeatureCount = 1;
    features.pEnabledValidationFeatures = &order;
    info.pNext = &features;
    info.enabledLayerCount = info.enabledExtensionCount = 1;
    info.ppEnabledLayerNames = &layer;
    info.ppEnabledExtensionNames = &extension;
  }
  // From here on, after the instance is there, messages come through an object of their own.
  void Listen(PFN_vkGetInstanceProcAddr find, VkInstance instance) {
    auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        find(instance, "vkCreateDebugUtilsMessengerEXT"));
    VkDebugUtilsMessengerEXT listener;
    if (create) create(instance, &messages, nullptr, &listener);
  }
};

bool CanRun(const Vulkan& vk, VkPhysicalDevice device) {
  VkPhysicalDeviceProperties properties;
  vk.GetPhysicalDeviceProperties(device, &properties);
  if (properties.apiVersion < VK_API_VERSION_1_3) return false;
  auto v12 = Typed<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  auto all = Typed<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  all.pNext = &v12;
  vk.GetPhysicalDeviceFeatures2(device, &all);
  return all.features.shaderInt64 && v12.bufferDeviceAddress && v12.scalarBlockLayout;
}

std::string Open(Vulkan* vk) {
  const char* named = std::getenv("VULKAN_SKETCH_LIBRARY");
  void* library = dlopen(named ? named : "libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  auto find = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (!find) return "libvulkan has no vkGetInstanceProcAddr";
  auto create = reinterpret_cast<PFN_vkCreateInstance>(find(nullptr, "vkCreateInstance"));
  Instance wanted;
  const bool validates = std::getenv("VULKAN_SKETCH_VALIDATE") != nullptr;
  if (validates) wanted.Validate();
  if (VkResult result = create(&wanted.info, nullptr, &vk->instance))
    return "vkCreateInstance gave " + std::to_string(result);
  if (validates) wanted.Listen(find, vk->instance);
#define SKETCH_FUNCTION(name)                                                \
  vk->name = reinterpret_cast<PFN_vk##name>(find(vk->instance, "vk" #name)); \
  if (!vk->name) return "this libvulkan has no vk" #name ": Vulkan 1.3 is needed";
#include "functions.inc"
#undef SKETCH_FUNCTION
  uint32_t n = 0;
  vk->EnumeratePhysicalDevices(vk->instance, &n, nullptr);
  std::vector<VkPhysicalDevice> found(n);
  vk->EnumeratePhysicalDevices(vk->instance, &n, found.data());
  for (VkPhysicalDevice device : found)
    if (CanRun(*vk, device)) vk->devices.push_back(device);
  return vk->devices.empty() ? "no driver has Vulkan 1.3 with 64-bit integers and device addresses" : "";
}

}  // namespace

const Vulkan& vulkan() {
  static const Vulkan* const loaded = [] {
    auto* vk = new Vulkan;  // for as long as the process: drivers have threads of their own
    vk->why = Open(vk);
    return vk;
  }();
  return *loaded;
}

keel_rc Check(const keel_host* host, VkResult result, const char* call) {
  if (result >= 0) return KEEL_OK;  // success, or a state such as VK_TIMEOUT
  bool full = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
  std::string function(call, std::strcspn(call, "("));
  return host->fail(full ? KEEL_OOM : KEEL_UNAVAILABLE,
                    (function + " gave " + std::to_string(result)).c_str());
}

}  // namespace sketch
