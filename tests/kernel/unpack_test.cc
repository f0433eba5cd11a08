// Packed texts: steps written by hand. (The catalogue, which is packed by the build, is parsed in
// opset_test.cc.)
#include "kernel/base/unpack.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

std::string Text(size_t size, std::span<const unsigned char> steps) {
  PackedFile file{"a.txt", size};
  return Unpack({{&file, 1}, steps});
}

TEST(Unpack, LiteralsAndCopies) {
  EXPECT_EQ(Text(0, {}), "");
  EXPECT_EQ(Text(1, std::to_array<unsigned char>({0, 'a'})), "a");
  EXPECT_EQ(Text(7, std::to_array<unsigned char>({2, 'a', 'b', 'c', 128, 3, 0, '.'})), "abcabc.");
  EXPECT_EQ(Text(131, std::to_array<unsigned char>({0, 'a', 255, 1})),
            std::string(131, 'a'));  // repeats itself
}

TEST(Unpack, FarCopies) {
  std::vector<unsigned char> steps = {2, 'x', 'y', 'z'};
  for (int i = 0; i < 200; i++) {
    steps.push_back(127);
    steps.insert(steps.end(), 128, '.');
  }
  steps.insert(steps.end(), {128, 0x83, 0xc8, 0x01});  // 3 + 200 * 128 = 25603
  EXPECT_EQ(Text(25606, steps).substr(25600), "...xyz");
}

}  // namespace
}  // namespace keel
