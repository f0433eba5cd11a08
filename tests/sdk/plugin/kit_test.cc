// sdk/plugin: spaces, hazards and files. Bodies and the table of ops are tested with plugins/vulkan
// (tests/vulkan).
#include <gtest/gtest.h>
#include <keel/plugin/body.h>
#include <keel/plugin/disk_cache.h>
#include <keel/plugin/hazards.h>
#include <keel/plugin/strides.h>

#include <thread>

namespace {

using namespace keel::plugin;

// ---- strides: merge_dims is the kernel's, tested there; here it returns what a test sets
struct Merged {
  std::vector<int64_t> sizes;
  std::vector<std::vector<int64_t>> strides;
} merged;
keel_rc FakeMerge(const keel_tensor* const*, uint32_t n, int64_t* sizes, int64_t* strides, int32_t* rank) {
  *rank = static_cast<int32_t>(merged.sizes.size());
  std::copy(merged.sizes.begin(), merged.sizes.end(), sizes);
  for (uint32_t t = 0; t < n; t++)
    std::copy(merged.strides[t].begin(), merged.strides[t].end(), strides + t * KEEL_MAX_RANK);
  return KEEL_OK;
}
Space SpaceOf(Merged m) {
  merged = std::move(m);
  keel_host host = {};
  host.merge_dims = FakeMerge;
  std::vector<const keel_tensor*> none(merged.strides.size());
  Space space;
  EXPECT_EQ(find_space(&host, none.data(), static_cast<uint32_t>(none.size()), &space), KEEL_OK);
  return space;
}

TEST(PluginSpace, OfOneElementHasNoDims) {
  const Space s = SpaceOf({{}, {{}, {}}});
  EXPECT_EQ(s.count, 1);
  EXPECT_TRUE(s.is_flat() && s.fits_32_bits());
}
TEST(PluginSpace, IsFlatIfEachTensorHasOneElementOrAll) {
  EXPECT_TRUE(SpaceOf({{70}, {{1}, {0}}}).is_flat());
  EXPECT_FALSE(SpaceOf({{7, 10}, {{10, 1}, {0, 1}}}).is_flat());
  EXPECT_FALSE(SpaceOf({{7, 10}, {{1, 7}, {10, 1}}}).is_flat());
}
TEST(PluginSpace, NeedsWideIndicesBeyondTwoToThe31) {
  EXPECT_TRUE(SpaceOf({{int64_t{1} << 30, 1}, {{1, 0}}}).fits_32_bits());
  EXPECT_FALSE(SpaceOf({{int64_t{1} << 31}, {{1}}}).fits_32_bits());
  EXPECT_FALSE(SpaceOf({{1 << 16, 1 << 16}, {{0, 0}}}).fits_32_bits());             // by the count
  EXPECT_FALSE(SpaceOf({{2, 3}, {{int64_t{1} << 33, 1}, {3, 1}}}).fits_32_bits());  // by the offset
  EXPECT_EQ(SpaceOf({{2, 3}, {{int64_t{1} << 33, 1}}}).most, (int64_t{1} << 33) + 2);
}
TEST(PluginSpace, ReturnsErrors) {
  keel_host host = {};
  host.merge_dims = [](const keel_tensor* const*, uint32_t, int64_t*, int64_t*, int32_t*) -> keel_rc {
    return KEEL_INVALID;
  };
  const keel_tensor* none = nullptr;
  Space space;
  EXPECT_EQ(find_space(&host, &none, 1, &space), KEEL_INVALID);
}

// ---- hazards

TEST(PluginHazards, AreReadAfterWriteWriteAfterReadAndWriteAfterWrite) {
  Ranges r;
  r.Add({{0, 10}}, {{20, 30}});
  EXPECT_TRUE(r.Conflicts({{29, 40}}, {}));
  EXPECT_TRUE(r.Conflicts({}, {{9, 12}}));
  EXPECT_TRUE(r.Conflicts({}, {{0, 100}}));
  EXPECT_FALSE(r.Conflicts({{0, 20}}, {{10, 20}, {30, 40}}));  // both read [0, 10); [10, 20) is free
  r.Clear();
  EXPECT_TRUE(r.empty());
  EXPECT_FALSE(r.Conflicts({{20, 30}}, {{0, 30}}));
}

// ---- the cache

struct PluginCache : testing::Test {
  void SetUp() override { std::filesystem::remove_all(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::filesystem::path OnlyFile() const { return std::filesystem::directory_iterator(folder)->path(); }
  const std::string folder = testing::TempDir() + "keel_cache/" + std::to_string(getpid());
  const DiskCache cache{folder, 1000};
};

TEST_F(PluginCache, FindsWhatWasKept) {
  EXPECT_FALSE(cache.Find("key"));
  EXPECT_TRUE(cache.Keep("key", std::string("a\0b", 3)));
  EXPECT_EQ(DiskCache(folder, 1000).Find("key"), std::string("a\0b", 3));
  EXPECT_TRUE(cache.Keep("key", ""));
  EXPECT_EQ(cache.Find("key"), "");
  EXPECT_FALSE(cache.Find("other"));
}
TEST_F(PluginCache, IgnoresEachDamagedByteAndEachCutFile) {
  ASSERT_TRUE(cache.Keep("key", "content"));
  const std::filesystem::path path = OnlyFile();
  std::string whole(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(whole.data(), static_cast<std::streamsize>(whole.size()));
  for (size_t i = 0; i < whole.size(); i++) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_FALSE(cache.Find("key")) << i;
    std::ofstream(path, std::ios::binary) << whole.substr(0, i);
    EXPECT_FALSE(cache.Find("key")) << i;
  }
  EXPECT_TRUE(cache.Keep("key", "again"));
  EXPECT_EQ(cache.Find("key"), "again");
}
TEST_F(PluginCache, RemovesTheOldestBeyondItsLimit) {
  EXPECT_FALSE(cache.Keep("large", std::string(1001, 'x')));
  for (const char* key : {"a", "b", "c", "d"}) {
    EXPECT_TRUE(cache.Keep(key, std::string(300, *key)));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_FALSE(cache.Find("a"));
  EXPECT_EQ(cache.Find("d"), std::string(300, 'd'));
}
TEST_F(PluginCache, WithoutAFolderKeepsNothing) {
  EXPECT_FALSE(DiskCache("", 1000).Keep("key", "content"));
  EXPECT_FALSE(DiskCache("/proc/none", 1000).Keep("key", "content"));
  EXPECT_FALSE(DiskCache("", 1000).Find("key"));
}
TEST_F(PluginCache, IsSharedByThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; i++) {
        cache.Keep("key", std::string(50, static_cast<char>('a' + t)));
        const auto found = cache.Find("key");
        ASSERT_TRUE(found && found->size() == 50);
        ASSERT_EQ(*found, std::string(50, found->front()));
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
