// cpu_pool_test.cc: the thread pool of the cpu device (plugins/cpu/threads), without the device, so that
// ThreadSanitizer can check it.
#include <fenv.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "plugins/cpu/threads/pool.h"
#include "plugins/cpu/threads/threads.h"
#include "tests/in_child.h"

extern "C" {
void KEEL_parallel_start(void (*function)(void*), void* data, unsigned threads);
void KEEL_parallel_end();
void KEEL_barrier();
bool KEEL_loop_static_start(long start, long end, long step, long chunk, long* first, long* last);
bool KEEL_loop_static_next(long* first, long* last);
int kel_get_thread_num();
int kel_get_num_threads();
int kel_get_max_threads();
int kel_in_parallel();
}

namespace {

using keel_threads::Backoff;
using keel_threads::kMicrosecond;
using keel_threads::kMillisecond;

void InParts(int n, std::function<void(int)> part) {
  keel_threads_run(
      n, [](void* f, int number, int) { (*static_cast<std::function<void(int)>*>(f))(number); }, &part);
}
// The code that GCC 4.8 emits for `#pragma omp parallel num_threads(n)`.
void OmpParallel(unsigned n, std::function<void()> body) {
  const auto call = [](void* f) { (*static_cast<std::function<void()>*>(f))(); };
  KEEL_parallel_start(call, &body, n);
  body();
  KEEL_parallel_end();
}
// Helpers for the regions of this thread, until the end of the scope.
struct Helpers {
  explicit Helpers(int n) { keel_threads_set_helpers(n); }
  ~Helpers() { keel_threads_set_helpers(INT_MAX); }
};
// Blocks until all n parts are here, like oneDNN's own barriers, which the pool does not see.
void Meet(std::atomic<int>* here, int n) {
  here->fetch_add(1);
  while (here->load() < n) std::this_thread::yield();
}

TEST(Pool, EachPartRunsOnceAndTheCallerHasTheFirst) {
  for (int n = 1; n <= 9; n++)
    for (int round = 0; round < 200; round++) {
      std::vector<std::atomic<int>> times(static_cast<size_t>(n));
      std::thread::id first;
      InParts(n, [&](int i) {
        times[static_cast<size_t>(i)]++;
        if (i == 0) first = std::this_thread::get_id();
      });
      for (auto& t : times) ASSERT_EQ(t, 1);
      ASSERT_EQ(first, std::this_thread::get_id());
    }
}

TEST(Pool, WithoutHelpersTheCallerRunsAllParts) {
  const Helpers none(0);
  std::set<std::thread::id> who;
  InParts(5, [&](int) { who.insert(std::this_thread::get_id()); });
  EXPECT_EQ(who, std::set{std::this_thread::get_id()});
}

TEST(Pool, PartsThatWaitForEachOtherGetAThreadEach) {
  for (const int helpers : {0, 1, INT_MAX}) {
    const Helpers limited(helpers);
    for (int round = 0; round < 5; round++) {
      std::atomic<int> here{0};
      InParts(4, [&](int) { Meet(&here, 4); });
      EXPECT_EQ(here, 4);
    }
  }
}

TEST(Pool, PartsThatAreSaidToWaitForEachOtherGetThreadsAtOnce) {
  const Helpers none(0);
  keel_threads_set_gang(1);
  keel_threads::Region r;
  r.part = [](void*, int, int) {};
  r.n = 3;
  keel_threads::Pool::Get().Open(&r, 0);
  EXPECT_TRUE(r.queued);
  EXPECT_EQ(r.helpers, 2);
  keel_threads::Pool::Get().Close(&r);
  keel_threads_set_gang(0);
}

TEST(Pool, CallersAtOnceWhosePartsWaitForEachOtherAllEnd) {
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; c++)
    callers.emplace_back([c] {
      const Helpers some(c % 3 == 0 ? 0 : c % 3 == 1 ? 1 : INT_MAX);
      for (int round = 0; round < 10; round++) {
        std::atomic<int> here{0};
        const int n = 2 + (c + round) % 3;
        InParts(n, [&](int) { Meet(&here, n); });
        ASSERT_EQ(here, n);
      }
    });
  for (auto& c : callers) c.join();
}

