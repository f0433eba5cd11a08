// pool_test.cc: the caching allocator of device memory against a simple model: random allocations and frees
// on a device of a few megabytes whose queues finish work late.
#include "kernel/runtime/device/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace keel {
namespace {

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;

// A device: segments at fake addresses, a limit, and tickets that the test completes.
class Source : public SegmentSource {
 public:
  explicit Source(uint64_t memory) : memory_(memory) {}

  absl::StatusOr<keel_segment> NewSegment(uint32_t kind, uint64_t bytes) override {
    EXPECT_EQ(kind, uint32_t{KEEL_SEGMENT_DEVICE});
    if (!fail_next.ok()) return std::exchange(fail_next, absl::OkStatus());
    if (used + bytes > memory_) return Exhausted("full");
    keel_segment made{nullptr, next_, nullptr, bytes, kind, 0};
    next_ += (bytes + kGap) / kGap * kGap + kGap;  // no two segments touch
    live[made.address] = bytes;
    used += bytes;
    return made;
  }
  void FreeSegment(const keel_segment& s) override {
    ASSERT_EQ(live.count(s.address), 1u);
    used -= live.at(s.address);
    live.erase(s.address);
    for (int q = 0; q < kQueues; q++)
      EXPECT_FALSE(Busy(q, s.address, s.address + s.bytes)) << "freed while queue " << q << " uses it";
  }
  // Whether that queue still uses any of these bytes.
  bool Busy(int q, uint64_t from, uint64_t to) {
    std::erase_if(given, [&](const Given& g) {
      bool is_done = true;
      for (int each = 0; each < kQueues; each++) is_done = is_done && g.used.of[each] <= done.of[each];
      return is_done;
    });
    return std::any_of(given.begin(), given.end(), [&](const Given& g) {
      return g.from < to && from < g.to && g.used.of[q] > done.of[q];
    });
  }
  Batches Done() override { return done; }
  absl::Status WaitForAll() override {
    waits++;
    if (!wait_fails.ok()) return wait_fails;
    done = last;
    return absl::OkStatus();
  }

  static constexpr uint64_t kGap = 1 << 16;
  std::map<uint64_t, uint64_t> live;  // bytes by address
  struct Given {                      // a freed block, and when its work is done
    uint64_t from, to;
    Batches used;
  };
  std::vector<Given> given;
  uint64_t used = 0;
  int waits = 0;
  Batches done, last;
  absl::Status fail_next, wait_fails;

 private:
  const uint64_t memory_;
  uint64_t next_ = kGap;
};

// Random use of a pool; invariants are checked after each step.
class Player {
 public:
  Player(uint64_t seed, Source& source, Pool& pool, uint64_t alignment)
      : random_(seed), source_(source), pool_(pool), alignment_(alignment) {}

  void Step() {
    if (One(8)) Finish();
    if (One(200)) pool_.Trim();
    if (One(300)) {
      EXPECT_TRUE(source_.WaitForAll().ok());
    }
    if (live_.empty() || One(2)) return Take();
    auto it = std::next(live_.begin(), static_cast<long>(random_() % live_.size()));
    One(20) ? Lose(it) : Give(it);
  }

  void GiveAll() {
    while (!live_.empty()) Give(live_.begin());
  }
  int full() const { return full_; }
  size_t live() const { return live_.size(); }

 private:
  using Live = std::map<uint64_t, std::pair<Allocation, Batches>>;  // by address

  bool One(uint64_t in) { return random_() % in == 0; }
  uint64_t Size() {
    constexpr uint64_t kSizes[] = {0, 1, 511, 512, 513, 4 * kKiB, 100 * kKiB, kMiB, kMiB + 1, 3 * kMiB};
    return One(2) ? kSizes[random_() % std::size(kSizes)] : random_() % (2 * kMiB);
  }

  void Take() {
    int queue = static_cast<int>(random_() % kQueues);
    uint64_t bytes = Size(), waits = static_cast<uint64_t>(source_.waits);
    absl::StatusOr<Allocation> piece = pool_.Allocate(bytes, queue);
    if (!piece.ok()) return CheckFull(piece.status(), bytes, waits);
    CheckPlace(*piece, bytes);
    CheckNotBusy(*piece, queue);
    live_[piece->address()] = {*piece, {}};
    if (One(4)) return;  // never used
    for (int q : {queue, static_cast<int>(random_() % kQueues)})
      live_[piece->address()].second.of[q] = ++source_.last.of[q];
  }

