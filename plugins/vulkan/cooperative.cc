// cooperative.cc: see cooperative.h.
#include "cooperative.h"

#include <string_view>

namespace vulkan {
namespace {

// The extension alone does not say it: lavapipe of 128 bits lists it, and lacks the feature.
bool HasFeature(VkPhysicalDevice device) {
  uint32_t n = 0;
  if (vk().EnumerateDeviceExtensionProperties(device, nullptr, &n, nullptr)) return false;
  std::vector<VkExtensionProperties> all(n);
  if (vk().EnumerateDeviceExtensionProperties(device, nullptr, &n, all.data())) return false;
  auto matrices = Typed<VkPhysicalDeviceCooperativeMatrixFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
  auto features = Typed<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  features.pNext = &matrices;
  for (const VkExtensionProperties& each : all)
    if (std::string_view(each.extensionName) == kCooperativeExtension)
      vk().GetPhysicalDeviceFeatures2(device, &features);
  return matrices.cooperativeMatrix;
}

// Threads of a subgroup, if pipelines can require this number and a work group has room for four; else 0.
uint32_t SubgroupSize(const Properties& p) {
  const bool fits = (p.v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                    p.v13.maxComputeWorkgroupSubgroups >= 4 &&
                    4 * p.v11.subgroupSize <= p.all.properties.limits.maxComputeWorkGroupInvocations;
  return fits ? p.v11.subgroupSize : 0;
}

std::vector<VkCooperativeMatrixPropertiesKHR> Kinds(VkPhysicalDevice device) {
  const auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(
      vk().find(vk().instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  uint32_t n = 0;
  if (!list || list(device, &n, nullptr)) return {};
  std::vector<VkCooperativeMatrixPropertiesKHR> all(
      n, Typed<VkCooperativeMatrixPropertiesKHR>(VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR));
  if (list(device, &n, all.data())) return {};
  return all;
}

bool Serves(const VkCooperativeMatrixPropertiesKHR& m) {
  return m.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && m.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
         m.CType == VK_COMPONENT_TYPE_FLOAT32_KHR && m.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
         m.scope == VK_SCOPE_SUBGROUP_KHR && 32 % m.MSize == 0 && 32 % m.NSize == 0 && 32 % m.KSize == 0;
}

}  // namespace

Matrices FindMatrices(VkPhysicalDevice device, const Properties& properties) {
  if (!KEEL_COOPERATIVE || settings().no_matrices || settings().no_subgroups || !HasFeature(device))
    return {};
  Matrices best = {.subgroup = SubgroupSize(properties)};
  if (!best.subgroup) return {};
  for (const auto& m : Kinds(device))
    if (Serves(m) && m.MSize * m.NSize * m.KSize > best.rows * best.columns * best.inner)
      best.rows = m.MSize, best.columns = m.NSize, best.inner = m.KSize;
  return best;
}

}  // namespace vulkan
