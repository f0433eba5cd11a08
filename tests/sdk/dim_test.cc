// dim_test.cc: sizes of a trace in attributes: one trace serves all sizes, in memory and in the saved file.
#include <cmath>
#include <cstdio>
#include <random>

#include "devices.h"

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;
class Dims : public sdk_test::OnEachDevice {};

std::string Text(const Tensor& t) { return t.type() + " " + keel::to_string(t); }

[[maybe_unused]] std::string Said(const std::string& command) {
  std::string all;
  FILE* pipe = popen(command.c_str(), "r");
  for (int c; pipe && (c = std::fgetc(pipe)) != EOF;) all += static_cast<char>(c);
  if (pipe) pclose(pipe);
  return all;
}

// In text: to=[b*2, 3] and dims=[b*2, 3].
Tensor Halves(const Tensor& x) {
  return keel::reshape(x, {x.dim(0) * 2, 3}) + keel::cast(keel::iota({keel::dim("b") * 2, 3}), KEEL_F32);
}

TEST_P(Dims, OneTraceForAllSizesAndTheSameInAFile) {
  auto f = keel::function("f", Halves, {.args = {"x"}, .signature = "x: f32[b, 6]"});
  auto wanted = [](int64_t b) {
    std::vector<float> all;
    for (int64_t i = 0; i < b * 6; i++) all.push_back(static_cast<float>(7 + i / 3));
    return all;
  };
  std::string file = testing::TempDir() + "/dims-" + GetParam() + ".keel";
  f.concrete(keel::zeros({1, 6})).save(file);
  keel::Session saved(keel::Module::load(keel::default_context(), file), GetParam());
  for (int64_t b : {1, 4, 0, 33}) {
    Tensor x = keel::zeros({b, 6}) + 7;
    EXPECT_EQ(f(x).type(), "f32[" + std::to_string(b * 2) + ", 3]");
    EXPECT_EQ(f(x).values<float>(), wanted(b));
    EXPECT_EQ(Tensor(saved.prepare().run(std::vector{x.array()})[0]).values<float>(), wanted(b));
  }
#ifdef KEEL_TEST_CLI
  std::string run = KEEL_TEST_CLI " run " + file + " -d " + GetParam() + " -i 'x=f32[1,6]=7' 2>&1";
  EXPECT_TRUE(Has(Said(run), "f32[2, 3]\n[[7, 7, 7]\n [8, 8, 8]]")) << Said(run);
#endif
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_TRUE(Has(f.concrete(keel::zeros({1, 6})).text(), "{to=[2*b, 3]}"));
  std::remove(file.c_str());
}

TEST_P(Dims, ShapesSizesAndLengths) {
  auto program = [](const Tensor& x) {
    keel::Dim n = x.dim(0);
    Tensor ones = keel::zeros({n, n % 2 + 1}, KEEL_I32) + 1;
    Tensor line = keel::broadcast_to(keel::cast(keel::dim(n / 2), KEEL_I32), {n});
    Tensor last = keel::scan(Tensor(0), std::tuple<>(),
                             [](const Tensor& s, auto) { return std::pair(s + 2, s); }, {.length = n - 1})
                      .first;
    return keel::reduce_sum(ones, {.axes = {1}}) + line +
           keel::reduce_sum(keel::eye(n, {.dtype = KEEL_I32})) + last;
  };
  auto f = keel::function("f", program, {.signature = "x: f32[n]"});
  const std::pair<int64_t, const char*> cases[] = {
      {1, "i32[1] [3]"}, {2, "i32[2] [6 6]"}, {3, "i32[3] [10 10 10]"}, {4, "i32[4] [13 13 13 13]"}};
  for (const auto& [n, wanted] : cases) {
    EXPECT_EQ(Text(f(keel::zeros({n}))), wanted);
    EXPECT_EQ(Text(program(keel::zeros({n}))), wanted) << "eagerly";
  }
  EXPECT_EQ(f.trace_count(), 1);
}

// Sizes that become symbols automatically have generated names; x.dim() finds them in bodies, too.
TEST_P(Dims, WithoutASignatureAndInBodies) {
  auto f = keel::function("f", [](const Tensor& x) {
    return keel::cond(
        keel::reduce_sum(x) > 0,
        [&] {
          return keel::reshape(x, {x.dim(-1), x.dim(0)});
        },
        [&] {
          return keel::zeros({x.dim(1), x.dim(0)});
        });
  });
  for (int64_t n = 2; n < 8; n++) {
    EXPECT_EQ(f(keel::zeros({n, 3})).type(), "f32[3, " + std::to_string(n) + "]");
    EXPECT_EQ(f(keel::zeros({n, 3}) + 1).type(), "f32[3, " + std::to_string(n) + "]");
  }
  EXPECT_EQ(f.trace_count(), 3);
}

