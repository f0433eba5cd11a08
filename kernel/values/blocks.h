// blocks.h: memory of arrays. Blocks of five sizes are kept in free lists, one per thread and size, so
// that a warm program neither allocates nor locks to make a result. A list that overflows gives half of
// it to a central list, which is where an empty one looks first; a thread that ends gives all. Nobody
// waits for the central list: who finds it busy asks the heap. Blocks of up to 4 MiB are kept in central
// lists alone, for what the heap gives back to the system comes again page by page; of those above, the one
// of up to 64 MiB that was given back last. Under AddressSanitizer everything is plain heap, so that it sees
// each use after free.
#pragma once

#include <cstdint>

#include "kernel/values/array.h"

namespace keel {

// aligned_alloc, but what is large lies in huge pages where the system has them: to get its pages and to give
// them back takes a fraction of the time, and a run that is stopped must do the latter before it returns.
void* AllocateLarge(uint64_t align, uint64_t bytes);

inline constexpr uint8_t kSizes = 5, kHeapBlock = 5, kBorrowedBlock = 6, kLargeBlock = 7;  // and the next 23
inline constexpr uint32_t kPayload[kSizes] = {64, 512, 4096, 16384, 65536};  // bytes behind the header

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kFreeLists = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kFreeLists = false;
#else
inline constexpr bool kFreeLists = true;
#endif
#else
inline constexpr bool kFreeLists = true;
#endif

// Plain data in the static thread-local area, which a library that is loaded late has little of.
struct ThreadBlocks {
  keel_array* free[kSizes];
  uint16_t room[kSizes];  // how many more fit; 0 at first, so that the first goes the long way
};
extern __thread ThreadBlocks thread_blocks __attribute__((tls_model("initial-exec")));

keel_array* TakeSlowly(uint64_t payload);  // also what no free list serves
void GiveSlowly(keel_array*);              // of any kind

inline uint8_t SizeClass(uint64_t payload) {
  uint8_t size = 0;
  while (size < kSizes && payload > kPayload[size]) size++;
  return size;
}

// A header with that much behind it; null: no memory. Of the header all but type, count and dims is set.
inline keel_array* TakeBlock(uint64_t payload) {
  uint8_t size = SizeClass(payload);
  if (size == kSizes) [[unlikely]]
    return TakeSlowly(payload);
  ThreadBlocks& mine = thread_blocks;
  keel_array* a = mine.free[size];
  if (!a) [[unlikely]]
    return TakeSlowly(payload);
  mine.free[size] = a->next_free;
  mine.room[size]++;
  a->references.store(1, std::memory_order_relaxed);
  a->serial.store(0, std::memory_order_relaxed);
  return a;
}

inline void GiveBlock(keel_array* a) {
  ThreadBlocks& mine = thread_blocks;
  if (a->block >= kSizes || !mine.room[a->block]) [[unlikely]]
    return GiveSlowly(a);
  a->next_free = mine.free[a->block];
  mine.free[a->block] = a;
  mine.room[a->block]--;
}

// Behind the header of an array that borrows its elements.
struct Borrowed {
  int64_t steps[KEEL_MAX_RANK];
  ReleaseFn release;
  void* arg;
};
keel_array* TakeBorrowing();
inline Borrowed* BorrowedOf(keel_array* a) { return reinterpret_cast<Borrowed*>(a->payload()); }

}  // namespace keel
