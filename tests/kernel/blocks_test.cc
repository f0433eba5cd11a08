// blocks_test.cc: free lists of arrays: reuse in a thread, arrays that move between threads, thread exit.
// Also run under the sanitizers.
#include "kernel/language/values/blocks.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace keel {
namespace {

ArrayRef Bytes(uint64_t n, uint8_t fill) {
  ArrayRef a = *NewArray(DType::kU8, std::vector<int64_t>{static_cast<int64_t>(n)}, false);
  std::fill_n(a->data(), n, static_cast<char>(fill));
  return a;
}

bool Holds(const ArrayRef& a, uint64_t n, uint8_t fill) {
  if (a->bytes() != n || a->references.load() != 1 || a->view.strides || a->view.byte_offset) return false;
  for (uint64_t i = 0; i < n; i++)
    if (a->data()[i] != static_cast<char>(fill)) return false;
  return true;
}

TEST(Blocks, SizesAreServedFromTheSmallestListThatFits) {
  EXPECT_EQ(SizeClass(0), 0);
  EXPECT_EQ(SizeClass(64), 0);
  EXPECT_EQ(SizeClass(65), 1);
  EXPECT_EQ(SizeClass(65536), 4);
  EXPECT_EQ(SizeClass(65537), kSizeClasses);
  if (!kFreeLists) GTEST_SKIP() << "this build has plain heap in place of free lists";
  for (uint64_t n : {0, 1, 64, 65, 512, 4096, 16384, 65536, 65537, 81920, 81921, 401408, 4 << 20}) {
    keel_array* first = Bytes(n, 1).get();  // released at once
    ArrayRef again = Bytes(n, 2);
    EXPECT_EQ(again.get(), first) << n;
    EXPECT_TRUE(Holds(again, n, 2)) << n;
  }
}

TEST(Blocks, LargeOnesAreKeptUpToALimit) {
  if (!kFreeLists) GTEST_SKIP() << "this build has plain heap in place of free lists";
  std::vector<ArrayRef> live;
  std::set<keel_array*> places;
  for (int i = 0; i < 100; i++) {
    live.push_back(Bytes(1000000, static_cast<uint8_t>(i)));
    places.insert(live.back().get());
  }
  for (int i = 0; i < 100; i++)
    EXPECT_TRUE(Holds(live[static_cast<size_t>(i)], 1000000, static_cast<uint8_t>(i)));
  EXPECT_EQ(places.size(), 100u);
  live.clear();  // 100 MB; 16 MiB stay
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([] {
      for (int i = 0; i < 200; i++) {
        ArrayRef a = Bytes(70000 + 9000 * static_cast<uint64_t>(i % 7), 1), b = Bytes(1000000, 2);
        EXPECT_TRUE(Holds(b, 1000000, 2) && Holds(a, a->bytes(), 1));
      }
    });
  for (std::thread& t : threads) t.join();
}

// Compares addresses as integers: the second block may be in another allocation.
uintptr_t At(const ArrayRef& a) { return reinterpret_cast<uintptr_t>(a.get()); }

TEST(Blocks, OfHugeOnesTheLastIsKept) {
  if (!kFreeLists) GTEST_SKIP() << "this build has plain heap in place of free lists";
  for (uint64_t n : {5 << 20, 30 << 20, 64 << 20}) {
    ArrayRef older = Bytes(n, 1);
    ArrayRef newer = Bytes(n, 2);
    uintptr_t first = At(older);
    EXPECT_NE(first, At(newer));
    older = {};
    older = Bytes(n - 1000, 3);
    EXPECT_EQ(At(older), first) << n;
    EXPECT_TRUE(Holds(newer, n, 2) && Holds(older, n - 1000, 3)) << n;
  }
  ArrayRef large = Bytes(40 << 20, 1);
  uintptr_t kept = At(large);
  large = {};
  EXPECT_NE(At(Bytes(20 << 20, 1)), kept) << "half of it would be idle";
  EXPECT_EQ(Bytes(65 << 20, 1)->block, kHeapBlock);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([] {
      for (uint8_t i = 0; i < 20; i++) EXPECT_TRUE(Holds(Bytes(5000000, i), 5000000, i));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Blocks, LiveArraysAreApart) {
  std::vector<ArrayRef> live;
  std::set<keel_array*> places;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 500; i++) {
      uint64_t n = static_cast<uint64_t>(i) * 37 % 9000;
      live.push_back(Bytes(n, static_cast<uint8_t>(i)));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(live.back()->data()) % kAlign, 0u);
      places.insert(live.back().get());
    }
    EXPECT_EQ(places.size(), live.size());
    for (int i = 0; i < 500; i++)
      EXPECT_TRUE(
          Holds(live[static_cast<size_t>(i)], static_cast<uint64_t>(i) * 37 % 9000, static_cast<uint8_t>(i)));
    places.clear();
    live.clear();
  }
}

