// queue.h: a queue of Keel. Commands are encoded in the open batch; submit passes it to the driver.
#ifndef KEEL_PLUGINS_VULKAN_QUEUE_H
#define KEEL_PLUGINS_VULKAN_QUEUE_H
#include <deque>
#include <span>

#include "device.h"
#include "verifier.h"

struct keel_queue_s {
  // Command buffers of one ticket. They are passed to the driver in parts of at most kMostLaunches launches,
  // because drivers end a part that takes too long.
  struct Batch {
    std::vector<VkCommandBuffer> buffers;  // of the pool, to be reused
    std::vector<const char*> ops;          // of its launches, for the message of a lost device
    uint64_t ticket = 0;
    VkFence fence = nullptr;  // fence mode; else NULL
  };
  keel_dev device = nullptr;
  vulkan::DriverQueue* driver = nullptr;
  VkSemaphore timeline = nullptr;  // its value is the last ticket that is done
  VkCommandPool pool = nullptr;
  VkQueryPool clock = nullptr;
  uint32_t next_clock = 0;
  std::atomic<uint64_t> submitted = 0;

  // The open batch: ended command buffers, and the current one.
  std::vector<VkCommandBufferSubmitInfo> ready;
  std::vector<size_t> cuts;  // parts begin at these indices of `ready`
  uint32_t launches = 0;     // in the last part
  VkCommandBuffer open = nullptr;
  Batch batch;
  std::vector<VkSemaphoreSubmitInfo> waits;
  std::vector<VkSubmitInfo2> parts;  // of Submit; its memory is reused
  std::vector<VkCommandBuffer> spare;

  std::mutex mutex;  // of the members below: host_wait and query run next to encoding
  std::deque<Batch> flying;
  std::vector<VkFence> spare_fences;
  uint64_t done = 0;     // the last ticket known to be done
  uint32_t waiters = 0;  // host_waits that use fences

  // Barriers. Copies and fills: by address ranges. Launches: by keel_call.depends.
  vulkan::Ranges transfers;   // since the last barrier
  bool launched = false;      // since the last barrier
  uint32_t last_barrier = 0;  // precedes the launch after this one (keel_call.number)
  vulkan::Ranges verified;    // of all commands since the last barrier; for the verifier only

  keel_recording recording = nullptr;  // between record_begin and record_end

  // The command buffer for a launch, or for a copy or fill, after a barrier if it needs one.
  keel_rc ForLaunch(const keel_call* call, const char* op, VkCommandBuffer* out);
  keel_rc ForTransfer(const vulkan::Range& reads, const vulkan::Range& writes, VkCommandBuffer* out);
  // The command buffer for a command that comes after all earlier ones.
  keel_rc ForAfterAll(VkCommandBuffer* out);
  void Barrier();
  keel_rc Begin();
  // Ends the open command buffer. If that fails, encoded work is gone, so the device is lost.
  keel_rc End();
  void Append(VkCommandBuffer commands);  // to `ready`
  void Cut();                             // the next command buffer begins another part
  bool KnowsDone(uint64_t ticket);
  bool IsEmpty() const { return !open && ready.empty(); }
  // Whether nothing is encoded that is not done, so that the host may do the next command itself.
  keel_rc FindIdle(bool* idle);

 private:
  keel_rc Recycle();
  void LoseEncodedWork();
  void Verify(const std::vector<vulkan::Range>& reads, const std::vector<vulkan::Range>& writes,
              const char* what);
  bool NeedsBarrier(const keel_call* call) const;
};

namespace vulkan {

keel_rc QueueOpen(keel_dev d, uint32_t kind, keel_queue* out);
void QueueClose(keel_queue q);
keel_rc Submit(keel_queue q, uint64_t* ticket);
keel_rc QueueWait(keel_queue q, keel_queue other, uint64_t ticket);
keel_rc HostWait(keel_queue q, uint64_t ticket, uint64_t timeout);
keel_rc Query(keel_queue q, uint64_t* done);
keel_rc Copy(keel_queue q, const keel_segment* to, uint64_t to_offset,
             const keel_segment* from,  // commands.cc
             uint64_t from_offset, uint64_t bytes);
keel_rc Fill(keel_queue q, const keel_segment* to, uint64_t offset, uint64_t bytes, uint32_t value);
keel_rc Timestamp(keel_queue q, const keel_segment* to, uint64_t offset);
// A barrier between all commands before and after it, in any command buffer.
void GlobalBarrier(VkCommandBuffer commands, VkPipelineStageFlags2 to = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                   VkAccessFlags2 access = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT);

// The last commands of a command buffer: results in host-visible memory become visible to the host.
void HostBarrier(VkCommandBuffer commands);
// A dispatch of a shader of the plugin itself.
void EncodeDispatch(keel_dev d, VkCommandBuffer commands, VkPipeline pipeline, std::span<const uint64_t> push,
                    uint32_t groups);

inline constexpr uint32_t kMostLaunches = 100;  // of a part of a batch
inline constexpr uint32_t kFirstLaunches =
    16;                                   // of the first part of a recording, so that the device begins early
inline constexpr uint32_t kClocks = 256;  // timestamps of a queue in flight
inline constexpr uint64_t kMostUpdate = 65536;      // bytes of vkCmdUpdateBuffer
inline constexpr uint64_t kMostByHost = 256 << 10;  // bytes of a copy by the host

}  // namespace vulkan
#endif
