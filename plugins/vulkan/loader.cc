// loader.cc: opens libvulkan and creates the instance. The plugin loads without libvulkan; `keel doctor` then
// shows Api::why.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "choice.h"
#include "sdk/plugin/choice.h"
#include "sdk/plugin/disk_cache.h"

namespace vulkan {
namespace {

// A call with an error is not passed to the driver.
VKAPI_ATTR VkBool32 VKAPI_CALL Report(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                      VkDebugUtilsMessageTypeFlagsEXT,
                                      const VkDebugUtilsMessengerCallbackDataEXT* message, void*) {
  Complain("validation", message->pMessage);
  return severity == VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
}

struct Wanted {
  VkApplicationInfo app = Typed<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  VkDebugUtilsMessengerCreateInfoEXT messages =
      Typed<VkDebugUtilsMessengerCreateInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  VkValidationFeaturesEXT features =
      Typed<VkValidationFeaturesEXT>(VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT);
  VkInstanceCreateInfo info = Typed<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  const char* layer = "VK_LAYER_KHRONOS_validation";
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  VkValidationFeatureEnableEXT order = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;

  Wanted() {
    app.pApplicationName = "keel";
    app.apiVersion = VK_API_VERSION_1_3;
    info.pApplicationInfo = &app;
  }
  void Validate() {
    messages.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    // With addresses to check, the layer warns that it is slow and turns features on.
    if (!settings().gpu_assisted) messages.messageSeverity |= VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
    messages.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    messages.pfnUserCallback = Report;
    if (settings().gpu_assisted) order = VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT;
    features.pNext = &messages;
    features.enabledValidationFeatureCount = 1;
    features.pEnabledValidationFeatures = &order;
    info.pNext = &features;
    info.enabledLayerCount = info.enabledExtensionCount = 1;
    info.ppEnabledLayerNames = &layer;
    info.ppEnabledExtensionNames = &extension;
  }
  void Listen(PFN_vkGetInstanceProcAddr find, VkInstance instance) {
    auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        find(instance, "vkCreateDebugUtilsMessengerEXT"));
    VkDebugUtilsMessengerEXT listener;
    if (create) create(instance, &messages, nullptr, &listener);
  }
};

// The meaning of the results of vkCreateInstance that have a remedy.
std::string WhyNoInstance(VkResult result) {
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    return "libvulkan found no driver (vkCreateInstance gave -9); install the GPU's Vulkan driver, or "
           "mesa-vulkan-drivers for the processor";
  if (result == VK_ERROR_LAYER_NOT_PRESENT)
    return "KEEL_VULKAN_VALIDATE is set but VK_LAYER_KHRONOS_validation is not installed; install "
           "vulkan-validationlayers";
  return "vkCreateInstance gave " + std::to_string(result);
}

std::string Open(Api* api) {
  const std::string& named = settings().library;
  void* library = dlopen(named.empty() ? "libvulkan.so.1" : named.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::string("no Vulkan loader: ") + dlerror() + "; install libvulkan1";
  auto find = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (!find) return "the library " + named + " has no vkGetInstanceProcAddr: it is no Vulkan loader";
  auto create = reinterpret_cast<PFN_vkCreateInstance>(find(nullptr, "vkCreateInstance"));
  Wanted wanted;
  if (settings().validate) wanted.Validate();
  if (VkResult result = create(&wanted.info, nullptr, &api->instance)) return WhyNoInstance(result);
  if (settings().validate) wanted.Listen(find, api->instance);
  api->find = find;
#define VULKAN_FUNCTION(name)                                                  \
  api->name = reinterpret_cast<PFN_vk##name>(find(api->instance, "vk" #name)); \
  if (!api->name) return "libvulkan has no vk" #name "; expected Vulkan 1.3 or newer";
#include "functions.inc"
#undef VULKAN_FUNCTION
  return ListDevices(api);
}

}  // namespace

const Settings& settings() {
  using keel::plugin::is_set, keel::plugin::variable;
  static const Settings& read = *new Settings([] {
    Settings s;
    s.library = variable("KEEL_VULKAN_LIBRARY");
    s.devices = variable("KEEL_VULKAN_DEVICES");
    s.cache = variable("KEEL_VULKAN_CACHE") == "0" ? "" : keel::plugin::cache_folder();
    s.plant = variable("KEEL_VULKAN_PLANT");
#define VULKAN_SWITCH(name, VARIABLE) s.name = is_set("KEEL_VULKAN_" #VARIABLE);
#include "switches.inc"
#undef VULKAN_SWITCH
    s.gpu_assisted = variable("KEEL_VULKAN_VALIDATE") == "gpu";
    s.fences |= s.gpu_assisted;
    return s;
  }());
  return read;
}

void Complain(const char* source, const char* text) {
  std::fprintf(stderr, "keel-vulkan: %s: %s\n", source, text);
}

// Never destroyed: drivers have threads of their own at exit.
const Api& vk() {
  static const Api* const loaded = [] {
    auto* api = new Api;
    api->why = Open(api);
    return api;
  }();
  return *loaded;
}

}  // namespace vulkan
