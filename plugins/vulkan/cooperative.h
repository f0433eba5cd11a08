// cooperative.h: VK_KHR_cooperative_matrix: products of small matrices by a subgroup, on hardware for them.
// Headers of Vulkan before 1.3.255 lack it.
#ifndef KEEL_PLUGINS_VULKAN_COOPERATIVE_H
#define KEEL_PLUGINS_VULKAN_COOPERATIVE_H
#include "capabilities.h"

#ifndef VK_KHR_cooperative_matrix
inline constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
inline constexpr auto VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR =
    static_cast<VkStructureType>(1000506001);
inline constexpr int32_t VK_COMPONENT_TYPE_FLOAT16_KHR = 0, VK_COMPONENT_TYPE_FLOAT32_KHR = 1,
                         VK_SCOPE_SUBGROUP_KHR = 3;
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
};
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  uint32_t MSize, NSize, KSize;
  int32_t AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  int32_t scope;
};
using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
    VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, VkCooperativeMatrixPropertiesKHR*);
#endif

namespace vulkan {

inline constexpr const char* kCooperativeExtension = "VK_KHR_cooperative_matrix";

// Sizes of the matrices, and threads of a subgroup. rows 0: none.
struct Matrices {
  uint32_t rows = 0, columns = 0, inner = 0, subgroup = 0;
};

// The largest matrices of f16 with sums in f32 that shaders/cooperative.glsl can use.
Matrices FindMatrices(VkPhysicalDevice device, const Properties& properties);

}  // namespace vulkan
#endif
