// entry_test.cc: entries of loaded modules as functions (entry.hpp): called, written, recorded, saved again.
// Oracles are literals and the code that was saved.
#include "devices.h"

#include <filesystem>

namespace {

using keel::Entry, keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

std::string Text(const Tensor& t) { return t.type() + " " + to_string(t); }

// serve(x) = x * w; count(x, n) = (x + n, n writes so far)
const char* const kText =
    "keel 1\nvar w: f32[2] = [3.0, 5.0]\nvar calls: i32[] = [0]\n"
    "fn @serve(x: f32[b, 2]) where b in 1..4 {\n  y = x * read(w)\n  return y\n}\n"
    "fn @count(x: f64[], n: i32[]) {\n  m = cast(n){to=f64}\n  y = x + m\n  assign_add(calls, 1)\n"
    "  c = read(calls)\n  return y, c\n}\n"
    "entry serve = @serve (x) -> (y)\nentry count = @count (x, n) -> (y, calls)\n";

class Entries : public sdk_test::OnEachDevice {
 protected:
  keel::Module module = keel::Module::parse(keel::default_context(), kText);
};
KEEL_ON_EACH_DEVICE(Entries);

TEST_P(Entries, AreCalledEagerly) {
  Entry serve(module, "serve");
  EXPECT_EQ(Text(serve(Tensor{{1.f, 1.f}, {2.f, 2.f}})), "f32[2, 2] [[ 3.  5.]\n [ 6. 10.]]");
  Entry<std::tuple<Tensor, Tensor>> count(module, "count");
  auto [y, first] = count(0.1, 2);  // numbers are converted to the dtypes of the parameters
  EXPECT_EQ(Text(y), "f64[] 2.1");
  EXPECT_EQ(first.item<int>(), 1);
  Entry<std::vector<Tensor>> all(module, "count");
  EXPECT_EQ(all(1., 2)[1].item<int>(), 2) << "the variables are the module's";
  keel::Variable(module, "w").assign({1., 10.});
  EXPECT_EQ(Text(serve(Tensor{{1.f, 1.f}})), "f32[1, 2] [[ 1. 10.]]");
}

TEST_P(Entries, GoOnWithoutTheirModule) {
  auto serve = [] {
    keel::Module gone = keel::Module::parse(keel::default_context(), kText);
    return Entry(gone, "serve");
  }();
  EXPECT_EQ(Text(serve(Tensor{{1.f, 2.f}})), "f32[1, 2] [[ 3. 10.]]");
}

TEST_P(Entries, TapesRecordThem) {
  Entry serve(module, "serve");
  keel::Variable w(module, "w");
  Tensor x = {{1.f, 2.f}, {3.f, 4.f}};
  keel::Tape tape;
  tape.watch(x);
  Tensor loss = keel::reduce_sum(keel::square(serve(x)));
  auto [dx, dw] = tape.gradient(loss, std::tuple(x, w));
  EXPECT_EQ(Text(dx), "f32[2, 2] [[ 18. 100.]\n [ 54. 200.]]") << "2 x w^2";
  EXPECT_EQ(Text(dw), "f32[2] [ 60. 200.]") << "2 w times the sums of squares 10, 20";
}

TEST_P(Entries, AreTrainedFurtherInATracedFunction) {
  Entry serve(module, "serve");
  keel::Variable w(module, "w");
  auto step = keel::function("step", [&](const Tensor& x) {
    keel::Tape tape;
    Tensor loss = keel::reduce_sum(keel::square(serve(x)));
    w.assign_sub(0.1 * tape.gradient(loss, w));
    return loss;
  });
  EXPECT_EQ(step(Tensor{{1.f, 2.f}}).item<float>(), 9 + 100);
  EXPECT_EQ(Text(w), "f32[2] [2.4 1. ]") << "3 - 0.1 * 6, 5 - 0.1 * 40";
  EXPECT_EQ(step(Tensor{{0.f, 1.f}}).item<float>(), 1);
  EXPECT_EQ(step.trace_count(), 1);
}

TEST_P(Entries, AreSavedAgain) {
  std::string path = testing::TempDir() + "entry" + std::to_string(getpid()) + GetParam() + ".keel";
  Entry serve(module, "serve");
  keel::Variable own({100.f, 200.f}, {.name = "w"});  // a name that the module also uses
  auto both = keel::function("both", [&](const Tensor& x) {
    return keel::cond(
        x[{0, 0}] > 0, [&] { return serve(x); }, [&] { return x + own; });
  });
  keel::save(path, {{"both", both.concrete(Tensor{{1.f, 1.f}})}, {"serve", serve.module()}});
  keel::Module again = keel::Module::load(keel::default_context(), path);
  std::filesystem::remove(path);
  Entry loaded(again, "both");
  EXPECT_EQ(Text(loaded(Tensor{{1.f, 1.f}})), "f32[1, 2] [[3. 5.]]");
  EXPECT_EQ(Text(loaded(Tensor{{-1.f, 1.f}})), "f32[1, 2] [[ 99. 201.]]");
  keel::Variable(again, "w").assign({7., 7.});
  EXPECT_EQ(Text(Entry(again, "serve")(Tensor{{1.f, 1.f}})), "f32[1, 2] [[7. 7.]]");
  EXPECT_EQ(Text(serve(Tensor{{1.f, 1.f}})), "f32[1, 2] [[3. 5.]]") << "another file's";
}

TEST_P(Entries, TellSymbolsThatStandInExpressionsOnly) {
  keel::Module m = keel::Module::parse(
      keel::default_context(),
      "keel 1\nfn @main(x: f32[2*k+1]) {\n  n = dim(){of=k}\n  return n\n}\nentry main = @main (x) -> (n)\n");
  Entry half(m, "main");
  auto f = keel::function("f", [&](const Tensor& x) { return half(x); }, {.signature = "x: f32[m]"});
  for (int64_t n : {7, 1, 3}) EXPECT_EQ(f(keel::zeros({n})).item<int64_t>(), n / 2);
  for (int64_t n : {4, 0}) EXPECT_NE(Failure([&] { f(keel::zeros({n})); }), "") << n;
  EXPECT_EQ(f.trace_count(), 1);
  auto fixed = keel::function("fixed", [&](const Tensor& x) { return half(x); });
  EXPECT_EQ(fixed(keel::zeros({9})).item<int64_t>(), 4);
  auto even = keel::function("even", [&](const Tensor& x) { return half(x); });
  EXPECT_TRUE(Has(Failure([&] { even(keel::zeros({8})); }), "x is f32[8], expected f32[2*k+1]"));
}

TEST_P(Entries, SayWhatTheyTake) {
  Entry serve(module, "serve");
  EXPECT_EQ(Failure([&] { Entry(module, "gone"); }),
            "the module has no entry 'gone'; it has 'serve', 'count'");
  EXPECT_EQ(
      Failure([&] { Entry{module}; }),
      "the module does not have exactly one entry, so the entry must be named; it has 'serve', 'count'");
  EXPECT_EQ(Failure([&] { Entry(module, "count"); }),
            "entry \"count\" has 2 results, the type of this keel::Entry takes 1");
  EXPECT_EQ(Failure([&] { serve(); }), "entry \"serve\" takes (x), got 0 arguments");
  EXPECT_EQ(Failure([&] { serve(1, 2); }), "entry \"serve\" takes (x), got 2 arguments");
  EXPECT_EQ(Failure([&] { serve(Tensor{{1, 2}}); }), "entry \"serve\": x is i32[1, 2], expected f32[b, 2]");
  EXPECT_EQ(Failure([&] {
              serve(Tensor{{1.f, 2.f, 3.f}});
            }),
            "entry \"serve\": x is f32[1, 3], expected f32[b, 2]");
  EXPECT_EQ(Failure([&] { serve(Tensor{1.f, 2.f}); }), "entry \"serve\": x is f32[2], expected f32[b, 2]");
  EXPECT_EQ(Failure([&] {
              serve(keel::zeros({5, 2}));
            }),
            "entry \"serve\": \"b in 1..4\" does not hold; b is 5");
  auto f = keel::function("f", [&](const Tensor& x) { return serve(x) + 1; });
  EXPECT_EQ(Failure([&] { f(keel::zeros({5, 2})); }), "entry \"serve\": \"b in 1..4\" does not hold; b is 5");
}

TEST_P(Entries, RunsToDebugRunThemToo) {
  Entry serve(module, "serve");
  keel::Eagerly now;
  EXPECT_EQ(Text(serve(Tensor{{1.f, 2.f}})), "f32[1, 2] [[ 3. 10.]]");
  keel::Tape tape;
  EXPECT_TRUE(Has(Failure([&] { serve(Tensor{{1.f, 2.f}}); }), "entry \"serve\" is a graph"));
}

}  // namespace
