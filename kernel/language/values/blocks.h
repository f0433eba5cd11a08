// blocks.h: the allocator for arrays. Blocks of five size classes are kept in free lists, one per thread and
// class, so that a warm program creates results without malloc and without locks. A full list moves half of
// its blocks to a central list; an empty one refills from there; a thread that exits returns all. Nothing
// waits for a central list: on contention it falls back to malloc and free. Blocks of up to 4 MiB are kept in
// central lists only, because memory returned to the system is faulted in again page by page; of larger
// blocks, only the last one freed (up to 64 MiB) is kept. Under AddressSanitizer every block is malloc'ed, so
// that it detects each use after free.
#pragma once

#include <cstdint>

#include "kernel/language/values/array_header.h"

namespace keel {

// aligned_alloc that requests huge pages for large sizes. Faulting them in and freeing them takes a fraction
// of the time; a cancelled run must free its memory before it returns.
void* AllocateLarge(uint64_t align, uint64_t bytes);

// keel_array::block: a size class of the thread's lists, or one of these. Large classes follow kLargeBlock.
inline constexpr uint8_t kSizeClasses = 5, kHeapBlock = 5, kBorrowedBlock = 6, kLargeBlock = 7;
inline constexpr uint32_t kPayload[kSizeClasses] = {64, 512, 4096, 16384, 65536};  // bytes after the header

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

// Plain data, because libraries loaded with dlopen get little static thread-local storage.
struct ThreadBlocks {
  keel_array* free[kSizeClasses];
  uint16_t
      free_capacity[kSizeClasses];  // free capacity; initially 0, so that the first call takes the slow path
};
extern __thread ThreadBlocks thread_blocks __attribute__((tls_model("initial-exec")));

keel_array* AllocateSlowly(uint64_t payload);  // also for sizes without a free list
void FreeSlowly(keel_array*);                  // of any kind

inline uint8_t SizeClass(uint64_t payload) {
  uint8_t size = 0;
  while (size < kSizeClasses && payload > kPayload[size]) size++;
  return size;
}

// A header with `payload` bytes after it; null: out of memory. All header fields but type, count and dims are
// set.
inline keel_array* AllocateBlock(uint64_t payload) {
  uint8_t size = SizeClass(payload);
  if (size == kSizeClasses) [[unlikely]]
    return AllocateSlowly(payload);
  ThreadBlocks& mine = thread_blocks;
  keel_array* a = mine.free[size];
  if (!a) [[unlikely]]
    return AllocateSlowly(payload);
  mine.free[size] = a->next_free;
  mine.free_capacity[size]++;
  a->references.store(1, std::memory_order_relaxed);
  a->serial.store(0, std::memory_order_relaxed);
  return a;
}

inline void FreeBlock(keel_array* a) {
  ThreadBlocks& mine = thread_blocks;
  if (a->block >= kSizeClasses || !mine.free_capacity[a->block]) [[unlikely]]
    return FreeSlowly(a);
  a->next_free = mine.free[a->block];
  mine.free[a->block] = a;
  mine.free_capacity[a->block]--;
}

// An array with a Borrowed after its header; null: out of memory.
keel_array* AllocateBorrowing();

}  // namespace keel