  void CheckPlace(const Allocation& piece, uint64_t bytes) {
    uint64_t from = piece.address(), to = from + std::max<uint64_t>(bytes, 1);
    ASSERT_EQ(piece.bytes, bytes);
    ASSERT_EQ(from % alignment_, 0u);
    auto segment = std::prev(source_.live.upper_bound(from));
    ASSERT_LE(to, segment->first + segment->second) << "beyond its segment";
    auto after = live_.lower_bound(from);
    EXPECT_TRUE(after == live_.end() || to <= after->first) << "over the next piece";
    if (after != live_.begin()) {
      const Allocation& before = std::prev(after)->second.first;
      ASSERT_LE(before.address() + std::max<uint64_t>(before.bytes, 1), from) << "over the one before";
    }
  }

  // The last use of the memory has ended, or precedes in the same queue.
  void CheckNotBusy(const Allocation& piece, int queue) {
    for (int q = 0; q < kQueues; q++) {
      if (q == queue) continue;
      ASSERT_FALSE(source_.Busy(q, piece.address(), piece.address() + std::max<uint64_t>(piece.bytes, 1)))
          << "another queue still uses it";
    }
  }

  void CheckFull(const absl::Status& status, uint64_t bytes, uint64_t waits) {
    full_++;
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    std::string text(status.message()), wanted = absl::StrCat("no room for ", bytes, " bytes");
    EXPECT_NE(text.find(wanted), std::string::npos) << text;
    EXPECT_NE(text.find(absl::StrCat("in ", live_.size(), " pieces")), std::string::npos) << text;
    size_t segments = 0;
    for (size_t at = 0; (at = text.find("\n  segment of ", at)) != std::string::npos; at++) segments++;
    EXPECT_EQ(segments, std::min<size_t>(pool_.Count().segments, 12)) << text;
    EXPECT_GT(static_cast<uint64_t>(source_.waits), waits) << "did not wait for work in flight";
  }

  void Give(Live::iterator it) {
    auto [piece, tickets] = it->second;
    source_.given.push_back({piece.address(), piece.address() + piece.bytes, tickets});
    live_.erase(it);
    pool_.Free(piece, tickets);
  }
  // As after a failure: everything encoded by then may use it.
  void Lose(Live::iterator it) {
    it->second.second = source_.last;
    Give(it);
  }

  void Finish() {
    for (int q = 0; q < kQueues; q++)
      source_.done.of[q] += random_() % (source_.last.of[q] - source_.done.of[q] + 1);
  }

