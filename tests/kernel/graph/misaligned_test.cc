// misaligned_test.cc: constants whose bytes begin anywhere in a file: their aligned copy is made when
// something reads them, shared while someone holds it, and freed when nothing needs it.

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "kernel/language/graph/file_format.h"
#include "tests/kernel/graph/helpers.h"

namespace keel::test {
namespace {

struct MisalignedTest : ::testing::Test {
  static constexpr int kCount = 5000;  // floats
  // At an address that is odd.
  ArrayRef Bytes() {
    static_assert(sizeof(float) == 4);
    for (int i = 0; i < kCount; i++) {
      const auto x = static_cast<float>(i);
      std::memcpy(bytes.data() + 1 + 4 * i, &x, 4);
    }
    keel_tensor t{};
    t.data = bytes.data() + 1;
    t.device = {1, 0};
    t.ndim = 1;
    t.dtype = AbiDType(DType::kF32);
    t.shape = &count;
    auto release = [](void* n) { ++*static_cast<int*>(n); };
    absl::StatusOr<ArrayRef> array = WrapMemory(t, release, &released, true);
    EXPECT_TRUE(array.ok()) << array.status();
    EXPECT_ERROR(WrapArray(t, release, &released).status(), "not aligned");
    return *std::move(array);
  }
  static bool Holds(const void* data) {
    for (int i = 0; i < kCount; i++)
      if (static_cast<const float*>(data)[i] != static_cast<float>(i)) return false;
    return true;
  }

  alignas(64) std::array<char, 4 * kCount + 4> bytes;
  int64_t count = kCount;
  int released = 0;
};

TEST_F(MisalignedTest, AReaderGetsAnAlignedCopyThatAllShare) {
  const Constant c = ConstantOf("w", Bytes());
  ASSERT_TRUE(c.misaligned);
  EXPECT_EQ(c.data, bytes.data() + 1);
  const AlignedData a = DataOf(c), b = DataOf(Constant(c));
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data) % kConstantAlign, 0u);
  EXPECT_TRUE(Holds(a.data));
}

TEST_F(MisalignedTest, ACopyLivesAsLongAsItIsHeldAndIsMadeAgain) {
  const Constant c = ConstantOf("w", Bytes());
  std::weak_ptr<const void> watch = DataOf(c).holder;
  EXPECT_FALSE(watch.expired());  // the constant keeps it
  AlignedData held = DataOf(c);
  DropPages(c);
  EXPECT_TRUE(Holds(held.data));
  EXPECT_EQ(DataOf(c).data, held.data);  // no second one
  DropPages(c);
  held = {};
  EXPECT_TRUE(watch.expired());
  EXPECT_TRUE(Holds(DataOf(c).data));
}

TEST_F(MisalignedTest, AlignedConstantsAndArraysOutliveTheModule) {
  auto c = std::make_unique<Constant>(ConstantOf("w", Bytes()));
  const Constant aligned = Aligned(*c);
  absl::StatusOr<ArrayRef> array = ArrayOf(*c);
  DropPages(*c);
  c = nullptr;
  EXPECT_EQ(released, 1);
  EXPECT_FALSE(aligned.misaligned);
  EXPECT_TRUE(Holds(aligned.data));
  ASSERT_TRUE(array.ok());
  EXPECT_EQ((*array)->data(), aligned.data);
}

TEST_F(MisalignedTest, AModuleTakesThem) {
  Module m{Ops()};
  Graph* g = *m.AddGraph("main");
  const ValueId w = *g->AddConstant(*m.AddConstant(ConstantOf("w", Bytes())));
  EXPECT_TRUE(g->AddResult("y", w).ok());
  EXPECT_TRUE(m.AddEntry("main", g).ok());
  EXPECT_TRUE(Verify(m).ok());
}

TEST_F(MisalignedTest, ThreadsReadAndDropAtOnce) {
  const Constant c = ConstantOf("w", Bytes());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; i++) {
        const AlignedData held = DataOf(c);
        DropPages(c);
        if (!Holds(held.data)) wrong++;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace keel::test
