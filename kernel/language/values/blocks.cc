// blocks.cc: the slow paths of blocks.h: malloc, central lists, thread exit.
#include "kernel/language/values/blocks.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include "kernel/base/align.h"

namespace keel {

void* AllocateLarge(uint64_t align, uint64_t bytes) {
  constexpr uint64_t kWorth = 64 << 20, kPage = 4096;
  void* memory = std::aligned_alloc(align, bytes);
  auto first = (reinterpret_cast<uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  if (memory && bytes >= kWorth) madvise(reinterpret_cast<void*>(first), bytes - kPage, MADV_HUGEPAGE);
  return memory;
}

__thread ThreadBlocks thread_blocks __attribute__((tls_model("initial-exec"))) = {};

namespace {

constexpr uint16_t kThreadCapacity[kSizeClasses] = {64, 64, 64, 32, 16};  // blocks that a thread keeps
constexpr uint64_t kCentralBytes = 4 << 20;  // per size class; the excess is freed

struct Central {
  std::atomic_flag busy;
  keel_array* free = nullptr;
  uint64_t count = 0;
};
constinit Central central[kSizeClasses];

// Large blocks: four size classes per octave.
constexpr uint8_t kLargeSizes = 24;
constexpr uint64_t kMaxLarge = uint64_t{kPayload[kSizeClasses - 1]} << kLargeSizes / 4;
constexpr uint64_t kLargeBytes = 16 << 20;  // kept in all classes together; the excess is freed
constinit Central large[kLargeSizes];
std::atomic<uint64_t> large_bytes{0};
uint8_t LargeSize(uint64_t payload) {
  auto octave = static_cast<uint32_t>(std::bit_width((payload - 1) / kPayload[kSizeClasses - 1])) - 1;
  return static_cast<uint8_t>(4 * octave + ((payload - 1) / (kPayload[kSizeClasses - 1] / 4 << octave)) - 4);
}
uint64_t LargePayload(uint8_t size) {
  return (uint64_t{kPayload[kSizeClasses - 1]} / 4 << size / 4) * (size % 4 + 5);
}

// Locks a central list unless it is locked already.
class TryLock {
 public:
  explicit TryLock(Central& list)
      : list_(list.busy.test_and_set(std::memory_order_acquire) ? nullptr : &list) {}
  ~TryLock() {
    if (list_) list_->busy.clear(std::memory_order_release);
  }
  explicit operator bool() const { return list_ != nullptr; }

 private:
  Central* list_;
};

constexpr uint64_t kMaxBorrowing = 1024;
constinit Central borrowing;

void* NewMemory(uint64_t payload) {
  uint64_t bytes = RoundUp(sizeof(keel_array) + payload, kAlign);
  return AllocateLarge(kAlign, bytes);
}

keel_array* BlockIn(void* memory, uint8_t kind) {
  if (!memory) return nullptr;
  auto* a = new (memory) keel_array;
  a->block = kind;
  a->view.shape = a->dims;
  a->view.device = {1, 0};
  a->view.data = a->payload();
  return a;
}
keel_array* Reused(keel_array* a) {
  a->references.store(1, std::memory_order_relaxed);
  a->serial.store(0, std::memory_order_relaxed);
  return a;
}
keel_array* AllocateNew(uint64_t payload, uint8_t kind) { return BlockIn(NewMemory(payload), kind); }

// Up to n blocks, unlinked from the thread's list.
struct Batch {
  keel_array *first = nullptr, *last = nullptr;
  uint16_t count = 0;
};
Batch Cut(ThreadBlocks& mine, uint8_t size, uint16_t n) {
  Batch batch;
  batch.first = mine.free[size];
  while (mine.free[size] && batch.count < n) {
    batch.last = mine.free[size];
    mine.free[size] = batch.last->next_free;
    batch.count++;
  }
  mine.free_capacity[size] = static_cast<uint16_t>(mine.free_capacity[size] + batch.count);
  if (batch.last) batch.last->next_free = nullptr;
  return batch;
}

void GiveToCentral(uint8_t size, Batch batch) {
  Central& list = central[size];
  if (!batch.count) return;
  if (TryLock hold(list); hold && (list.count + batch.count) * kPayload[size] <= kCentralBytes) {
    batch.last->next_free = list.free;
    list.free = batch.first;
    list.count += batch.count;
    return;
  }
  for (keel_array* a = batch.first; a;) std::free(std::exchange(a, a->next_free));
}

// Moves blocks from the central list until the thread's list is half full.
void Refill(ThreadBlocks& mine, uint8_t size) {
  Central& list = central[size];
  TryLock hold(list);
  for (int n = hold ? kThreadCapacity[size] / 2 : 0; n > 0 && list.free && mine.free_capacity[size]; n--) {
    keel_array* a = list.free;
    list.free = a->next_free;
    list.count--;
    a->next_free = mine.free[size];
    mine.free[size] = a;
    mine.free_capacity[size]--;
  }
}

// The last freed huge block. It serves a program that repeats a run while it still holds the previous result.
constexpr uint64_t kMaxHuge = (64 << 20) + 4096;
constinit std::atomic<keel_array*> huge{nullptr};

void FreeHuge(keel_array* a) {
  if (!kFreeLists || malloc_usable_size(a) > kMaxHuge) return std::free(a);
  std::free(huge.exchange(a, std::memory_order_acq_rel));
}

keel_array* AllocateHuge(uint64_t payload) {
  if (keel_array* a = huge.exchange(nullptr, std::memory_order_acq_rel)) {
    const uint64_t room = malloc_usable_size(a) - sizeof(keel_array);
    if (payload <= room && room - payload <= payload / 4) return Reused(a);
    FreeHuge(a);
  }
  return AllocateNew(payload, kHeapBlock);
}

keel_array* AllocateSizedLarge(uint64_t payload) {
  if (!kFreeLists || payload > kMaxLarge) return AllocateHuge(payload);
  uint8_t size = LargeSize(payload);
  Central& list = large[size];
  if (TryLock hold(list); hold && list.free) {
    keel_array* a = std::exchange(list.free, list.free->next_free);
    large_bytes.fetch_sub(LargePayload(size), std::memory_order_relaxed);
    return Reused(a);
  }
  return AllocateNew(LargePayload(size), static_cast<uint8_t>(kLargeBlock + size));
}

void FreeLarge(keel_array* a) {
  auto size = static_cast<uint8_t>(a->block - kLargeBlock);
  uint64_t bytes = LargePayload(size);
  Central& list = large[size];
  TryLock hold(list);
  if (!hold || large_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes > kLargeBytes) {
    if (hold) large_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return std::free(a);
  }
  a->next_free = list.free;
  list.free = a;
}

// Tracing creates and drops one header per value.
void FreeBorrowing(keel_array* a) {
  TryLock hold(borrowing);
  if (!kFreeLists || !hold || borrowing.count == kMaxBorrowing) return std::free(a);
  borrowing.count++;
  a->next_free = std::exchange(borrowing.free, a);
}

void* PopBorrowing() {
  TryLock hold(borrowing);
  if (!hold || !borrowing.free) return nullptr;
  borrowing.count--;
  return std::exchange(borrowing.free, borrowing.free->next_free);
}

// Leaves the thread's lists without capacity: blocks freed by later destructors go to free().
void DrainThread(void* arg) {
  auto* mine = static_cast<ThreadBlocks*>(arg);
  for (uint8_t size = 0; size < kSizeClasses; size++) {
    GiveToCentral(size, Cut(*mine, size, UINT16_MAX));
    mine->free_capacity[size] = 0;
  }
}

struct Key {  // deleted at dlclose, so that no pointer into the unloaded library remains
  pthread_key_t key;
  bool made = pthread_key_create(&key, DrainThread) == 0;
  ~Key() {
    if (made) pthread_key_delete(key);
    made = false;
  }
};
Key end_of_thread;
__thread bool initialized __attribute__((tls_model("initial-exec"))) = false;

// Gives a thread its list capacity on its first slow path. Without a key nothing would drain the lists at
// thread exit.
bool InitThread(ThreadBlocks& mine) {
  if (!kFreeLists || initialized || !end_of_thread.made) return false;
  initialized = true;
  if (pthread_setspecific(end_of_thread.key, &mine) != 0) return false;
  for (uint8_t size = 0; size < kSizeClasses; size++) mine.free_capacity[size] = kThreadCapacity[size];
  return true;
}

}  // namespace

keel_array* AllocateSlowly(uint64_t payload) {
  uint8_t size = SizeClass(payload);
  if (!kFreeLists || size == kSizeClasses) return AllocateSizedLarge(payload);
  ThreadBlocks& mine = thread_blocks;
  InitThread(mine);
  Refill(mine, size);
  return mine.free[size] ? AllocateBlock(payload) : AllocateNew(kPayload[size], size);
}

void FreeSlowly(keel_array* a) {
  if (a->block == kBorrowedBlock) {
    Borrowed borrowed = *a->borrowed();
    FreeBorrowing(a);
    if (borrowed.release) borrowed.release(borrowed.arg);
    return;
  }
  if (a->block == kHeapBlock) return FreeHuge(a);
  if (a->block >= kLargeBlock) return FreeLarge(a);
  ThreadBlocks& mine = thread_blocks;
  uint8_t size = a->block;
  if (!InitThread(mine) && mine.free[size]) GiveToCentral(size, Cut(mine, size, kThreadCapacity[size] / 2));
  return mine.free_capacity[size] ? FreeBlock(a) : std::free(a);
}

keel_array* AllocateBorrowing() {
  void* kept = PopBorrowing();
  keel_array* a = BlockIn(kept ? kept : NewMemory(sizeof(Borrowed)), kBorrowedBlock);
  if (a) new (a->payload()) Borrowed{};
  return a;
}

}  // namespace keel
