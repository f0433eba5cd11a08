// pool.cc: size classes, best fit, splitting and coalescing of blocks.
#include "kernel/runtime/device/pool.h"

#include <algorithm>

#include "kernel/base/align.h"

namespace keel {

// Requests up to kSmall come from segments of kSmallSegment, up to kMiddle from kMiddleSegment; larger ones
// have their own segments. (The size classes of PyTorch's caching allocator.)
constexpr uint64_t kGrain = 512, kSmall = 1 << 20, kSmallSegment = 2 << 20;
constexpr uint64_t kMiddle = 10 << 20, kMiddleSegment = 20 << 20, kLargeStep = 2 << 20;
constexpr uint64_t kRecentBytes = 1 << 20;  // kept whole for the compute queue

struct PoolBlock {
  void* held;       // Pool::SegmentBlocks
  uint64_t number;  // from 1; orders blocks of the same size, and sorts the probe (0) first
  uint64_t offset, bytes;
  PoolBlock *before, *after;  // neighbours in the segment
  bool small, free;
  uint32_t pending;  // one bit per queue that may still use it
  Batches used;
  PoolBlock* recent;  // the next in its list of recent blocks, or in Refresh's list
  // Its free-list node while it is in no list, so that freeing cannot fail.
  Pool::FreeList::node_type node;
};

struct Pool::SegmentBlocks {
  keel_segment segment{};
  PoolBlock* first = nullptr;
};

bool Pool::BySize::operator()(const PoolBlock* a, const PoolBlock* b) const {
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->number < b->number;
}

namespace {

std::string Size(uint64_t bytes) {
  if (bytes >= 1 << 20) return absl::StrCat((bytes * 10 >> 20) / 10, ".", (bytes * 10 >> 20) % 10, " MiB");
  return bytes >= 1024 ? absl::StrCat(bytes >> 10, " KiB") : absl::StrCat(bytes, " B");
}

}  // namespace

Pool::Pool(SegmentSource& source, PoolOptions options) : source_(source), options_(std::move(options)) {}

Pool::~Pool() {
  for (SegmentBlocks& held : held_) {
    source_.FreeSegment(held.segment);
    for (PoolBlock* b = held.first; b;) delete std::exchange(b, b->after);
  }
}

uint64_t Pool::Rounded(uint64_t bytes) const {
  const uint64_t grain = options_.cache ? std::max(kGrain, options_.alignment) : sizeof(uint32_t);
  return RoundUp(std::max<uint64_t>(bytes, 1), grain);
}

uint64_t Pool::SegmentBytes(uint64_t rounded) const {
  if (!options_.cache) return rounded;
  uint64_t wanted = rounded <= kSmall    ? kSmallSegment
                    : rounded <= kMiddle ? kMiddleSegment
                                         : RoundUp(rounded, kLargeStep);
  if (options_.max_segment && wanted > options_.max_segment) wanted = options_.max_segment;
  return std::max(wanted, rounded);
}

Pool::FreeList& Pool::ListOf(const PoolBlock& b) { return free_[b.small ? 0 : 1][b.pending]; }

uint32_t Pool::Pending(const PoolBlock& b) const {
  uint32_t pending = 0;
  for (int q = 0; q < kQueues; q++)
    if (b.used.of[q] > done_.of[q]) pending |= 1u << q;
  return pending;
}

void Pool::Insert(PoolBlock* b) {
  b->pending = Pending(*b);
  b->free = true;
  ListOf(*b).insert(std::move(b->node));
}

std::unique_ptr<PoolBlock> Pool::NewBlock() {
  auto block = std::make_unique<PoolBlock>();
  FreeList place;
  place.insert(block.get());
  block->node = place.extract(place.begin());
  return block;
}

void Pool::Remove(PoolBlock* b) {
  b->node = ListOf(*b).extract(b);
  b->free = false;
}

// Updates the completed batches and moves blocks to the lists where other queues find them.
void Pool::Refresh() {
  done_ = source_.Done();
  PoolBlock* changed = nullptr;
  for (auto& lists : free_)
    for (uint32_t pending = 1; pending < 1u << kQueues; pending++)
      for (auto it = lists[pending].begin(); it != lists[pending].end();) {
        PoolBlock* b = *it++;
        if (Pending(*b) == pending) continue;
        Remove(b);
        b->recent = std::exchange(changed, b);
      }
  DropRecent();
  while (changed) ReturnBlock(std::exchange(changed, changed->recent));
}

// Keeps a block whole for the next allocation of its size by the compute queue.
bool Pool::KeepRecent(PoolBlock* b) {
  if (b->bytes > kRecentSizes * kGrain || !options_.cache || options_.kind != KEEL_SEGMENT_DEVICE ||
      recent_bytes_ >= kRecentBytes)
    return false;
  for (int q = 0; q < kQueues; q++)
    if (q != KEEL_QUEUE_COMPUTE && b->used.of[q] > done_.of[q]) return false;
  PoolBlock*& list = recent_[b->bytes / kGrain - 1];
  b->recent = std::exchange(list, b);
  recent_bytes_ += b->bytes;
  return true;
}

void Pool::DropRecent() {
  for (PoolBlock*& list : recent_)
    while (list) ReturnBlock(std::exchange(list, list->recent));
  recent_bytes_ = 0;
}

// Best fit among blocks that no queue but `queue` may still use.
PoolBlock* Pool::FindFree(uint64_t rounded, int queue) {
  PoolBlock probe{};
  probe.bytes = rounded;
  PoolBlock* best = nullptr;
  for (uint32_t pending : {0u, queue == kHostFirst ? 0u : 1u << queue}) {
    FreeList& list = free_[rounded <= kSmall ? 0 : 1][pending];
    auto it = list.lower_bound(&probe);
    if (it != list.end() && (!best || (*it)->bytes < best->bytes)) best = *it;
  }
  return best;
}

// Allocates host memory first, so that nothing can fail after the device allocation.
absl::StatusOr<PoolBlock*> Pool::Grow(uint64_t rounded) {
  std::list<SegmentBlocks> grown(1);
  std::unique_ptr<PoolBlock> block = NewBlock();
  absl::StatusOr<keel_segment> made = source_.NewSegment(options_.kind, SegmentBytes(rounded));
  if (absl::IsResourceExhausted(made.status()) && SegmentBytes(rounded) > rounded)
    made = source_.NewSegment(options_.kind, rounded);
  RETURN_IF_ERROR(made.status());
  held_.splice(held_.end(), grown);
  SegmentBlocks& held = held_.back();
  held.segment = *made;
  held.first = block.release();
  held.first->held = &held;
  held.first->number = ++blocks_made_;
  held.first->bytes = std::max(made->bytes, rounded);
  held.first->small = rounded <= kSmall;
  if (options_.cache) held.first->bytes = held.first->bytes / kGrain * kGrain;
  if (held.first->bytes < rounded) held.first->bytes = rounded;
  stats_.segments++;
  stats_.segment_bytes += held.segment.bytes;
  return held.first;
}

Allocation Pool::Use(PoolBlock* b, uint64_t bytes) {
  stats_.used_pieces++;
  stats_.used_bytes += b->bytes;
  return {b, &static_cast<SegmentBlocks*>(b->held)->segment, b->offset, bytes};
}

// A large block is split only if a useful rest remains, and if there is memory for its descriptor.
Allocation Pool::Split(PoolBlock* b, uint64_t rounded, uint64_t bytes) {
  uint64_t rest = b->bytes - rounded;
  std::unique_ptr<PoolBlock> fresh;
  if (options_.cache && rest >= (b->small ? kGrain : kSmall)) try {
      fresh = NewBlock();
    } catch (const std::bad_alloc&) {
    }
  if (PoolBlock* tail = fresh.release()) {
    tail->held = b->held;
    tail->number = ++blocks_made_;
    tail->offset = b->offset + rounded;
    tail->bytes = rest;
    tail->before = b;
    tail->after = b->after;
    tail->small = b->small;
    tail->used = b->used;
    if (b->after) b->after->before = tail;
    b->after = tail;
    b->bytes = rounded;
    Insert(tail);
  }
  return Use(b, bytes);
}

absl::StatusOr<Allocation> Pool::Allocate(uint64_t bytes, int queue) {
  std::unique_lock lock(mutex_);
  uint64_t rounded = Rounded(bytes);
  if (options_.max_segment && rounded > options_.max_segment)
    return FullError(bytes, Exhausted("its segments have at most ", options_.max_segment, " bytes"));
  if (queue == KEEL_QUEUE_COMPUTE && rounded <= kRecentSizes * kGrain) {
    PoolBlock*& list = recent_[(rounded - 1) / kGrain];
    if (PoolBlock* kept = list) {
      list = kept->recent;
      recent_bytes_ -= kept->bytes;
      return Use(kept, bytes);
    }
  }
  PoolBlock* b = options_.cache ? FindFree(rounded, queue) : nullptr;
  if (!b) {
    Refresh();
    if (!options_.cache) TrimLocked();
    b = options_.cache ? FindFree(rounded, queue) : nullptr;
  }
  if (!b && options_.cache && queue != kHostFirst) {
    JoinFor(queue);
    b = FindFree(rounded, queue);
  }
  if (b) {
    Remove(b);
    return Split(b, rounded, bytes);
  }
  absl::StatusOr<PoolBlock*> grown = Grow(rounded);
  if (absl::IsResourceExhausted(grown.status())) {
    lock.unlock();
    absl::Status done = source_.WaitForAll();
    lock.lock();
    RETURN_IF_ERROR(done);
    Refresh();
    if (b = FindFree(rounded, queue); b && options_.cache) {
      Remove(b);
      return Split(b, rounded, bytes);
    }
    TrimLocked();
    grown = Grow(rounded);
    if (absl::IsResourceExhausted(grown.status())) return FullError(bytes, grown.status());
  }
  RETURN_IF_ERROR(grown.status());
  return Split(*grown, rounded, bytes);
}

// Two neighbours that are in no list, as one.
PoolBlock* Pool::Join(PoolBlock* b, PoolBlock* other) {
  PoolBlock *low = other == b->before ? other : b, *high = low->after;
  low->bytes += high->bytes;
  low->after = high->after;
  if (high->after) high->after->before = low;
  for (int q = 0; q < kQueues; q++) low->used.of[q] = std::max(low->used.of[q], high->used.of[q]);
  delete high;
  return low;
}

// Returns a block to the free lists, coalesced with free neighbours that the same queues may still use: a
// small piece in flight would otherwise take the rest of its segment from the host and other queues.
void Pool::ReturnBlock(PoolBlock* b) {
  const uint32_t pending = Pending(*b);
  for (PoolBlock* other : {b->before, b->after}) {
    if (!other || !other->free || other->pending != pending) continue;
    Remove(other);
    b = Join(b, other);
  }
  Insert(b);
}

// Coalesces all neighbours that this queue can have now.
void Pool::JoinFor(int queue) {
  const auto is_for_queue = [&](const PoolBlock* b) {
    return b && b->free && !(b->pending & ~(1u << queue));
  };
  for (SegmentBlocks& held : held_)
    for (PoolBlock* b = held.first; b; b = b->after)
      while (is_for_queue(b) && is_for_queue(b->after)) {
        Remove(b->after);
        Remove(b);
        b = Join(b, b->after);
        Insert(b);
      }
}

void Pool::Free(const Allocation& piece, const Batches& used) {
  if (!piece.block) return;
  std::lock_guard lock(mutex_);
  PoolBlock* b = piece.block;
  stats_.used_pieces--;
  stats_.used_bytes -= b->bytes;
  for (int q = 0; q < kQueues; q++) b->used.of[q] = std::max(b->used.of[q], used.of[q]);
  if (!KeepRecent(b)) ReturnBlock(b);
  if (options_.cache) return;
  Refresh();
  TrimLocked();
}

void Pool::Trim() {
  std::lock_guard lock(mutex_);
  Refresh();
  TrimLocked();
}

void Pool::TrimLocked() {
  for (auto it = held_.begin(); it != held_.end();) {
    PoolBlock* only = it->first;
    if (only->after || !only->free || only->pending) {
      ++it;
      continue;
    }
    Remove(only);
    delete only;
    source_.FreeSegment(it->segment);
    stats_.segments--;
    stats_.segment_bytes -= it->segment.bytes;
    it = held_.erase(it);
  }
}

Pool::Stats Pool::Count() {
  std::lock_guard lock(mutex_);
  return stats_;
}

std::string Pool::MapLocked() {
  DropRecent();
  constexpr size_t kShown = 12;
  std::string map = absl::StrCat("in use ", Size(stats_.used_bytes), " in ", stats_.used_pieces, " pieces, ",
                                 Size(stats_.segment_bytes), " in ", stats_.segments, " segments");
  size_t shown = 0;
  for (const SegmentBlocks& held : held_) {
    if (++shown > kShown) break;
    uint64_t used = 0, free = 0, largest = 0, pieces = 0;
    for (PoolBlock* b = held.first; b; b = b->after) {
      (b->free ? free : used) += b->bytes;
      if (b->free) largest = std::max(largest, b->bytes);
      pieces += !b->free;
    }
    absl::StrAppend(&map, "\n  segment of ", Size(held.segment.bytes), ": ", pieces, " pieces use ",
                    Size(used), ", free ", Size(free), ", largest gap ", Size(largest));
  }
  if (held_.size() > kShown) absl::StrAppend(&map, "\n  and ", held_.size() - kShown, " more");
  return map;
}

absl::Status Pool::FullError(uint64_t bytes, const absl::Status& why) {
  return Annotate(Exhausted("device ", options_.device, " has no room for ", bytes, " bytes: ", why.message(),
                            "; ", MapLocked()),
                  kErrorHint, "run smaller inputs, or free arrays and plans on the device");
}

}  // namespace keel
