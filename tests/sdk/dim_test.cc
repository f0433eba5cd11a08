// dim_test.cc: sizes of a trace in attributes: one trace serves all sizes, here and in the file that it
// becomes.
#include <cstdio>

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

// Sizes that became symbols by themselves have names of Keel's making; x.dim() finds them in bodies, too.
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

TEST_P(Dims, BadInput) {
  auto tracing = [](auto code) {
    return Failure([&] { keel::function("f", code, {.signature = "x: f32[b, c]"})(keel::zeros({2, 3})); });
  };
  EXPECT_TRUE(Has(tracing([](const Tensor& x) {
                    return keel::reshape(x, {keel::dim("d"), 3});
                  }),
                  "there is no size named d; there are b, c"));
  EXPECT_TRUE(Has(tracing([](const Tensor& x) {
                    return keel::reshape(x, {keel::dim("b+"), 3});
                  }),
                  "expected a number, a name"));
  EXPECT_TRUE(Has(tracing([](const Tensor& x) {
                    return keel::reshape(x, {x.dim(2), 3});
                  }),
                  "axis 2 of an array of rank 2"));
  EXPECT_TRUE(Has(tracing([](const Tensor& x) { return keel::zeros({x.dim(0).number()}); }),
                  "the size b of a trace is no number"));
  EXPECT_TRUE(Has(tracing([](const Tensor& x) { return keel::reduce_sum(x, {.axes = {x.dim(0)}}); }),
                  "axes takes numbers, got the size b"));
  EXPECT_TRUE(Has(tracing([](const Tensor& x) { return keel::reshape(x, {x.dim(0), 5}); }), "reshape"));
  keel::Dim kept = 0;
  tracing([&](const Tensor& x) {
    kept = x.dim(0) * 2;
    return x;
  });
  EXPECT_TRUE(Has(Failure([&] { keel::zeros({kept}); }), "the size (b * 2) has no meaning here"));
  EXPECT_TRUE(Has(Failure([] { keel::dim("b"); }), "the size b has no meaning here"));
  EXPECT_TRUE(Has(Failure([] { keel::zeros({keel::Dim(3) / 0}); }), "the size 3 is divided by 0"));
}

KEEL_ON_EACH_DEVICE(Dims);

}  // namespace
