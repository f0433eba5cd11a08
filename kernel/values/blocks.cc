// blocks.cc: the long ways of blocks.h: heap, central lists, the end of a thread.
#include "kernel/values/blocks.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <new>

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

constexpr uint16_t kRoom[kSizes] = {64, 64, 64, 32, 16};  // what a thread keeps
constexpr uint64_t kCentralBytes = 4 << 20;               // per size; what is more goes back to the heap

struct Central {
  std::atomic_flag busy;
  keel_array* free = nullptr;
  uint64_t count = 0;
};
constinit Central central[kSizes];

// Large blocks, four sizes an octave.
constexpr uint8_t kLargeSizes = 24;
constexpr uint64_t kMostLarge = uint64_t{kPayload[kSizes - 1]} << kLargeSizes / 4;
constexpr uint64_t kLargeBytes = 16 << 20;  // kept, of all sizes; what is more goes back to the heap
constinit Central large[kLargeSizes];
std::atomic<uint64_t> large_bytes{0};
uint8_t LargeSize(uint64_t payload) {
  auto octave = static_cast<uint32_t>(std::bit_width((payload - 1) / kPayload[kSizes - 1])) - 1;
  return static_cast<uint8_t>(4 * octave + ((payload - 1) / (kPayload[kSizes - 1] / 4 << octave)) - 4);
}
uint64_t LargePayload(uint8_t size) {
  return (uint64_t{kPayload[kSizes - 1]} / 4 << size / 4) * (size % 4 + 5);
}

// Holds a central list if nobody else does.
class TryHold {
 public:
  explicit TryHold(Central& list)
      : list_(list.busy.test_and_set(std::memory_order_acquire) ? nullptr : &list) {}
  ~TryHold() {
    if (list_) list_->busy.clear(std::memory_order_release);
  }
  explicit operator bool() const { return list_ != nullptr; }

 private:
  Central* list_;
};

constexpr uint64_t kBorrowingKept = 1024;
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
keel_array* NewBlock(uint64_t payload, uint8_t kind) { return BlockIn(NewMemory(payload), kind); }

// Up to `n` blocks of the thread's list, as a list of their own.
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
  mine.room[size] = static_cast<uint16_t>(mine.room[size] + batch.count);
  if (batch.last) batch.last->next_free = nullptr;
  return batch;
}

void GiveToCentral(uint8_t size, Batch batch) {
  Central& list = central[size];
  if (!batch.count) return;
  if (TryHold hold(list); hold && (list.count + batch.count) * kPayload[size] <= kCentralBytes) {
    batch.last->next_free = list.free;
    list.free = batch.first;
    list.count += batch.count;
    return;
  }
  for (keel_array* a = batch.first; a;) std::free(std::exchange(a, a->next_free));
}

// Moves up to half a list from the central list to the thread's.
void Refill(ThreadBlocks& mine, uint8_t size) {
  Central& list = central[size];
  TryHold hold(list);
  for (int n = hold ? kRoom[size] / 2 : 0; n > 0 && list.free && mine.room[size]; n--) {
    keel_array* a = list.free;
    list.free = a->next_free;
    list.count--;
    a->next_free = mine.free[size];
    mine.free[size] = a;
    mine.room[size]--;
  }
}

// The result of a run that is made again and again: while the program holds the last one, the one before it
// serves.
constexpr uint64_t kMostHuge = (64 << 20) + 4096;
constinit std::atomic<keel_array*> huge{nullptr};

void GiveHuge(keel_array* a) {
  if (!kFreeLists || malloc_usable_size(a) > kMostHuge) return std::free(a);
  std::free(huge.exchange(a, std::memory_order_acq_rel));
}

keel_array* TakeHuge(uint64_t payload) {
  if (keel_array* a = huge.exchange(nullptr, std::memory_order_acq_rel)) {
    const uint64_t room = malloc_usable_size(a) - sizeof(keel_array);
    if (payload <= room && room - payload <= payload / 4) return Reused(a);
    GiveHuge(a);
  }
  return NewBlock(payload, kHeapBlock);
}

