// data_test.cc: data.hpp.
#include "tests/sdk/devices.h"

namespace {

using keel::Tensor;
using keel::data::from_slices;
using sdk_test::Failure;
using sdk_test::Has;

class Data : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(Data);

template <class T>
std::string Types(const T& slices) {
  std::string out;
  for (const auto& each : slices) out += each.type() + " ";
  return out;
}

TEST_P(Data, EntriesAndBatches) {
  Tensor x = keel::zeros({7, 2});
  EXPECT_EQ(Types(from_slices(keel::zeros({2, 3}))), "f32[3] f32[3] ");
  EXPECT_EQ(Types(from_slices(x).batch(3)), "f32[3, 2] f32[3, 2] f32[1, 2] ");
  EXPECT_EQ(Types(from_slices(x).batch(3, true)), "f32[3, 2] f32[3, 2] ");
  EXPECT_EQ(Types(from_slices(x).batch(7)), "f32[7, 2] ");
  EXPECT_EQ(Types(from_slices(x).batch(100)), "f32[7, 2] ");
  EXPECT_EQ(Types(from_slices(x).batch(100, true)), "");
  EXPECT_EQ(Types(from_slices(keel::zeros({0, 2})).batch(3)), "");
  EXPECT_EQ(from_slices(x).size(), 7);
  EXPECT_EQ(from_slices(x).batch(3).size(), 3);
  EXPECT_EQ(from_slices(x).batch(3, true).size(), 2);
}

TEST_P(Data, SeveralTensorsGoInStep) {
  std::vector<double> x = {1, 2, 3};
  int64_t steps = 0;
  for (auto [a, b, c] : from_slices(x, std::vector{4, 5, 6}, Tensor{{7, 8}, {9, 10}, {11, 12}}).batch(2)) {
    EXPECT_EQ(a.dtype(), KEEL_F64);
    EXPECT_EQ(a.values<double>()[0], steps ? 3 : 1);
    EXPECT_EQ(b.values<int>()[0], steps ? 6 : 4);
    EXPECT_EQ(c.values<int>()[1], steps ? 12 : 8);
    steps++;
  }
  EXPECT_EQ(steps, 2);
}

TEST_P(Data, WhatCannotBeCutIsNamed) {
  EXPECT_TRUE(Has(Failure([] { from_slices(Tensor(3)); }), "a scalar, i32[], has no first dim to split"));
  EXPECT_TRUE(Has(Failure([] {
                    from_slices(Tensor{1, 2}, Tensor{1., 2., 3.});
                  }),
                  "the first dims differ: i32[2] and f32[3]"));
  EXPECT_TRUE(Has(Failure([] { from_slices(Tensor{1, 2}).batch(0); }), "at least 1 entry, not 0"));
}

}  // namespace
