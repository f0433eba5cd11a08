// pool.h: the caching allocator of a device's memory: cuts few large segments into the pieces that tensors
// need, and keeps what is freed for the next one.
//
// How to read it: a Piece is what Take gives. Its block lies in a list of all blocks of its segment, so that
// free neighbours grow together. A free block remembers the last ticket of each queue that used it: the same
// queue may have it again at once (a queue is in order), another one only when that ticket is done.
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

inline constexpr int kQueues = 2;  // KEEL_QUEUE_COMPUTE, KEEL_QUEUE_TRANSFER
struct Tickets {
  uint64_t of[kQueues] = {};
};

// Where segments come from and what is done: the device, or a test.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  virtual absl::StatusOr<keel_segment> NewSegment(uint32_t kind, uint64_t bytes) = 0;
  virtual void FreeSegment(const keel_segment& segment) = 0;
  virtual Tickets Done() = 0;             // the last tickets known to be done
  virtual absl::Status WaitForAll() = 0;  // submits what is encoded and waits for it, on all queues
};

struct PoolOptions {
  std::string device;  // for messages
  uint64_t alignment = 64;
  uint64_t max_segment = 0;  // bytes; 0: no limit
  bool cache = true;         // false (KEEL_POOL=off): each piece has a segment of its own, exactly as large
};

struct PoolBlock;
struct Piece {
  PoolBlock* block = nullptr;
  const keel_segment* segment = nullptr;
  uint64_t offset = 0, bytes = 0;
  uint64_t address() const { return segment ? segment->address + offset : 0; }
};

class Pool {
 public:
  Pool(SegmentSource& source, PoolOptions options);
  ~Pool();  // everything is given back, and nothing runs any more

  // Memory to be used first by that queue. What is in it is whatever was there. Full: waits for all that is
  // under way, returns unused segments, tries once more; then an error with a map of the memory.
  absl::StatusOr<Piece> Take(uint64_t bytes, int queue);
  // `used`: the last tickets of the work that touches the piece.
  void Give(const Piece& piece, const Tickets& used);  // giving back needs no memory
  // After a failure nobody knows what still runs: kept until WaitForAll has succeeded once.
  void GiveUnsettled(const Piece& piece);
  absl::Status Settle();      // WaitForAll, and what was unsettled is free
  bool TrySettle() noexcept;  // the same in destructors and after failures; false: it still is not
  void Trim();                // returns all segments without a used piece

  struct Stats {
    uint64_t segments = 0, segment_bytes = 0, used_pieces = 0, used_bytes = 0;
  };
  Stats Count();
  std::string Map();  // segment by segment, for people

 private:
  friend PoolBlock;
  struct BySize {
    bool operator()(const PoolBlock* a, const PoolBlock* b) const;
  };
  struct Held;  // a segment and its blocks
  using FreeList = std::set<PoolBlock*, BySize>;

  uint64_t Rounded(uint64_t bytes) const;
  uint64_t SegmentBytes(uint64_t rounded) const;
  static std::unique_ptr<PoolBlock> NewBlock();
  PoolBlock* FindFree(uint64_t rounded, int queue);
  absl::StatusOr<PoolBlock*> Grow(uint64_t rounded);
  absl::Status FullError(uint64_t bytes, const absl::Status& why) const;
  std::string MapLocked() const;
  Piece Cut(PoolBlock* block, uint64_t rounded, uint64_t bytes);
  void Free(PoolBlock* block);
  void Insert(PoolBlock* block);
  void Remove(PoolBlock* block);
  void Refresh();
  void TrimLocked();
  FreeList& ListOf(const PoolBlock& block);

  SegmentSource& source_;
  const PoolOptions options_;
  Mutex mutex_;
  std::list<Held> held_;
  // By size class (small, large), then by the queues that may still use the block, one bit each.
  FreeList free_[2][1 << kQueues];
  Tickets done_;
  PoolBlock* unsettled_ = nullptr;  // a list
  uint64_t blocks_made_ = 0;
  Stats stats_;
};

}  // namespace keel
