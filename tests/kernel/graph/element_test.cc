// element_test.cc: conversion of a double to an element of each dtype, against literal bits.

#include "kernel/language/graph/element.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace keel {
namespace {

uint64_t Bits(DType dtype, double value) {
  uint64_t bits = 0;
  EXPECT_TRUE(ElementFromDouble(dtype, value, &bits).ok()) << value;
  return bits;
}

TEST(Element, AHalfRoundsToEvenAndOverflowsToInf) {
  EXPECT_EQ(Bits(DType::kF16, 1), 0x3c00u);
  EXPECT_EQ(Bits(DType::kF16, -2), 0xc000u);
  EXPECT_EQ(Bits(DType::kF16, 2049), 0x6800u) << "a tie: 2048";
  EXPECT_EQ(Bits(DType::kF16, 2051), 0x6802u) << "a tie: 2052";
  EXPECT_EQ(Bits(DType::kF16, 65519), 0x7bffu);
  EXPECT_EQ(Bits(DType::kF16, 65520), 0x7c00u);
  EXPECT_EQ(Bits(DType::kF16, -1e30), 0xfc00u);
  EXPECT_EQ(Bits(DType::kF16, 5.9604644775390625e-8), 1u) << "the smallest";
  EXPECT_EQ(Bits(DType::kF16, 2.98e-8), 0u);
  EXPECT_EQ(Bits(DType::kF16, -0.0), 0x8000u);
  EXPECT_EQ(Bits(DType::kF16, std::nan("")), 0x7e00u);
}

TEST(Element, ABfloatRoundsToEvenAndOverflowsToInf) {
  EXPECT_EQ(Bits(DType::kBF16, 1), 0x3f80u);
  EXPECT_EQ(Bits(DType::kBF16, 257), 0x4380u) << "a tie: 256";
  EXPECT_EQ(Bits(DType::kBF16, 259), 0x4382u) << "a tie: 260";
  EXPECT_EQ(Bits(DType::kBF16, 3.4e38), 0x7f80u);
  EXPECT_EQ(Bits(DType::kBF16, -std::numeric_limits<double>::infinity()), 0xff80u);
  EXPECT_EQ(Bits(DType::kBF16, std::nan("")), 0x7fc0u);
}

TEST(Element, AFloatBeyondTheLargestIsInf) {
  EXPECT_EQ(Bits(DType::kF32, 1e39), 0x7f800000u);
  EXPECT_EQ(Bits(DType::kF64, 1), 0x3ff0000000000000u);
}

TEST(Element, IntegersTruncateAndMustFit) {
  EXPECT_EQ(Bits(DType::kI8, -1.9), 0xffu);
  EXPECT_EQ(Bits(DType::kU8, 255.9), 0xffu);
  EXPECT_EQ(Bits(DType::kU8, -0.5), 0u);
  EXPECT_EQ(Bits(DType::kI64, -0x1p63), 0x8000000000000000u);
  EXPECT_EQ(Bits(DType::kU64, 0x1p63), 0x8000000000000000u);
  uint64_t bits = 0;
  EXPECT_FALSE(ElementFromDouble(DType::kU8, 256, &bits).ok());
  EXPECT_FALSE(ElementFromDouble(DType::kU8, -1, &bits).ok());
  EXPECT_FALSE(ElementFromDouble(DType::kI64, 0x1p63, &bits).ok());
  EXPECT_FALSE(ElementFromDouble(DType::kI32, std::nan(""), &bits).ok());
  EXPECT_FALSE(ElementFromDouble(DType::kNone, 1, &bits).ok());
}

TEST(Element, SmallFloatsRoundToEvenAndSaturate) {
  EXPECT_EQ(Bits(DType::kF8E4M3FN, 1), 0x38u);
  EXPECT_EQ(Bits(DType::kF8E4M3FN, -448), 0xfeu);
  EXPECT_EQ(Bits(DType::kF8E4M3FN, 17), 0x58u) << "a tie: 16";
  EXPECT_EQ(Bits(DType::kF8E4M3FN, 19), 0x5au) << "a tie: 20";
  EXPECT_EQ(Bits(DType::kF8E4M3FN, 1e9), 0x7eu);
  EXPECT_EQ(Bits(DType::kF8E4M3FN, std::nan("")), 0x7fu);
  EXPECT_EQ(Bits(DType::kF8E4M3FN, 0x1p-9), 1u) << "the smallest";
  EXPECT_EQ(Bits(DType::kF8E4M3FN, 0x1p-10), 0u) << "a tie: 0";
  EXPECT_EQ(Bits(DType::kF8E4M3FNUZ, -0.0), 0u);
  EXPECT_EQ(Bits(DType::kF8E4M3FNUZ, 240), 0x7fu);
  EXPECT_EQ(Bits(DType::kF8E4M3FNUZ, std::nan("")), 0x80u);
  EXPECT_EQ(Bits(DType::kF8E5M2, -57344), 0xfbu);
  EXPECT_EQ(Bits(DType::kF8E5M2FNUZ, 1), 0x40u);
  EXPECT_EQ(Bits(DType::kF4E2M1, -6), 0xfu);
  EXPECT_EQ(Bits(DType::kF4E2M1, 2.5), 4u) << "a tie: 2";
  EXPECT_EQ(Bits(DType::kF4E2M1, 100), 7u);
}

TEST(Element, PowersOfTwo) {
  EXPECT_EQ(Bits(DType::kF8E8M0, 1), 127u);
  EXPECT_EQ(Bits(DType::kF8E8M0, 0x1p127), 254u);
  EXPECT_EQ(Bits(DType::kF8E8M0, 2.9), 128u);
  EXPECT_EQ(Bits(DType::kF8E8M0, 3), 129u) << "halves up";
  EXPECT_EQ(Bits(DType::kF8E8M0, 0), 0u);
  EXPECT_EQ(Bits(DType::kF8E8M0, 1e300), 254u);
  EXPECT_EQ(Bits(DType::kF8E8M0, -1), 255u);
}

TEST(Element, EverySmallElementIsItsText) {
  for (DType d = DType::kF8E4M3FN; d < DType::kCount; d = static_cast<DType>(static_cast<int>(d) + 1)) {
    for (uint32_t bits = 0; bits < 1u << BitsOf(d); bits++) {
      const auto element = static_cast<uint8_t>(bits);
      const std::string text = PrintElement(d, &element);
      const bool none = std::isnan(ElementToDouble(d, &element)) && text.empty();  // a NaN with a payload
      uint8_t again = 0;
      ASSERT_TRUE(none || ParseElement(d, text, &again).ok()) << Name(d) << " " << text;
      ASSERT_TRUE(none || again == element) << Name(d) << " " << text;
    }
  }
}

TEST(Element, PackedElementsBeginInTheLowestBits) {
  uint8_t bytes[2] = {0xff, 0xff};
  const uint8_t numbers[] = {1, 0xe, 3};
  for (int i = 0; i < 3; i++) StoreElement(DType::kI4, &numbers[i], i, bytes);
  EXPECT_EQ(bytes[0], 0xe1);
  EXPECT_EQ(bytes[1], 0xf3) << "the other half stays";
  uint8_t element = 0;
  LoadElement(DType::kI4, bytes, 1, &element);
  EXPECT_EQ(element, 0xe);
  EXPECT_EQ(PrintElement(DType::kI4, &element), "-2");
  LoadElement(DType::kU2, bytes, 3, &element);
  EXPECT_EQ(element, 3);
  EXPECT_EQ(BytesOf(DType::kU2, 0), 0u);
  EXPECT_EQ(BytesOf(DType::kU2, 5), 2u);
  EXPECT_EQ(BytesOf(DType::kI4, int64_t{1} << 40), uint64_t{1} << 39);
}

TEST(Element, ABoolIsWhetherTheNumberIsNotZero) {
  EXPECT_EQ(Bits(DType::kBool, 0.25), 1u);
  EXPECT_EQ(Bits(DType::kBool, 0), 0u);
}

}  // namespace
}  // namespace keel
