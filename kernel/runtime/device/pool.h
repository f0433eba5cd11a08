// pool.h: the caching allocator for device and staging memory. It splits large segments into pieces and keeps
// freed pieces for reuse.
//
// Allocate returns an Allocation. Its block is in the list of all blocks of its segment, so that free
// neighbours coalesce. A free block records the last batch of each queue that used it: the same queue may
// reuse it immediately (queues are in order), the host and other queues only when that batch is done. So
// neighbours coalesce while the same queues may still use them, others only when nothing else fits. Small
// blocks that only the compute queue used are kept whole in lists by size (recent), which serve eager ops in
// constant time; they join the free lists as soon as no other free block fits.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <string>

#include "abi/keel_plugin.h"
#include "kernel/base/mutex.h"
#include "kernel/base/status.h"

namespace keel {

inline constexpr int kQueues = 3;      // KEEL_QUEUE_COMPUTE, KEEL_QUEUE_TRANSFER, KEEL_QUEUE_DOWNLOAD
inline constexpr int kHostFirst = -1;  // instead of a queue: the host uses the memory first
struct Batches {                       // one number per queue (accelerator.h)
  uint64_t of[kQueues] = {};
};

// Source of segments and of completed batches: a device, or a test.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  virtual absl::StatusOr<keel_segment> NewSegment(uint32_t kind, uint64_t bytes) = 0;
  virtual void FreeSegment(const keel_segment& segment) = 0;
  virtual Batches Done() = 0;             // the last batches known to be done
  virtual absl::Status WaitForAll() = 0;  // submits encoded work and waits for all queues
};

struct PoolOptions {
  std::string device;  // for messages
  uint64_t alignment = 64;
  uint64_t max_segment = 0;  // bytes; 0: no limit
  bool cache = true;         // false (KEEL_POOL=off): each piece has its own segment, of whole 4-byte words
  uint32_t kind = KEEL_SEGMENT_DEVICE;
};

struct PoolBlock;
struct Allocation {
  PoolBlock* block = nullptr;
  const keel_segment* segment = nullptr;
  uint64_t offset = 0, bytes = 0;
  uint64_t address() const { return segment ? segment->address + offset : 0; }
};

class Pool {
 public:
  Pool(SegmentSource& source, PoolOptions options);
  ~Pool();  // all pieces are freed, and no work is in flight

  // Uninitialized memory, used first by `queue`, or by the host if it is kHostFirst. If there is none: waits
  // for all work in flight, returns unused segments, and retries; then fails with a map of the memory.
  absl::StatusOr<Allocation> Allocate(uint64_t bytes, int queue);
  // used: the last batches of work that uses the piece.
  void Free(const Allocation& piece, const Batches& used);  // never allocates
  void Trim();                                              // returns all segments without used pieces

  struct Stats {
    uint64_t segments = 0, segment_bytes = 0, used_pieces = 0, used_bytes = 0;
  };
  Stats Count();

 private:
  friend PoolBlock;
  struct BySize {
    bool operator()(const PoolBlock* a, const PoolBlock* b) const;
  };
  struct SegmentBlocks;  // a segment and its blocks
  using FreeList = std::set<PoolBlock*, BySize>;

  uint64_t Rounded(uint64_t bytes) const;
  uint64_t SegmentBytes(uint64_t rounded) const;
  static std::unique_ptr<PoolBlock> NewBlock();
  PoolBlock* FindFree(uint64_t rounded, int queue);
  absl::StatusOr<PoolBlock*> Grow(uint64_t rounded);
  absl::Status FullError(uint64_t bytes, const absl::Status& why);
  std::string MapLocked();  // one line per segment, for messages
  Allocation Use(PoolBlock* block, uint64_t bytes);
  Allocation Split(PoolBlock* block, uint64_t rounded, uint64_t bytes);
  void ReturnBlock(PoolBlock* block);
  static PoolBlock* Join(PoolBlock* block, PoolBlock* neighbour);
  void JoinFor(int queue);
  uint32_t Pending(const PoolBlock& block) const;
  void Insert(PoolBlock* block);
  void Remove(PoolBlock* block);
  bool KeepRecent(PoolBlock* block);
  void DropRecent();
  void Refresh();
  void TrimLocked();
  FreeList& ListOf(const PoolBlock& block);

  SegmentSource& source_;
  const PoolOptions options_;
  Mutex mutex_;
  std::list<SegmentBlocks> held_;
  // By size class (small, large), then by the set of queues that may still use the block, one bit each.
  FreeList free_[2][1 << kQueues];
  static constexpr size_t kRecentSizes = 64;  // multiples of the grain
  PoolBlock* recent_[kRecentSizes] = {};      // linked by PoolBlock::recent
  uint64_t recent_bytes_ = 0;
  Batches done_;
  uint64_t blocks_made_ = 0;
  Stats stats_;
};

}  // namespace keel