TEST_P(Dims, NumbersAreNumbers) {
  keel::Dim d = keel::zeros({7, 2}).dim(0);
  EXPECT_FALSE(d.symbolic());
  EXPECT_EQ(((d + 1) * 2 - 3).number(), 13);
  EXPECT_EQ((d / 2).number(), 3);
  EXPECT_EQ(((d - 10) / 2).number(), -2);
  EXPECT_EQ(((d - 10) % 2).number(), 1);
  EXPECT_EQ(keel::zeros({d, 2}).type(), "f32[7, 2]");
  EXPECT_EQ(keel::zeros({}).type(), "f32[]");
  EXPECT_EQ(keel::reshape(keel::zeros({7, 2}), {2, -1}).type(), "f32[2, 7]");
}

// An expression in sizes, and its value.
struct Drawn {
  keel::Dim dim;
  int64_t number;
};

Drawn Draw(std::mt19937& random, const std::vector<Drawn>& leaves, int depth) {
  auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  if (depth == 0 || pick(0, 6) == 0) {
    if (pick(0, 9) < 7) return leaves[static_cast<size_t>(pick(0, static_cast<int64_t>(leaves.size()) - 1))];
    int64_t n = pick(-3, 9);
    return {n, n};
  }
  Drawn a = Draw(random, leaves, depth - 1), b = Draw(random, leaves, depth - 1);
  int64_t x = a.number, y = b.number;
  auto made = [&](auto dim, int64_t number, bool defined = true) -> Drawn {
    if (defined) return {dim(a.dim, b.dim), number};
    EXPECT_TRUE(Has(Failure([&] { dim(a.dim, b.dim); }), "is divided by 0")) << b.dim.text();
    return {1, 1};
  };
  int64_t q = y ? static_cast<int64_t>(std::floor(static_cast<double>(x) / static_cast<double>(y))) : 0;
  switch (pick(0, 7)) {
    case 0:
    case 1:
      return made([](auto& p, auto& o) { return p + o; }, x + y);
    case 2:
    case 3:
      return made([](auto& p, auto& o) { return p - o; }, x - y);
    case 4:
      return made([](auto& p, auto& o) { return p * o; }, x * y);
    case 5:
      return made([](auto& p, auto& o) { return p / o; }, q, y != 0);
    case 6:
      return made([](auto& p, auto& o) { return p % o; }, x - q * y, y != 0);
    default:
      return pick(0, 1) ? made([](auto& p, auto& o) { return max(p, -o); }, std::max(x, -y))
                        : made([](auto& p, auto& o) { return min(-p, o); }, std::min(-x, y));
  }
}

TEST_P(Dims, ExpressionsAreThoseOfIntegers) {
  int compared = 0;
  for (uint32_t seed = 0; seed < 40; seed++) {
    std::mt19937 random(seed);
    const int64_t a = 2 + seed % 5, b = 1 + seed % 7;
    std::vector<Tensor> got;
    std::vector<int64_t> wanted;
    auto program = [&](const Tensor& x, const Tensor& y) {
      got.clear(), wanted.clear();
      Tensor both = keel::concat({x, y}), tail = x[keel::Slice{1}],
             half = keel::split(y, {y.dim(0) / 2, y.dim(0) - y.dim(0) / 2})[1],
             pairs = keel::reshape(keel::zeros({x.dim(0), 2}), {-1});
      std::vector<Drawn> leaves = {{x.dim(0), a},
                                   {y.dim(0), b},
                                   {both.dim(0), a + b},
                                   {tail.dim(0), a - 1},
                                   {half.dim(0), b - b / 2},
                                   {pairs.dim(0), 2 * a}};
      for (int k = 0; k < 4; k++)
        if (Drawn e = Draw(random, leaves, 4); std::abs(e.number) < (int64_t{1} << 40)) {
          got.push_back(keel::dim(e.dim));
          wanted.push_back(e.number);
        }
      got.push_back(keel::dim(x.dim(0)));
      wanted.push_back(a);
      return got;
    };
    auto f = keel::function("f", program, {.signature = "x: f32[a], y: f32[b]"});
    std::vector<Tensor> made = f(keel::zeros({a}), keel::zeros({b}));
    ASSERT_EQ(made.size(), wanted.size());
    for (size_t k = 0; k < made.size(); k++) EXPECT_EQ(made[k].item<int64_t>(), wanted[k]) << seed;
    compared += static_cast<int>(made.size()) - 1;
    EXPECT_EQ(f.trace_count(), 1);
  }
  EXPECT_GT(compared, 80);
}

TEST_P(Dims, DerivedSizesKeepTheirMeaning) {
  auto f = keel::function("f",
                          [](const Tensor& x) {
                            keel::Dim tail = x[keel::Slice{1}].dim(0);
                            return std::tuple(keel::dim(tail * 2), keel::zeros({10 - tail}),
                                              keel::dim(20 / keel::concat({x, x}).dim(0)));
                          },
                          {.signature = "x: f32[a]"});
  auto [twice, rest, over] = f(keel::zeros({5}));
  EXPECT_EQ(twice.item<int>(), 8);
  EXPECT_EQ(rest.type(), "f32[6]");
  EXPECT_EQ(over.item<int>(), 2);
  auto chain = keel::function("chain",
                              [](const Tensor& x) {
                                keel::Dim n = x.dim(0);
                                for (int i = 0; i < 200; i++) n = n + 1;
                                return keel::dim(n);
                              },
                              {.signature = "x: f32[a]"});
  EXPECT_EQ(chain(keel::zeros({5})).item<int>(), 205);
}