keel_array* TakeLarge(uint64_t payload) {
  if (!kFreeLists || payload > kMostLarge) return TakeHuge(payload);
  uint8_t size = LargeSize(payload);
  Central& list = large[size];
  if (TryHold hold(list); hold && list.free) {
    keel_array* a = std::exchange(list.free, list.free->next_free);
    large_bytes.fetch_sub(LargePayload(size), std::memory_order_relaxed);
    return Reused(a);
  }
  return NewBlock(LargePayload(size), static_cast<uint8_t>(kLargeBlock + size));
}

void GiveLarge(keel_array* a) {
  auto size = static_cast<uint8_t>(a->block - kLargeBlock);
  uint64_t bytes = LargePayload(size);
  Central& list = large[size];
  TryHold hold(list);
  if (!hold || large_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes > kLargeBytes) {
    if (hold) large_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return std::free(a);
  }
  a->next_free = list.free;
  list.free = a;
}

// Traces make and drop one for each value.
void GiveBorrowing(keel_array* a) {
  TryHold hold(borrowing);
  if (!kFreeLists || !hold || borrowing.count == kBorrowingKept) return std::free(a);
  borrowing.count++;
  a->next_free = std::exchange(borrowing.free, a);
}

void* TakeBorrowed() {
  TryHold hold(borrowing);
  if (!hold || !borrowing.free) return nullptr;
  borrowing.count--;
  return std::exchange(borrowing.free, borrowing.free->next_free);
}

// A thread that ends has no room any more: what it frees later, in other destructors, goes to the heap.
void DrainThread(void* arg) {
  auto* mine = static_cast<ThreadBlocks*>(arg);
  for (uint8_t size = 0; size < kSizes; size++) {
    GiveToCentral(size, Cut(*mine, size, UINT16_MAX));
    mine->room[size] = 0;
  }
}

struct Key {  // unloading the library must leave no pointer into it
  pthread_key_t key;
  bool made = pthread_key_create(&key, DrainThread) == 0;
  ~Key() {
    if (made) pthread_key_delete(key);
    made = false;
  }
};
Key end_of_thread;
__thread bool joined __attribute__((tls_model("initial-exec"))) = false;

// On its first long way a thread gets room, once; without a key nothing would drain its lists.
bool Join(ThreadBlocks& mine) {
  if (!kFreeLists || joined || !end_of_thread.made) return false;
  joined = true;
  if (pthread_setspecific(end_of_thread.key, &mine) != 0) return false;
  for (uint8_t size = 0; size < kSizes; size++) mine.room[size] = kRoom[size];
  return true;
}

}  // namespace

keel_array* TakeSlowly(uint64_t payload) {
  uint8_t size = SizeClass(payload);
  if (!kFreeLists || size == kSizes) return TakeLarge(payload);
  ThreadBlocks& mine = thread_blocks;
  Join(mine);
  Refill(mine, size);
  return mine.free[size] ? TakeBlock(payload) : NewBlock(kPayload[size], size);
}

void GiveSlowly(keel_array* a) {
  if (a->block == kBorrowedBlock) {
    Borrowed borrowed = *BorrowedOf(a);
    GiveBorrowing(a);
    if (borrowed.release) borrowed.release(borrowed.arg);
    return;
  }
  if (a->block == kHeapBlock) return GiveHuge(a);
  if (a->block >= kLargeBlock) return GiveLarge(a);
  ThreadBlocks& mine = thread_blocks;
  uint8_t size = a->block;
  if (!Join(mine) && mine.free[size]) GiveToCentral(size, Cut(mine, size, kRoom[size] / 2));
  return mine.room[size] ? GiveBlock(a) : std::free(a);
}

keel_array* TakeBorrowing() {
  void* kept = TakeBorrowed();
  keel_array* a = BlockIn(kept ? kept : NewMemory(sizeof(Borrowed)), kBorrowedBlock);
  if (a) new (a->payload()) Borrowed{};
  return a;
}

}  // namespace keel
