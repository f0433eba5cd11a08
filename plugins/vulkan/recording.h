// recording.h: a recorded list of launches: command buffers, one for each part of a batch. Parameters of
// launches are in memory (launch.h); a replay first rewrites the addresses in them on the device, from its
// table.
#ifndef KEEL_PLUGINS_VULKAN_RECORDING_H
#define KEEL_PLUGINS_VULKAN_RECORDING_H
#include "queue.h"

namespace vulkan {

// At `where` the replay writes base + table[slot]. Layout of shaders/relocate.comp.
struct Relocation {
  uint64_t where, base;
  uint32_t slot, reserved;
};

keel_rc RecordBegin(keel_queue q, const uint64_t* table, uint32_t n);
keel_rc RecordEnd(keel_queue q, keel_recording* out);
// The command buffer for the next launch. begun: it is a new one, and begins with a barrier.
keel_rc RecordingBuffer(keel_queue q, VkCommandBuffer* out, bool* begun);
keel_rc Replay(keel_queue q, keel_recording recording, const uint64_t* table, uint32_t n);
void RecordingFree(keel_dev d, keel_recording recording);

}  // namespace vulkan

struct keel_recording_s {
  VkCommandPool pool = nullptr;
  std::vector<VkCommandBuffer> parts;  // the last one is being recorded
  uint32_t launches = 0;               // in the last part
  std::vector<const char*> ops;
  std::vector<uint64_t> table;  // of record_begin
  std::vector<vulkan::Relocation> relocations;
  keel_segment memory{};  // the parameters of relocate.comp, the table of the replay, the relocations
  VkPipeline relocate = nullptr;
};
#endif