// n / n is 1 if n is not 0, and undefined otherwise; trace simplification relies on this.
TEST_P(Dims, NothingIsDividedByASizeOfZero) {
  auto divided = [](auto by) {
    return keel::function("f", [by](const Tensor& x) { return keel::dim(by(x.dim(0))); },
                          {.signature = "x: f32[n]"});
  };
  auto check = [](auto f, int at_three) {
    EXPECT_EQ(f(keel::zeros({3})).template item<int>(), at_three);
    EXPECT_TRUE(Has(Failure([&] { f(keel::zeros({0})); }), "is divided by 0"));
    EXPECT_EQ(f(keel::zeros({3})).template item<int>(), at_three);
    EXPECT_TRUE(Has(f.report(), R"("guards":["1 <= )")) << f.report();
  };
  check(divided([](const keel::Dim& n) { return 0 / n; }), 0);
  check(divided([](const keel::Dim& n) { return n / n; }), 1);
  check(divided([](const keel::Dim& n) { return (6 * n) / (2 * n); }), 3);
  check(divided([](const keel::Dim& n) { return n % n; }), 0);
  check(divided([](const keel::Dim& n) { return 20 / n; }), 6);
  EXPECT_TRUE(Has(Failure([] { keel::zeros({0}).dim(0) / keel::zeros({0}).dim(0); }), "is divided by 0"));
}

TEST_P(Dims, ComparingDecidesForTheCallsWithThatAnswer) {
  auto f = keel::function("f", [](const Tensor& x) {
    if (x.dim(0) == 5) return x * 2;
    return x.dim(0) > 6 && x.dim(0) >= 0 ? x * 3 : x;
  });
  for (int64_t n : {2, 3, 4, 5, 6, 7, 4, 5, 8}) {
    float wanted = n == 5 ? 2.f : n > 6 ? 3.f : 1.f;
    EXPECT_EQ(f(keel::zeros({n}) + 1).values<float>(), std::vector<float>(static_cast<size_t>(n), wanted));
  }
  EXPECT_TRUE(Has(f.report(), R"("guards":["s0 == 5"])")) << f.report();
  EXPECT_TRUE(Has(f.report(), R"("guards":["6 <= s0","7 <= s0"])")) << f.report();
  auto numbers = keel::function("numbers", [](const Tensor& x) {
    Tensor sum = 0.f;
    for (int64_t i = 0; i < x.dim(0).number(); i++) sum = sum + x[i];
    return sum;
  });
  for (int64_t n = 2; n < 7; n++)
    EXPECT_EQ(numbers(keel::zeros({n}) + 1).item<float>(), static_cast<float>(n));
  EXPECT_TRUE(Has(numbers.report(), "its sizes stay numbers: the program needs s0 as a number"));
}

TEST_P(Dims, BadInput) {
  auto tracing = [](auto code) {
    return Failure([&] { keel::function("f", code, {.signature = "x: f32[b, c]"})(keel::zeros({2, 3})); });
  };
  EXPECT_TRUE(Has(tracing([](const Tensor& x) {
                    return keel::reshape(x, {keel::dim("d"), 3});
                  }),
                  "no size is named d; the sizes are b, c"));
  EXPECT_TRUE(Has(tracing([](const Tensor& x) {
                    return keel::reshape(x, {keel::dim("b+"), 3});
                  }),
                  "expected a number, a name"));
  EXPECT_TRUE(Has(tracing([](const Tensor& x) {
                    return keel::reshape(x, {x.dim(2), 3});
                  }),
                  "axis 2 of an array of rank 2"));
  EXPECT_EQ(tracing([](const Tensor& x) { return keel::zeros({x.dim(0).number()}); }), "");
  EXPECT_TRUE(
      Has(tracing([](const Tensor& x) { return keel::reduce_sum(x, {.axes = {x.dim(0)}}); }), "reduce_sum"));
  EXPECT_TRUE(Has(tracing([](const Tensor& x) { return keel::reshape(x, {x.dim(0), 5}); }), "reshape"));
  keel::Dim kept = 0;
  tracing([&](const Tensor& x) {
    kept = x.dim(0) * 2;
    return x;
  });
  EXPECT_TRUE(Has(Failure([&] { keel::zeros({kept}); }), "the size 2*b is symbolic"));
  EXPECT_TRUE(Has(Failure([] { keel::dim("b"); }), "the size b is symbolic"));
  EXPECT_TRUE(Has(Failure([] { keel::zeros({keel::Dim(3) / 0}); }), "the size 3 is divided by 0"));
}

KEEL_ON_EACH_DEVICE(Dims);

}  // namespace
