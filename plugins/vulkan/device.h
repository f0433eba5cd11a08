// device.h: an opened device and its memory; queues are in queue.h.
#ifndef KEEL_PLUGINS_VULKAN_DEVICE_H
#define KEEL_PLUGINS_VULKAN_DEVICE_H
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "choice.h"

namespace vulkan {

struct Segment {
  VkBuffer buffer = nullptr;
  VkDeviceMemory memory = nullptr;
  char* host = nullptr;     // the same bytes for the host; NULL: it cannot reach them
  bool host_reads = false;  // fast: the memory is cached
};

// A queue of the driver; queues of Keel may share it.
struct DriverQueue {
  VkQueue queue = nullptr;
  std::mutex mutex;  // of vkQueueSubmit2
};

inline constexpr uint32_t kPushBytes = 24;  // of push constants (shaders/common.glsl)

struct Code {  // SPIR-V; static data
  const uint32_t* words = nullptr;
  size_t bytes = 0;
  uint32_t subgroup = 0;  // threads that each subgroup must have; 0: the driver chooses
};
using Constants = std::vector<uint32_t>;  // specialization constants 0, 1, ...
// keel_host.node_hash, and two words of variants that the generator defines.
using GeneratedKey = std::array<uint64_t, 3>;
using Generate = std::function<keel_rc(std::vector<uint32_t>* words)>;

}  // namespace vulkan

struct keel_dev_s {
  const keel_host* host = nullptr;
  uint32_t index = 0;
  VkPhysicalDevice physical = nullptr;
  VkDevice device = nullptr;
  vulkan::Families families;
  vulkan::Optional has;
  bool is_processor =
      false;  // its threads share vector registers and caches of a host (shaders/product.comp)
  vulkan::DriverQueue compute, own_transfer;
  vulkan::DriverQueue* transfer = &compute;
  std::array<uint32_t, 4> memory_types{};               // by KEEL_SEGMENT_
  std::array<VkMemoryPropertyFlags, 4> memory_flags{};  // of these types
  uint64_t nanoseconds = 0;                             // of a tick of the clock, times 65536
  std::atomic<bool> lost = false;
  std::mutex lost_mutex;
  std::string why_lost;  // guarded by lost_mutex
  std::mutex queues_mutex;
  std::vector<keel_queue> queues;
  VkPipelineLayout layout = nullptr;
  VkPipelineCache cache = nullptr;
  std::atomic<uint32_t> pipelines_made = 0;  // that the cache on disk may lack
  std::mutex compiling;
  std::map<std::pair<const uint32_t*, vulkan::Constants>, VkPipeline> pipelines;  // by embedded shader
  std::map<vulkan::GeneratedKey, VkPipeline> generated;

  // KEEL_OK, or a failure that names the Vulkan function. A lost device stays lost. Call it without the lock
  // of a queue, so that the message names the ops in flight.
  keel_rc Check(VkResult result, const char* function);
  keel_rc CheckLost();
  void Lose(const std::string& why);
  // The pipeline of a shader of shaders/ with these constants; made at first use.
  keel_rc Pipeline(vulkan::Code code, const vulkan::Constants& constants, VkPipeline* out);
  // The pipeline of SPIR-V that `make` generates unless there is one with this key.
  keel_rc GeneratedPipeline(const vulkan::GeneratedKey& key, const vulkan::Generate& make, VkPipeline* out);
};

#define VULKAN_TRY(dev, function, ...)                                                              \
  do {                                                                                              \
    if (keel_rc rc_ = (dev)->Check(vulkan::vk().function(__VA_ARGS__), "vk" #function)) return rc_; \
  } while (0)

namespace vulkan {

keel_rc DeviceOpen(const keel_host* host, uint32_t i, const keel_kv*, uint32_t, keel_dev* out);
void DeviceClose(keel_dev d);
std::string UnfinishedOps(keel_dev d);  // queue.cc: ops of batches in flight, the first ones first, or ""
keel_rc ChooseMemory(keel_dev d);       // memory.cc
keel_rc SegmentAlloc(keel_dev d, uint32_t kind, uint64_t bytes, keel_segment* out);
void SegmentFree(keel_dev d, const keel_segment* segment);
keel_rc PipelinesOpen(keel_dev d);  // pipelines.cc
void PipelinesClose(keel_dev d);

}  // namespace vulkan
#endif