  std::mt19937_64 random_;
  Source& source_;
  Pool& pool_;
  const uint64_t alignment_;
  Live live_;
  int full_ = 0;
};

struct Setup {
  bool cache;
  uint64_t alignment, max_segment;
};
class PoolModel : public testing::TestWithParam<Setup> {};

TEST_P(PoolModel, RandomSequences) {
  int full = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    SCOPED_TRACE(seed);
    const auto& [cache, alignment, max_segment] = GetParam();
    Source source(40 * kMiB);
    {
      Pool pool(source, {"toy:0", alignment, max_segment, cache});
      Player player(seed, source, pool, alignment);
      for (int i = 0; i < 3000 && !testing::Test::HasFatalFailure(); i++) player.Step();
      full += player.full();
      EXPECT_EQ(pool.Count().segments, source.live.size());
      player.GiveAll();
      ASSERT_TRUE(source.WaitForAll().ok());
      EXPECT_EQ(pool.Count().used_pieces, 0u);
      EXPECT_EQ(pool.Count().used_bytes, 0u);
      pool.Trim();  // all blocks merged again, so every segment is returned
      EXPECT_EQ(pool.Count().segments, 0u);
      EXPECT_EQ(source.used, 0u);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(full, 100);
}
INSTANTIATE_TEST_SUITE_P(, PoolModel,
                         testing::Values(Setup{true, 64, 0}, Setup{true, 4096, 0}, Setup{true, 256, 4 * kMiB},
                                         Setup{false, 64, 0}));

// A device fills memory in words of 4 bytes: a fill must not leave the segment.
TEST(PoolWithoutCache, EachPieceHasASegmentOfWholeWords) {
  Source source(kMiB);
  Pool pool(source, {"toy:0", 64, 0, false});
  const std::map<uint64_t, uint64_t> segments{{0, 4}, {1, 4}, {4, 4}, {5, 8}, {1021, 1024}, {1024, 1024}};
  for (const auto& [bytes, segment] : segments) {
    absl::StatusOr<Allocation> piece = pool.Allocate(bytes, 0);
    ASSERT_TRUE(piece.ok()) << piece.status();
    EXPECT_EQ(source.live.at(piece->address()), segment) << bytes;
    EXPECT_EQ(piece->bytes, bytes);
    pool.Free(*piece, {});
  }
}

class PoolTest : public testing::Test {
 protected:
  Allocation Take(uint64_t bytes, int queue = 0) {
    absl::StatusOr<Allocation> piece = pool_.Allocate(bytes, queue);
    EXPECT_TRUE(piece.ok()) << piece.status();
    return piece.ok() ? *piece : Allocation();
  }
  Source source_{8 * kMiB};
  Pool pool_{source_, {"toy:0"}};
};

TEST_F(PoolTest, NeighboursGrowTogetherInEachOrder) {
  std::vector<int> order{0, 1, 2, 3};
  do {
    std::vector<Allocation> pieces;
    for (int i = 0; i < 4; i++) pieces.push_back(Take(512 * kKiB));
    for (int i : order) pool_.Free(pieces[static_cast<size_t>(i)], {});
    Allocation whole = Take(kMiB), rest = Take(kMiB);
    EXPECT_EQ(pool_.Count().segments, 1u);
    pool_.Free(whole, {});
    pool_.Free(rest, {});
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(PoolTest, AQueueMayHaveItsOwnMemoryAtOnceAnotherWaits) {
  Allocation first = Take(3 * kMiB, 0);
  pool_.Free(first, {{1, 0}});
  Allocation other = Take(3 * kMiB, 1);
  EXPECT_NE(other.address(), first.address());
  EXPECT_EQ(Take(3 * kMiB, 0).address(), first.address());
  pool_.Free(other, {{0, 5}});
  source_.done = {{1, 5}};
  EXPECT_EQ(Take(3 * kMiB, 0).address(), other.address());
}

TEST_F(PoolTest, ASmallPieceIsUsedAgainByTheComputeQueueAlone) {
  Allocation first = Take(kKiB), second = Take(kKiB);
  pool_.Free(second, {{7, 0}});
  pool_.Free(first, {{7, 0}});
  EXPECT_EQ(pool_.Count().used_pieces, 0u);
  Allocation host = Take(kKiB, kHostFirst), transfer = Take(kKiB, 1);
  for (const Allocation& other : {host, transfer})
    EXPECT_TRUE(other.address() != first.address() && other.address() != second.address());
  EXPECT_EQ(Take(513).address(), first.address());  // the last one freed; 513 bytes round up to 1 KiB
  EXPECT_EQ(Take(kKiB).address(), second.address());
  pool_.Free(host, {{0, 9}});
  EXPECT_NE(Take(kKiB).address(), host.address());  // the transfer queue may still use it
  EXPECT_EQ(pool_.Count().used_pieces, 4u);
}

TEST_F(PoolTest, SmallPiecesGrowTogetherBeforeANewSegment) {
  std::vector<Allocation> pieces;
  for (int i = 0; i < 128; i++) pieces.push_back(Take(16 * kKiB));  // a whole segment
  for (const Allocation& piece : pieces) pool_.Free(piece, {{3, 0}});
  EXPECT_EQ(Take(kMiB).segment, pieces[0].segment);
  EXPECT_EQ(Take(kMiB).segment, pieces[0].segment);
  EXPECT_EQ(pool_.Count().segments, 1u);
}

TEST_F(PoolTest, APieceInFlightLeavesTheRestOfItsSegmentToTheHost) {
  for (uint64_t batch = 1; batch <= 32; batch++) pool_.Free(Take(64 * kKiB, kHostFirst), {{batch, 0}});
  EXPECT_EQ(pool_.Count().segments, 1u);
  source_.done = {{32, 0}};
  for (int i = 0; i < 32; i++) Take(64 * kKiB, kHostFirst);
  EXPECT_EQ(pool_.Count().segments, 1u);  // all of it, again
}

TEST_F(PoolTest, NeighboursOfWhichOneIsInFlightGrowTogetherForItsQueue) {
  std::vector<Allocation> pieces;
  for (int i = 0; i < 4; i++) pieces.push_back(Take(512 * kKiB));  // a whole segment
  pool_.Free(pieces[0], {{1, 0}});
  pool_.Free(pieces[1], {});
  EXPECT_EQ(Take(kMiB, 0).address(), pieces[0].address());
  pool_.Free(pieces[2], {{2, 0}});
  pool_.Free(pieces[3], {});
  EXPECT_EQ(Take(512 * kKiB, 1).address(), pieces[3].address());
  EXPECT_EQ(pool_.Count().segments, 1u);
}

TEST_F(PoolTest, WhenFullItWaitsReturnsWhatIsCachedAndTriesAgain) {
  std::vector<Allocation> small;
  for (int i = 0; i < 8; i++) small.push_back(Take(kMiB));  // four segments: the device is full
  EXPECT_EQ(source_.used, 8 * kMiB);
  source_.last = {{9, 0}};
  for (Allocation& piece : small) pool_.Free(piece, source_.last);
  Allocation large = Take(6 * kMiB, 1);  // no block is so large, and all are in use by queue 0
  EXPECT_EQ(source_.waits, 1);
  EXPECT_GE(large.segment->bytes, 6 * kMiB);
  EXPECT_EQ(pool_.Count().segments, 1u);
}

TEST_F(PoolTest, AFailedWaitIsTheErrorAndTheNextSucceeds) {
  std::vector<Allocation> pieces;
  for (int i = 0; i < 8; i++) pieces.push_back(Take(kMiB));
  source_.last = {{1, 0}};
  for (const Allocation& piece : pieces) pool_.Free(piece, source_.last);
  source_.wait_fails = Internal("the device hangs");
  EXPECT_EQ(pool_.Allocate(kMiB, 1).status(), source_.wait_fails);
  source_.wait_fails = absl::OkStatus();
  EXPECT_TRUE(pool_.Allocate(kMiB, 1).ok());
  EXPECT_EQ(source_.waits, 2);
}

TEST_F(PoolTest, TheHostGetsOnlyMemoryThatNoQueueUses) {
  Allocation first = Take(3 * kMiB, kHostFirst);
  pool_.Free(first, {{0, 1}});
  EXPECT_NE(Take(3 * kMiB, kHostFirst).address(), first.address());
  source_.done = {{0, 1}};
  EXPECT_EQ(Take(3 * kMiB, kHostFirst).address(), first.address());
}

TEST_F(PoolTest, ThisMapIsInTheError) {
  Allocation first = Take(512 * kKiB);
  Take(kKiB);
  Take(3 * kMiB);
  pool_.Free(first, {});
  absl::Status status = pool_.Allocate(7 * kMiB, 0).status();
  EXPECT_EQ(
      status.message(),
      "device toy:0 has no room for 7340032 bytes: full; in use 3.0 MiB in 2 pieces, 5.0 MiB in 2 segments\n"
      "  segment of 2.0 MiB: 1 pieces use 1 KiB, free 1.9 MiB, largest gap 1.4 MiB\n"
      "  segment of 3.0 MiB: 1 pieces use 3.0 MiB, free 0 B, largest gap 0 B");
  EXPECT_NE(ErrorFact(status, kErrorHint), "");
}

TEST_F(PoolTest, OtherErrorsOfTheDevicePassThrough) {
  source_.fail_next = Internal("broken");
  EXPECT_EQ(pool_.Allocate(1, 0).status(), Internal("broken"));
  EXPECT_EQ(source_.waits, 0);
  EXPECT_TRUE(pool_.Allocate(1, 0).ok());
}

}  // namespace
}  // namespace keel
