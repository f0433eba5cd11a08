// index_test.cc: parts of tensors, eager and traced with sizes that are not known.
#include "devices.h"

namespace {

using keel::all;
using keel::Slice;
using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

class Indexing : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(Indexing);

std::string Text(const Tensor& t) { return t.type() + " " + to_string(t); }
Tensor Counting() { return {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}; }

TEST_P(Indexing, NumbersTakeTheDimAway) {
  Tensor t = Counting();
  EXPECT_EQ(Text(t[1]), "i32[4] [4 5 6 7]");
  EXPECT_EQ(Text(t[-1]), "i32[4] [ 8  9 10 11]");
  EXPECT_EQ(Text(t[2][3]), "i32[] 11");
  EXPECT_EQ(Text(t[{2, -1}]), "i32[] 11");
  EXPECT_EQ(Text(t[{all, 1}]), "i32[3] [1 5 9]");
}

TEST_P(Indexing, SlicesKeepIt) {
  Tensor t = Counting();
  EXPECT_EQ(Text(t[Slice{0, 2}]), "i32[2, 4] [[0 1 2 3]\n [4 5 6 7]]");
  EXPECT_EQ(Text(t[Slice{1}]), "i32[2, 4] [[ 4  5  6  7]\n [ 8  9 10 11]]");
  EXPECT_EQ(Text(t[{all, Slice{{}, {}, 2}}]), "i32[3, 2] [[ 0  2]\n [ 4  6]\n [ 8 10]]");
  EXPECT_EQ(Text(t[{Slice{-2}, Slice{0, -3}}]), "i32[2, 1] [[4]\n [8]]");
  EXPECT_EQ(Text(t[{1, Slice{1, 3}}]), "i32[2] [5 6]");
  EXPECT_EQ(Text(t[Slice{5, 9}]), "i32[0, 4] []");
  EXPECT_EQ(Text(t[all]), Text(t));
}

TEST_P(Indexing, TensorsPickRows) {
  Tensor t = Counting(), rows = {2, 0};
  EXPECT_EQ(Text(t[rows]), "i32[2, 4] [[ 8  9 10 11]\n [ 0  1  2  3]]");
  EXPECT_EQ(Text(t[{all, Tensor{{3, 0}}}]), "i32[3, 1, 2] [[[ 3  0]]\n\n [[ 7  4]]\n\n [[11  8]]]");
}

TEST_P(Indexing, RowsAreARange) {
  int sum = 0, rows = 0;
  for (Tensor row : Counting()) {
    sum += row[0].item<int>();
    rows++;
  }
  EXPECT_EQ(rows, 3);
  EXPECT_EQ(sum, 12);
  EXPECT_EQ(std::distance(keel::zeros({0, 2}).begin(), keel::zeros({0, 2}).end()), 0);
  EXPECT_TRUE(Has(Failure([] { Tensor(5).end(); }), "a tensor without dims has no rows: i32[]"));
}

TEST_P(Indexing, BadOnesAreNamed) {
  Tensor t = Counting();
  EXPECT_TRUE(Has(Failure([&] { t[3]; }), "t[...]: no index 3 for dim 0 of i32[3, 4] (index_test.cc:"));
  EXPECT_TRUE(Has(Failure([&] { t[{0, -5}]; }), "no index -5 for dim 0 of i32[4]"));
  EXPECT_TRUE(Has(Failure([&] { t[{0, 0, 0}]; }), "t[...]: 3 indices for i32[3, 4] (index_test.cc:"));
  EXPECT_TRUE(Has(Failure([&] { t[Slice{{}, {}, -1}]; }), "the step -1"));
  EXPECT_TRUE(Has(Failure([&] { t[Tensor{7}]; }), "index 7 is not in [0, 3)"));
}

TEST_P(Indexing, TracedWithUnknownSizes) {
  auto f = keel::function("f",
                          [](const Tensor& x) {
                            return std::tuple(x[0], x[{keel::all, 1}], x[keel::Slice{1, 3}]);
                          },
                          {.signature = "x: i32[n, 4]"});
  auto [first, column, middle] = f(Counting());
  EXPECT_EQ(Text(first), "i32[4] [0 1 2 3]");
  EXPECT_EQ(Text(column), "i32[3] [1 5 9]");
  EXPECT_EQ(Text(middle), "i32[2, 4] [[ 4  5  6  7]\n [ 8  9 10 11]]");
  auto last = keel::function("last", [](const Tensor& x) { return x[-1]; }, {.signature = "x: i32[n, 4]"});
  EXPECT_TRUE(Has(Failure([&] { last(Counting()); }), "counts from the end, -1, for dim 0 of i32[?, 4]"));
  auto loop = keel::function("loop",
                             [](const Tensor& x) {
                               Tensor sum = 0;
                               for (Tensor row : x) sum += row[0];
                               return sum;
                             },
                             {.signature = "x: i32[n, 4]"});
  EXPECT_TRUE(Has(Failure([&] { loop(Counting()); }), "the number of rows of i32[?, 4] is not known"));
}

}  // namespace
