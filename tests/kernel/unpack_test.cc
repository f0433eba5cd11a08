// Packed texts: bytes in zlib's format, written by hand. (The catalogue, which is packed by the build, is
// parsed in opset_test.cc.)
#include "kernel/base/unpack.h"

#include <gtest/gtest.h>

#include <array>

namespace keel {
namespace {

TEST(Unpack, TextsFollowEachOther) {
  const PackedFile files[] = {{"a.txt", 3}, {"b.txt", 6}};
  // A stored block of 9 bytes, and the Adler-32 sum of them.
  const auto bytes = std::to_array<unsigned char>({0x78, 0x01, 0x01, 9,   0,   0xf6, 0xff, 'o',  'n',  'e',
                                                   's',  'e',  'c',  'o', 'n', 'd',  0x12, 0xe7, 0x03, 0xbf});
  EXPECT_EQ(Unpack({files, bytes}), "onesecond");
}

TEST(Unpack, NoText) {
  const auto bytes = std::to_array<unsigned char>({0x78, 0x9c, 0x03, 0, 0, 0, 0, 1});
  EXPECT_EQ(Unpack({{}, bytes}), "");
}

}  // namespace
}  // namespace keel