TEST(Blocks, ReusedBlocksForgetTheirStridesAndOwner) {
  int released = 0;
  int32_t data[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {3, 2}, steps[] = {1, 3};
  for (int i = 0; i < 100; i++) {
    keel_tensor t = {data, {1, 0}, 2, AbiDType(DType::kI32), shape, steps, 0};
    auto count = [](void* p) { ++*static_cast<int*>(p); };
    { ArrayRef borrowed = *WrapArray(t, count, &released); }
    EXPECT_TRUE(Holds(Bytes(24, 7), 24, 7));
  }
  EXPECT_EQ(released, 100);
}

// One thread allocates, the other releases: one thread's free lists run empty and the other's overflow.
TEST(Blocks, ArraysWanderBetweenThreads) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ArrayRef> queue;
  constexpr int kArrays = 20000;
  int wrong = 0;
  std::thread consumer([&] {
    for (int got = 0; got < kArrays;) {
      std::vector<ArrayRef> batch;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !queue.empty(); });
        batch.swap(queue);
      }
      for (ArrayRef& a : batch) wrong += !Holds(a, a->bytes(), static_cast<uint8_t>(a->bytes())), got++;
    }
  });
  for (int i = 0; i < kArrays; i++) {
    auto n = static_cast<uint64_t>(i % 700);
    ArrayRef a = Bytes(n, static_cast<uint8_t>(n));
    std::lock_guard lock(mutex);
    queue.push_back(std::move(a));
    changed.notify_one();
  }
  consumer.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Blocks, ThreadsComeAndGo) {
  std::vector<ArrayRef> kept(64);
  for (int round = 0; round < 20; round++) {
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 4; t++)
      threads.emplace_back([&, t] {
        std::vector<ArrayRef> mine;
        for (int i = 0; i < 200; i++)
          mine.push_back(Bytes(static_cast<uint64_t>(i), static_cast<uint8_t>(t)));
        for (size_t i = 0; i < 16; i++) kept[t * 16 + i] = mine[i * 10];
      });
    for (std::thread& t : threads) t.join();
    for (size_t k = 0; k < kept.size(); k++)
      EXPECT_TRUE(Holds(kept[k], k % 16 * 10, static_cast<uint8_t>(k / 16)));
  }
}

// A thread-local of the program may be destroyed after the free lists of its thread.
TEST(Blocks, ReleaseInAThreadsLastDestructors) {
  std::thread([] {
    static thread_local std::vector<ArrayRef> late;
    for (int i = 0; i < 100; i++) late.push_back(Bytes(10, 1));
  }).join();
  EXPECT_TRUE(Holds(Bytes(10, 3), 10, 3));
}

// The last of many holders frees the array, in any thread.
TEST(Blocks, SharedArraysAreReleasedOnce) {
  for (int round = 0; round < 200; round++) {
    ArrayRef shared = Bytes(100, 9);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++)
      threads.emplace_back([copy = shared] {
        for (int i = 0; i < 50; i++) ArrayRef again = copy;
      });
    shared = ArrayRef();
    for (std::thread& t : threads) t.join();
  }
}

}  // namespace
}  // namespace keel
