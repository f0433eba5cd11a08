// tensor_test.cc: creating, reading and moving tensors; literals. Oracles are literals.
#include <array>
#include <list>
#include <numeric>

#include "devices.h"

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

TEST(Tensors, LiteralsHaveTheTypeThatTheyShow) {
  EXPECT_EQ((Tensor{{1.f, 2.f}, {3.f, 4.f}}).type(), "f32[2, 2]");
  EXPECT_EQ((Tensor{{1., 2}, {3, 4}}).type(), "f32[2, 2]");
  EXPECT_EQ((Tensor{1, 2, 3}).type(), "i32[3]");
  EXPECT_EQ((Tensor{{{1}, {2}}}).type(), "i32[1, 2, 1]");
  EXPECT_EQ((Tensor{1, int64_t{2}}).type(), "i64[2]");
  EXPECT_EQ((Tensor{true, false}).type(), "bool[2]");
  EXPECT_EQ(Tensor(5.5).type(), "f32[]");
  EXPECT_EQ(Tensor(7).type(), "i32[]");
  EXPECT_EQ(keel::f64({1, 2}).type(), "f64[2]");
  EXPECT_EQ(keel::i64(7).type(), "i64[]");
  EXPECT_EQ(keel::tensor({1, 2}, KEEL_U8).values<uint8_t>(), (std::vector<uint8_t>{1, 2}));
  EXPECT_EQ((Tensor{{1, 2}, {3, 4}}).values<int32_t>(), (std::vector<int32_t>{1, 2, 3, 4}));
}

TEST(Tensors, RangesKeepTheirType) {
  EXPECT_EQ(Tensor(std::vector<double>{1, 2}).type(), "f64[2]");
  EXPECT_EQ(Tensor(std::array<int8_t, 3>{1, 2, 3}).type(), "i8[3]");
  const std::vector<float> six{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(Tensor(std::span(six).subspan(2)).values<float>(), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(Tensor(six, {2, 3}).type(), "f32[2, 3]");
  EXPECT_EQ(Tensor(std::vector<float>{}).type(), "f32[0]");
  EXPECT_EQ(Failure([&] { Tensor(six, {4}); }), "got 6 values for f32[4]");
}

TEST(Tensors, BadLiteralsAreNamed) {
  EXPECT_EQ(Failure([] { Tensor t = {{1}, {1, 2}}; }), "rows of a literal differ in shape: [1] and [2]");
  EXPECT_EQ(Failure([] { keel::i32({1.5}); }), "the literal 1.5 is a float, the other operand i32");
  EXPECT_EQ(Failure([] { keel::tensor(300, KEEL_U8); }), "the literal 300 does not fit in u8");
  EXPECT_EQ(Failure([] { keel::tensor(-1, KEEL_U64); }), "the literal -1 does not fit in u64");
  EXPECT_EQ(Failure([] { keel::f32(true); }), "the literal true is bool, the other operand f32");
}

TEST(Tensors, StorageDtypesArePackedAndOnlyCast) {
  const Tensor t = keel::tensor({1, -2, 3}, KEEL_I4);
  EXPECT_EQ(t.type(), "i4[3]");
  EXPECT_EQ(t.array().bytes(), 2u);
  const auto* bytes = static_cast<const uint8_t*>(t.array().data());
  EXPECT_EQ(bytes[0], 0xe1);
  EXPECT_EQ(bytes[1], 0x03);
  EXPECT_EQ(keel::to_string(t), "[ 1 -2  3]");
  EXPECT_EQ(keel::cast(t, KEEL_F32).values<float>(), (std::vector<float>{1, -2, 3}));
  EXPECT_EQ(keel::to_string(keel::cast(Tensor{0.3, 1e6}, KEEL_F8E4M3FN)), "[3.125e-01 4.480e+02]");
  EXPECT_EQ(keel::tensor(0.5, KEEL_F4E2M1).item<float>(), 0.5f);
  EXPECT_EQ(Failure([] { keel::tensor({8}, KEEL_I4); }), "the literal 8 does not fit in i4");
  EXPECT_TRUE(Has(Failure([&] { t + t; }), "is i4 but must be one of"));
}

TEST(Tensors, ItemsAndTruth) {
  EXPECT_EQ(Tensor(5.5).item<float>(), 5.5f);
  EXPECT_EQ(Tensor{{7}}.item<int>(), 7);
  EXPECT_EQ(Tensor(2.75).item<int>(), 2);
  EXPECT_EQ(keel::tensor(0.5, KEEL_BF16).item<double>(), 0.5);
  EXPECT_EQ(double{Tensor(3)}, 3.0);
  EXPECT_TRUE(Tensor(2) ? true : false);
  EXPECT_FALSE(Tensor(0.f) ? true : false);
  EXPECT_TRUE(Has(Failure([] { static_cast<void>(static_cast<bool>(Tensor{1, 2})); }), "2 elements, i32[2]"));
  EXPECT_TRUE(Has(Failure([] { Tensor{1, 2}.values<float>(); }), "i32, requested f32"));
  EXPECT_TRUE(Has(Failure([] { Tensor().type(); }), "an empty Tensor"));
}

TEST(Tensors, SymbolicOnesSayWhatToDo) {
  auto f = keel::function("f", [](const Tensor& x) {
    EXPECT_TRUE(x.symbolic());
    EXPECT_EQ(x.type(), "f32[2]");
    if (x[0] > 0) return x;
    return -x;
  });
  Tensor x = {1.f, 2.f};
  EXPECT_TRUE(Has(Failure([&] { f(x); }), "bool[] cannot be read, printed or used in an `if` of C++"));
  try {
    f(x);
    FAIL();
  } catch (const keel::Error& e) {
    EXPECT_EQ(e.code(), KEEL_PRECONDITION);
    EXPECT_TRUE(Has(e.hint(), "keel::select")) << e.hint();
  }
}

TEST(Tensors, CopiesShareAndSameCompares) {
  Tensor a = {1.f, NAN}, b = a;
  EXPECT_EQ(a.get(), b.get());
  EXPECT_TRUE(same(a, Tensor{1.f, NAN}));
  EXPECT_FALSE(same(Tensor{0.f}, Tensor{-0.f}));
  EXPECT_FALSE(same(Tensor{1}, Tensor{1.f}));
  EXPECT_FALSE(same(Tensor{1}, Tensor(1)));
  EXPECT_TRUE(same(keel::zeros({0, 2}), keel::zeros({0, 2})));
}

TEST(Tensors, StayUsableWithoutTheirContext) {
  Tensor t;
  {
    keel::Context context;
    context.scan_plugins();
    keel::Scope on(context, keel::default_device(context));
    t = Tensor{1, 2} + 1;
  }
  EXPECT_EQ((t * 2).values<int32_t>(), (std::vector<int32_t>{4, 6}));
}

TEST(Scopes, NestAndEnd) {
  std::vector<std::string> all = sdk_test::Devices();
  {
    keel::Scope outer = keel::device(all.front());
    { keel::Scope inner = keel::device(all.back()); }
    EXPECT_EQ(keel::detail::here().device(), all.front());
  }
  EXPECT_EQ(keel::detail::this_home, nullptr);
  EXPECT_TRUE(Has(Failure([] { keel::Scope nowhere = keel::device("nowhere"); }), "no device \"nowhere\""));
  keel::Context empty;
  EXPECT_EQ(Failure([&] { keel::default_device(empty); }), "the context has no device");
}

}  // namespace
