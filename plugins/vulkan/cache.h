// cache.h: the pipeline cache on disk: one file for a device of a driver, in settings().cache.
#ifndef KEEL_PLUGINS_VULKAN_CACHE_H
#define KEEL_PLUGINS_VULKAN_CACHE_H
#include "device.h"

namespace vulkan {

// The data for vkCreatePipelineCache; empty: none.
std::string ReadCache(keel_dev d);
// Writes the file, whole or not at all. Failures are ignored: the cache only saves time.
void WriteCache(keel_dev d) noexcept;
// Writes the files of all open devices when the process exits.
void WriteCacheAtExit(keel_dev d);
void ForgetCacheAtExit(keel_dev d);

inline constexpr uint64_t kMostCacheBytes = uint64_t{64} << 20;
inline constexpr uint32_t kPipelinesBetweenWrites = 32;

}  // namespace vulkan
#endif