TEST(Pool, AWorkerThatIsHeldUpInOneRegionDelaysNoOther) {
  keel_threads_reserve(2);
  const int workers = keel_threads::Pool::Get().Workers();
  std::latch held(workers), go(1);
  std::thread other([&] {
    InParts(workers + 1, [&](int i) {
      if (i > 0) held.count_down();
      if (i > 0 || workers > 0) go.wait();
    });
  });
  held.wait();  // each worker runs a part that does not end
  std::atomic<int> parts{0};
  for (int round = 0; round < 100; round++) InParts(workers + 1, [&](int) { parts++; });
  EXPECT_EQ(parts, 100 * (workers + 1));
  go.count_down();
  other.join();
}

TEST(Pool, ARegionInsideARegionRunsOnItsThread) {
  std::atomic<int> parts{0}, apart{0};
  InParts(3, [&](int) {
    EXPECT_TRUE(keel_threads_inside());
    const auto me = std::this_thread::get_id();
    InParts(4, [&](int) {
      parts++;
      if (std::this_thread::get_id() != me) apart++;
    });
    OmpParallel(4, [&] {
      EXPECT_EQ(kel_get_num_threads(), 1);
      EXPECT_EQ(kel_get_thread_num(), 0);
      EXPECT_TRUE(kel_in_parallel());
      KEEL_barrier();
      parts++;
    });
  });
  EXPECT_FALSE(keel_threads_inside());
  EXPECT_EQ(parts, 3 * 5);
  EXPECT_EQ(apart, 0);
}

TEST(Pool, AForkedChildHasWorkersOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts a thread";
#endif
  InParts(3, [](int) {});
  EXPECT_EQ(keel_test::InChild(20,
                               [] {
                                 std::atomic<int> here{0};
                                 InParts(3, [&](int) { Meet(&here, 3); });
                                 return here == 3;
                               }),
            0);
}

// The caller receives the flags of all parts, whichever threads ran them; its options apply to all.
TEST(Pool, FloatingPointStateBelongsToTheRegion) {
  for (const int bad : {0, 1, 2}) {
    feclearexcept(FE_ALL_EXCEPT);
    std::atomic<int> here{0};
    InParts(3, [&](int i) {
      Meet(&here, 3);
      volatile double zero = 0, x = 1;
      if (i == bad) x = zero / zero;
      static_cast<void>(x);
    });
    EXPECT_TRUE(fetestexcept(FE_INVALID)) << bad;
    EXPECT_FALSE(fetestexcept(FE_DIVBYZERO));
    feclearexcept(FE_ALL_EXCEPT);
    InParts(3, [&](int) {});
    EXPECT_FALSE(fetestexcept(FE_INVALID)) << "the flag of an earlier region";
  }
  fesetround(FE_UPWARD);
  std::atomic<int> here{0}, upward{0};
  InParts(3, [&](int) {
    Meet(&here, 3);
    volatile double one = 1, tiny = 1e-30;
    if (one + tiny > 1) upward++;
  });
  fesetround(FE_TONEAREST);
  EXPECT_EQ(upward, 3);
}

TEST(Omp, ThreadsAreNumberedAndMeetAtBarriers) {
  for (const int helpers : {0, INT_MAX}) {
    const Helpers some(helpers);
    std::mutex mutex;
    std::multiset<int> numbers;
    std::atomic<int> before{0};
    OmpParallel(4, [&] {
      EXPECT_EQ(kel_get_num_threads(), 4);
      for (int round = 1; round <= 3; round++) {
        before++;
        KEEL_barrier();
        EXPECT_EQ(before, 4 * round);
        KEEL_barrier();
      }
      const std::lock_guard lock(mutex);
      numbers.insert(kel_get_thread_num());
    });
    EXPECT_EQ(numbers, (std::multiset{0, 1, 2, 3}));
    EXPECT_EQ(kel_get_num_threads(), 1);
    EXPECT_FALSE(kel_in_parallel());
  }
}

