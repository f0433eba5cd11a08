// index_test.cc: indexing tensors, eager and traced with unknown sizes.
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
  EXPECT_TRUE(
      Has(Failure([&] { t[3]; }), "t[...]: index 3 is out of range for dim 0 of i32[3, 4] (index_test.cc:"));
  EXPECT_TRUE(Has(Failure([&] { t[{0, -5}]; }), "index -5 is out of range for dim 0 of i32[4]"));
  EXPECT_TRUE(Has(Failure([&] { t[{0, 0, 0}]; }), "t[...]: 3 indices for i32[3, 4] (index_test.cc:"));
  EXPECT_TRUE(Has(Failure([&] { t[Slice{{}, {}, -1}]; }), "step -1 is below 1"));
  EXPECT_TRUE(Has(Failure([&] { t[Tensor{7}].values<int32_t>(); }), "index 7 is not in [0, 3)"));
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
  EXPECT_EQ(Text(last(Counting())), "i32[4] [ 8  9 10 11]");
  auto loop = keel::function("loop",
                             [](const Tensor& x) {
                               Tensor sum = 0;
                               for (Tensor row : x) sum += row[0];
                               return sum;
                             },
                             {.signature = "x: i32[n, 4]"});
  EXPECT_EQ(Text(loop(Counting())), "i32[] 12");
  EXPECT_TRUE(Has(loop.report(), "its sizes stay numbers: the program needs n as a number"));
}

// Each form at sizes that clamp it, with one trace for all sizes and with a trace made at the third size.
TEST_P(Indexing, FormsAreThoseOfEagerAtAllSizes) {
  using Form = Tensor (*)(const Tensor&);
  const Form forms[] = {
      [](const Tensor& x) {
        return x[Slice{2, 9}];
      },
      [](const Tensor& x) { return x[Slice{-4}]; },
      [](const Tensor& x) {
        return x[Slice{{}, -2}];
      },
      [](const Tensor& x) {
        return x[Slice{{}, x.dim(0) - 1}];
      },
      [](const Tensor& x) { return x[Slice{x.dim(0) - 3}]; },
      [](const Tensor& x) {
        return x[Slice{5, 2}];
      },
      [](const Tensor& x) {
        return x[Slice{-3, 4, 2}];
      },
      [](const Tensor& x) {
        return x[Slice{1}] - x[Slice{{}, -1}];
      },
      [](const Tensor& x) {
        return (keel::iota({12}) * 3)[Slice{{}, x.dim(0)}];
      },
      [](const Tensor& x) { return x * x.dim(0) + (x.dim(0) * 2 - 1) % 4; },
      [](const Tensor& x) { return x.dim(0) == 4 ? x * 2 : x; },
      [](const Tensor& x) { return x + x.size(); },
      [](const Tensor& x) { return keel::cast(x, KEEL_F32) * (1.0 / (x.dim(0) + 1)); },
      [](const Tensor& x) { return keel::iota({x.dim(0)}) + x; },
  };
  for (const Form& form : forms) {
    auto third = keel::function("third", form);
    auto all = keel::function("all", form, {.signature = "x: i64[n]"});
    for (int64_t n : {7, 2, 4, 12, 0, 1, 3}) {
      Tensor x = keel::iota({n}) * 5 - 3;
      std::string wanted = Text(form(x)), which = std::to_string(&form - forms) + " at " + std::to_string(n);
      EXPECT_EQ(Text(third(x)), wanted) << which;
      EXPECT_EQ(Text(all(x)), wanted) << which;
    }
  }
  auto ends = keel::function("ends", [](const Tensor& x) {
    return std::tuple(x[-1], x[x.dim(0) - 2], x[{-2, 0}]);
  });
  for (int64_t n = 2; n < 7; n++) {
    Tensor x = keel::reshape(keel::iota({n * 2}), {n, 2});
    auto [last, before, first] = ends(x);
    EXPECT_EQ(Text(last), "i64[2] " + keel::to_string(x[static_cast<int>(n) - 1]));
    EXPECT_EQ(Text(before), "i64[2] " + keel::to_string(x[static_cast<int>(n) - 2]));
    EXPECT_EQ(first.item<int64_t>(), 2 * n - 4);
  }
  EXPECT_EQ(ends.trace_count(), 3);
}

}  // namespace
