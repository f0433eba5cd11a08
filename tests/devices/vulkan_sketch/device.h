// device.h: an opened device, its queues, and the functions of the other files.
#ifndef KEEL_TESTS_DEVICES_VULKAN_DEVICE_H
#define KEEL_TESTS_DEVICES_VULKAN_DEVICE_H
#include <array>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "../counts.h"
#include "hazards.h"
#include "vulkan.h"

namespace sketch {

enum Shader { kElementwise, kMatmul, kReduce, kGather, kShaders };
inline constexpr uint32_t kPushBytes = 128;  // every driver has this many

struct Segment {
  VkBuffer buffer = nullptr;
  VkDeviceMemory memory = nullptr;
};

}  // namespace sketch

struct keel_dev_s {
  const keel_host* host = nullptr;
  VkPhysicalDevice physical = nullptr;
  VkDevice device = nullptr;
  VkQueue queue = nullptr;  // one: the queues of Keel share it
  uint32_t family = 0;
  std::array<uint32_t, 4> memory_types{};  // by KEEL_SEGMENT_
  VkPipelineLayout layout = nullptr;
  std::array<VkShaderModule, sketch::kShaders> shaders{};
  std::mutex submitting, compiling;
  std::map<std::pair<sketch::Shader, uint32_t>, VkPipeline> pipelines;  // by shader and its constant OP

  keel_rc Pipeline(sketch::Shader shader, uint32_t op, VkPipeline* out);
};

struct keel_queue_s {
  struct Batch {
    VkCommandBuffer commands;
    uint64_t ticket;
  };
  keel_dev device = nullptr;
  VkSemaphore timeline = nullptr;  // counts tickets
  VkCommandPool pool = nullptr;
  uint64_t submitted = 0;
  VkCommandBuffer open = nullptr;  // being recorded
  std::vector<Batch> flying;
  std::vector<VkCommandBuffer> spare;
  std::vector<VkSemaphoreSubmitInfo> waits;  // of the next batch
  sketch::Hazards hazards;                   // of copies and fills
  bool launched = false;                     // since the last barrier
  uint32_t last_barrier = 0;                 // is before the launch after this one (keel_call.number)

  // A command buffer to record in, after a barrier if the launch, or a copy or fill of these ranges, needs
  // it.
  keel_rc Record(const keel_call* call, VkCommandBuffer* out);
  keel_rc Record(const sketch::Range& reads, const sketch::Range& writes, VkCommandBuffer* out);

 private:
  keel_rc Begin();
  void Barrier();
};

namespace sketch {

keel_rc CompileShaders(keel_dev);  // shaders.cc
void CloseShaders(keel_dev);
keel_rc SegmentAlloc(keel_dev, uint32_t kind, uint64_t bytes, keel_segment* out);  // memory.cc
void SegmentFree(keel_dev, const keel_segment*);
keel_rc ChooseMemory(keel_dev);
keel_rc QueueOpen(keel_dev, uint32_t kind, keel_queue* out);  // queue.cc
void QueueClose(keel_queue);
keel_rc Copy(keel_queue, const keel_segment* to, uint64_t to_offset, const keel_segment* from,
             uint64_t from_offset, uint64_t bytes);
keel_rc Fill(keel_queue, const keel_segment* to, uint64_t offset, uint64_t bytes, uint32_t value);
keel_rc Submit(keel_queue, uint64_t* ticket);
keel_rc QueueWait(keel_queue, keel_queue other, uint64_t ticket);
keel_rc HostWait(keel_queue, uint64_t ticket, uint64_t timeout);
keel_rc Query(keel_queue, uint64_t* done);
const std::vector<keel_impl>& Impls();  // launch.cc

}  // namespace sketch
#endif
