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

TEST(Element, ABoolIsWhetherTheNumberIsNotZero) {
  EXPECT_EQ(Bits(DType::kBool, 0.25), 1u);
  EXPECT_EQ(Bits(DType::kBool, 0), 0u);
}

}  // namespace
}  // namespace keel
