// mutex_test.cc: mutexes stay valid across fork(), whether held briefly, for long or by the forking thread,
// and under constant contention.
#include "kernel/base/mutex.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/in_child.h"

namespace keel {
namespace {

using std::chrono::milliseconds;

int InChild(const std::function<bool()>& body) { return keel_test::InChild(10, body); }

// A thread that holds `lock` during the lifetime of this object.
template <typename Lock>
class Held {
 public:
  explicit Held(Lock& lock)
      : thread_([this, &lock] {
          std::lock_guard held(lock);
          taken_ = true;
          while (!enough_) std::this_thread::yield();
        }) {
    while (!taken_) std::this_thread::yield();
  }
  ~Held() {
    enough_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> taken_{false}, enough_{false};
  std::thread thread_;
};

// True if the lock is free; otherwise this blocks forever.
bool Free(RecursiveMutex& lock) {
  {
    std::lock_guard outer(lock);
    std::lock_guard inner(lock);
  }
#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer allows only one thread in a child
  Held by_others_then(lock);
#endif
  return true;
}
bool Free(Mutex& lock) {
  if (!lock.try_lock()) return false;
  bool mine = lock.mine();
  lock.unlock();
  return mine && !lock.mine();
}

// The minimum of several runs: the machine may be busy.
double MsOf(const std::function<void()>& body) {
  double least = 1e9;
  for (int i = 0; i < 5; i++) {
    auto begin = std::chrono::steady_clock::now();
    body();
    least = std::min(
        least, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
}

TEST(Mutex, IsALock) {
  Mutex mutex;
  EXPECT_TRUE(Free(mutex));
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; i++) {
        std::lock_guard lock(mutex);
        count++;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(count, 4000);
  Held other(mutex);
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_FALSE(mutex.mine());
}

TEST(Mutex, IsFreeInAChildWhereItWasFree) {
  Mutex mutex, work(Mutex::kLong);
  RecursiveMutex nested;
  EXPECT_EQ(InChild([&] { return Free(mutex) && Free(work) && Free(nested); }), 0);
  EXPECT_TRUE(Free(mutex) && Free(work) && Free(nested));
}

TEST(Mutex, IsFreeInAChildWhereAThreadHeldItForLong) {
  Mutex mutex, work(Mutex::kLong);
  RecursiveMutex nested;
  {
    Held one(mutex);
    Held two(work);
    Held three(nested);
    EXPECT_EQ(InChild([&] { return Free(mutex) && Free(work) && Free(nested); }), 0);
    EXPECT_FALSE(mutex.try_lock()) << "the parent's stays as it is";
    EXPECT_FALSE(work.try_lock());
  }
  EXPECT_TRUE(Free(mutex) && Free(work) && Free(nested));
}

TEST(Mutex, IsWaitedForSoThatNothingIsHalfChanged) {
  Mutex mutex;
  std::atomic<bool> enough{false};
  int64_t one = 0, other = 0;
  std::thread changes([&] {
    while (!enough) {
      {
        std::lock_guard lock(mutex);
        one++;
        std::this_thread::sleep_for(milliseconds(1));
        other++;
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  for (int i = 0; i < 50; i++) EXPECT_EQ(InChild([&] { return Free(mutex) && one == other; }), 0);
  enough = true;
  changes.join();
  EXPECT_EQ(one, other);
}

TEST(Mutex, IsNotWaitedForLongerThanItTakes) {
  Mutex mutex, work(Mutex::kLong);
  {
    Held long_work(work);
    EXPECT_LT(MsOf([&] { InChild([] { return true; }); }), 40) << "work is not waited for";
  }
  Held held(mutex);
  double ms = MsOf([&] { InChild([] { return true; }); });
  EXPECT_GT(ms, 40);
  EXPECT_LT(ms, 2000);
}

TEST(Mutex, OfTheForkingThreadStaysItsOwnInBoth) {
  Mutex mutex;
  RecursiveMutex nested;
  std::unique_lock lock(mutex);
  std::lock_guard outer(nested);
  double ms = MsOf([&] {
    EXPECT_EQ(InChild([&] {
                bool held = mutex.mine() && !mutex.try_lock();
                { std::lock_guard inner(nested); }
                lock.unlock();
                return held && Free(mutex) && InChild([&] { return Free(mutex); }) == 0;
              }),
              0);
  });
  EXPECT_LT(ms, 40) << "fork() waited for the mutex";
  EXPECT_TRUE(mutex.mine());
  lock.unlock();
  EXPECT_TRUE(Free(mutex));
}

TEST(Mutex, MayBeMadeTakenInAnyOrderAndDestroyedWhileOthersFork) {
  Mutex a, b;
  std::atomic<bool> enough{false};
  auto nest = [&](Mutex& outer,
                  Mutex& inner) {  // the order of the pair differs: std::scoped_lock uses try_lock
    while (!enough) {
      std::scoped_lock lock(outer, inner);
      Mutex fresh;
      std::lock_guard one(fresh);
    }
  };
  std::thread one([&] { nest(a, b); }), two([&] { nest(b, a); });
  for (int i = 0; i < 50; i++)
    EXPECT_EQ(InChild([&] {
                Mutex fresh;
                return Free(a) && Free(b) && Free(fresh);
              }),
              0);
  enough = true;
  one.join();
  two.join();
}

TEST(Once, IsDoneOnce) {
  Once once;
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      once.Do([&] {
        std::this_thread::sleep_for(milliseconds(5));
        done++;
      });
      EXPECT_EQ(done, 1);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(InChild([&] { return once.Do([&] { done++; }), done == 1; }), 0);
}

TEST(Once, IsDoneByTheNextWhereItFails) {
  Once once;
  EXPECT_THROW(once.Do([] { throw std::bad_alloc(); }), std::bad_alloc);
  int done = 0;
  once.Do([&] { done++; });
  EXPECT_EQ(done, 1);
}

TEST(Once, IsDoneAnewInAChildOfAForkDuringIt) {
  Once once;
  std::atomic<int> begun{0};
  std::atomic<bool> enough{false};
  std::thread slow([&] {
    once.Do([&] {
      begun++;
      while (!enough) std::this_thread::yield();
    });
  });
  while (!begun) std::this_thread::yield();
  EXPECT_EQ(InChild([&] {
              bool here = false;
              once.Do([&] { here = true; });
              return here;
            }),
            0);
  enough = true;
  slow.join();
  once.Do([&] { begun++; });
  EXPECT_EQ(begun, 1);
}

}  // namespace
}  // namespace keel