TEST(Omp, WithoutANumberARegionHasTheThreadsThatWereSet) {
  keel_threads_set(3);
  std::atomic<int> parts{0};
  OmpParallel(0, [&] { parts++; });
  EXPECT_EQ(parts, 3);
  EXPECT_EQ(kel_get_max_threads(), 3);
  keel_threads_set(1);
}

TEST(Omp, StaticLoopsGiveEachIterationToOneThread) {
  struct Case {
    long start, end, step, chunk;
  };
  for (const Case c : {Case{0, 10, 1, 0},
                       {0, 10, 1, 3},
                       {5, -6, -2, 0},
                       {5, -6, -2, 1},
                       {0, 2, 1, 0},
                       {3, 3, 1, 2},
                       {0, 100, 7, 4}})
    for (const unsigned n : {1u, 3u, 4u}) {
      std::mutex mutex;
      std::multiset<long> seen, wanted;
      for (long i = c.start; c.step > 0 ? i < c.end : i > c.end; i += c.step) wanted.insert(i);
      OmpParallel(n, [&] {
        long first = 0, last = 0;
        if (KEEL_loop_static_start(c.start, c.end, c.step, c.chunk, &first, &last)) do {
            const std::lock_guard lock(mutex);
            for (long i = first; c.step > 0 ? i < last : i > last; i += c.step) seen.insert(i);
          } while (KEEL_loop_static_next(&first, &last));
      });
      EXPECT_EQ(seen, wanted) << c.start << " " << c.end << " " << c.step << " " << c.chunk << " " << n;
    }
}

TEST(Backoff, HalfTheWorkersThenNoneWhileThreadsAreDelayed) {
  Backoff b;
  EXPECT_EQ(b.Helpers(7, 0), 7);
  b.Delayed(kMillisecond, 7, 1000 * kMillisecond);  // ten times as long
  EXPECT_EQ(b.Helpers(7, 1009 * kMillisecond), 3);
  EXPECT_EQ(b.Helpers(2, 1009 * kMillisecond), 2);
  EXPECT_EQ(b.Helpers(7, 1010 * kMillisecond), 7);
  b.Delayed(kMillisecond, 7, 1015 * kMillisecond);  // soon after: fewer workers, for twice as long
  EXPECT_EQ(b.Helpers(7, 1034 * kMillisecond), 1);
  EXPECT_EQ(b.Helpers(7, 1035 * kMillisecond), 7);
  b.Delayed(kMillisecond, 7, 1036 * kMillisecond);
  EXPECT_EQ(b.Helpers(7, 1075 * kMillisecond), 0);
  EXPECT_TRUE(b.Loaded(1075 * kMillisecond));
  b.Delayed(100 * kMicrosecond, 7, 5000 * kMillisecond);  // long after: like the first time
  EXPECT_EQ(b.Helpers(7, 5001 * kMillisecond - 1), 3);
  EXPECT_EQ(b.Helpers(7, 5001 * kMillisecond), 7);
  EXPECT_FALSE(b.Loaded(6000 * kMillisecond));
}

TEST(Backoff, NoDelayCostsTheWorkersForLong) {
  Backoff b;
  keel_threads::Ns now = kMillisecond;
  for (int i = 0; i < 30; i++) b.Delayed(4 * kMillisecond, 1, now += kMillisecond);
  EXPECT_EQ(b.Helpers(1, now + Backoff::kLongest - 1), 0);
  EXPECT_EQ(b.Helpers(1, now + Backoff::kLongest), 1);
}

TEST(Pool, ReportsOfDelaysLeaveTheWorkAndStillEnd) {
  auto& pool = keel_threads::Pool::Get();
  for (int i = 0; i < 12; i++) pool.Delayed(kMillisecond, keel_threads::Now());
  std::atomic<int> here{0};
  std::set<std::thread::id> who;
  InParts(3, [&](int) { who.insert(std::this_thread::get_id()); });
  EXPECT_EQ(who.size(), 1u);
  InParts(3, [&](int) { Meet(&here, 3); });
  EXPECT_EQ(here, 3);
}

}  // namespace
