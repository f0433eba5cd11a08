// format_test.cc: tensors as text, in the format of NumPy 2.4 (the literals are its output).
#include "devices.h"

namespace {

using keel::Tensor;
using keel::to_string;

std::string F32(std::vector<float> v) { return to_string(Tensor(v)); }
std::string F64(std::vector<double> v) { return to_string(Tensor(v)); }

TEST(Format, FloatsShareTheirPlaces) {
  EXPECT_EQ(F32({1, 0.5}), "[1.  0.5]");
  EXPECT_EQ(F32({0.1f, 0.2f, 0.3f}), "[0.1 0.2 0.3]");
  EXPECT_EQ(F32({1.1f, 100, -3}), "[  1.1 100.   -3. ]");
  EXPECT_EQ(F64({0., -0.}), "[ 0. -0.]");
  EXPECT_EQ(F64({1. / 3, 2. / 3}), "[0.33333333 0.66666667]");
  EXPECT_EQ(F32({1.f / 3, 2.f / 3}), "[0.33333334 0.6666667 ]");
  EXPECT_EQ(F64({0.0001, 0.001}), "[0.0001 0.001 ]");
  EXPECT_EQ(to_string(Tensor{{1.5}, {2.}}), "[[1.5]\n [2. ]]");
}

TEST(Format, PowersOfTenWhereSizesDiffer) {
  EXPECT_EQ(F32({1e-5f, 1}), "[1.e-05 1.e+00]");
  EXPECT_EQ(F32({1e8f, 1}), "[1.e+08 1.e+00]");
  EXPECT_EQ(F64({123456.789, 0.5}), "[1.23456789e+05 5.00000000e-01]");
  EXPECT_EQ(F64({1e-3, 1.0001}), "[1.0000e-03 1.0001e+00]");
  EXPECT_EQ(F64({1e300, 1}), "[1.e+300 1.e+000]");
  EXPECT_EQ(F64({1e-8, -1e10}), "[ 1.e-08 -1.e+10]");
  EXPECT_EQ(F32({16777216.f, 1}), "[1.6777216e+07 1.0000000e+00]");
  EXPECT_EQ(F32({0x1p-149f}), "[1.e-45]");
}

TEST(Format, SpecialValues) {
  EXPECT_EQ(F32({NAN, 1, INFINITY, -INFINITY}), "[ nan   1.  inf -inf]");
  EXPECT_EQ(F64({NAN, INFINITY}), "[nan inf]");
  EXPECT_EQ(F64({INFINITY, 1e10}), "[   inf 1.e+10]");
}

TEST(Format, OtherTypes) {
  EXPECT_EQ(to_string(Tensor{{1, -20}, {300, 4}}), "[[  1 -20]\n [300   4]]");
  EXPECT_EQ(to_string(Tensor{true, false}), "[ True False]");
  EXPECT_EQ(to_string(keel::tensor({255, 0}, KEEL_U8)), "[255   0]");
  EXPECT_EQ(to_string(keel::tensor({65504., 0.1}, KEEL_F16)), "[6.55e+04 1.00e-01]");
  EXPECT_EQ(to_string(keel::tensor({1.5, 2.25, 3.}, KEEL_F16)), "[1.5  2.25 3.  ]");
  EXPECT_EQ(to_string(keel::tensor({1.5, 2.25, 3.}, KEEL_BF16)), "[1.5  2.25 3.  ]");
  EXPECT_EQ(to_string(keel::zeros({0, 3})), "[]");
}

TEST(Format, NumbersAlone) {
  EXPECT_EQ(to_string(Tensor(8)), "8");
  EXPECT_EQ(to_string(Tensor(true)), "True");
  EXPECT_EQ(to_string(Tensor(0.)), "0.0");
  EXPECT_EQ(to_string(Tensor(-0.f)), "-0.0");
  EXPECT_EQ(to_string(Tensor(5.5)), "5.5");
  EXPECT_EQ(to_string(Tensor(0.1)), "0.1");
  EXPECT_EQ(to_string(Tensor(1e16)), "1e+16");
  EXPECT_EQ(to_string(Tensor(1.1e20)), "1.1e+20");
  EXPECT_EQ(to_string(Tensor(1e-5)), "1e-05");
  EXPECT_EQ(to_string(Tensor(16777216.)), "1.6777216e+07");
  EXPECT_EQ(to_string(Tensor(12345.678f)), "12345.678");
  EXPECT_EQ(to_string(Tensor(1e6)), "1e+06");
  EXPECT_EQ(to_string(keel::tensor(1234., KEEL_F16)), "1.234e+03");
  EXPECT_EQ(to_string(keel::f64(1e-4)), "0.0001");
  EXPECT_EQ(to_string(Tensor(NAN)), "nan");
  EXPECT_EQ(to_string(keel::f64(1e15)), "1000000000000000.0");
  EXPECT_EQ(to_string(keel::f64(123456789.123)), "123456789.123");
  EXPECT_EQ(to_string(keel::tensor(0.1, KEEL_F16)), "0.1");
}

TEST(Format, LinesAndDims) {
  std::vector<float> thirty(30);
  for (size_t i = 0; i < 30; i++) thirty[i] = static_cast<float>(i);
  EXPECT_EQ(F32(thirty),
            "[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15. 16. 17.\n"
            " 18. 19. 20. 21. 22. 23. 24. 25. 26. 27. 28. 29.]");
  EXPECT_EQ(to_string(keel::reshape(keel::iota({24}), {2, 3, 4})),
            "[[[ 0  1  2  3]\n  [ 4  5  6  7]\n  [ 8  9 10 11]]\n\n"
            " [[12 13 14 15]\n  [16 17 18 19]\n  [20 21 22 23]]]");
  EXPECT_EQ(to_string(keel::reshape(keel::iota({1200}), {2, 600})),
            "[[   0    1    2 ...  597  598  599]\n [ 600  601  602 ... 1197 1198 1199]]");
  Tensor many = keel::reshape(keel::iota({2000}, {.dtype = KEEL_F32}), {40, 50});
  EXPECT_TRUE(to_string(many).starts_with(
      "[[0.000e+00 1.000e+00 2.000e+00 ... 4.700e+01 4.800e+01 4.900e+01]\n [5.000e+01 "))
      << many;
  EXPECT_NE(to_string(many).find("1.490e+02]\n ...\n [1.850e+03"), std::string::npos) << many;
}

TEST(Format, ReprTellsTheType) {
  EXPECT_EQ(keel::repr(Tensor{{4.f}}), "Tensor f32[1, 1]: [[4.]]");
  EXPECT_EQ(keel::repr(Tensor{{1, 2}, {3, 4}}), "Tensor i32[2, 2]:\n[[1 2]\n [3 4]]");
  EXPECT_EQ(keel::repr(Tensor(2.5)), "Tensor f32[]: 2.5");
  EXPECT_EQ(keel::repr(Tensor()), "Tensor <no tensor>");
  std::string seen;
  keel::function("f", [&](const Tensor& x) {
    seen = to_string(x + 1);
    return x;
  })(Tensor{1.f, 2.f});
  EXPECT_EQ(seen, "<f32[2] of a trace>");
}

}  // namespace
