// fork_test.cc: fork() while other threads are within Keel, and by a thread within Keel; children continue to
// use all of it. A child that blocks forever is killed.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "devices.h"
#include "tests/in_child.h"

namespace {

using keel::Tensor;

int InChild(const std::function<bool()>& body) { return keel_test::InChild(20, body); }

Tensor Ones(std::initializer_list<int64_t> dims) { return keel::zeros(std::vector<int64_t>(dims)) + 1.f; }
float Number(const Tensor& t) { return t.item<float>(); }

constexpr char kText[] = R"(keel 1

fn @main(x: f32[n, n]) -> y: f32[n, n] {
  h = matmul(x, x) : f32[n, n]
  y = add(h, 1) : f32[n, n]
  return y
}

entry main = @main (x) -> (y)
)";

// Each check holds for every n and under concurrency.
struct Everything {
  keel::Variable total{Ones({1000})};
  keel::Module module = keel::Module::parse(keel::default_context(), kText);
  keel::Session session{module, "cpu", {{"timeout_ms", "60000"}}};
  keel::Plan plan = session.prepare();

  bool Run(int n) {
    const int64_t size = n % 40 + 1;
    keel::Array y = plan.run(std::vector{Ones({size, size}).array()})[0];
    return y.values<float>()[0] == static_cast<float>(size + 1);
  }
  bool Trace(int n) {
    auto f =
        keel::function("f", [&](const Tensor& x) { return keel::reduce_sum(keel::matmul(x, x) + n, {}); });
    const auto size = static_cast<float>(n % 30 + 1);
    return Number(f(Ones({n % 30 + 1, n % 30 + 1}))) == size * size * (size + static_cast<float>(n));
  }
  bool Add(int) {
    total.assign_add(Ones({1000}));
    Tensor now = total.value();
    return Number(keel::reduce_min(now)) == Number(keel::reduce_max(now));
  }
  bool Gradient(int n) {
    keel::Tape tape;
    Tensor x = Ones({n % 50 + 1});
    tape.watch(x);
    Tensor y = keel::reduce_sum(keel::square(x) * n, {});
    return Number(keel::reduce_max(tape.gradient(y, x))) == static_cast<float>(2 * n);
  }
  bool OpenAll(int n) {
    keel::Context own;
    own.load_plugin(KEEL_TEST_PLUGINS "/keel-reference.so");
    own.load_plugin(KEEL_TEST_PLUGINS "/keel-cpu.so");
    keel::Module copy = keel::Module::parse(own, kText);
    const int64_t shape[] = {1, 1};
    keel::Array x = keel::Array::of<float>(own, shape, std::vector<float>{static_cast<float>(n)});
    keel::Session limited(copy, n % 2 ? "cpu" : "reference", {{"timeout_ms", "60000"}});
    keel::Array y = limited.prepare().run(std::vector{x})[0];
    return y.values<float>()[0] == static_cast<float>(n) * static_cast<float>(n) + 1;
  }
  using Work = bool (Everything::*)(int);
  static constexpr Work kAll[] = {&Everything::Run, &Everything::Trace, &Everything::Add,
                                  &Everything::Gradient, &Everything::OpenAll};
  bool All(int n) {
    size_t at = 0;  // the compiler's bounds check misreads kAll[at] within a call
    for (Work work : kAll) {
      if (!(this->*work)(n)) return fprintf(stderr, "work %zu is wrong for %d\n", at, n), false;
      at++;
    }
    return true;
  }
};

class Forks : public testing::TestWithParam<int> {};

// All kinds of work, or many threads with one kind.
TEST_P(Forks, OfABusyProcessGoOn) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own heap has a lock that fork() does not wait for: children hang in new";
#endif
  Everything keel;
  ASSERT_TRUE(keel.All(1));
  std::atomic<bool> enough{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < std::size(Everything::kAll); t++)
    threads.emplace_back([&, t] {
      Everything::Work work = Everything::kAll[GetParam() < 0 ? t : static_cast<size_t>(GetParam())];
      for (int n = 1; !enough; n++) wrong += !(keel.*work)(n % 997);
    });
  for (int i = 0; i < 40 && !HasFailure(); i++)
    EXPECT_EQ(InChild([&] {
                bool others = false;
                std::thread([&] { others = keel.All(i + 2); }).join();
                return others && keel.All(i);
              }),
              0)
        << "fork " << i;
  enough = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}
INSTANTIATE_TEST_SUITE_P(Work, Forks, testing::Range(-1, static_cast<int>(std::size(Everything::kAll))));

TEST(Fork, WithinATraceGoesOnInBoth) {
  int status = -1;
  pid_t here = getpid();
  auto f = keel::function("f", [&](const Tensor& x) {
    if (getpid() == here && status < 0) {
      pid_t child = fork();
      if (child) waitpid(child, &status, 0);
      if (!child) alarm(20);
    }
    return x + 1;
  });
  float first = Number(f(Tensor(1.f))), again = Number(f(Ones({1})));
  bool right = first == 2 && again == 2 && f.trace_count() == 2;
  if (getpid() != here) _exit(right ? 0 : 1);
  EXPECT_TRUE(right);
  EXPECT_EQ(status, 0);
}

TEST(Fork, WithinAHookOfPrintGoesOnInBoth) {
  keel::Context context;
  context.load_plugin(KEEL_TEST_PLUGINS "/keel-reference.so");
  static int lines, status;
  static pid_t here;
  lines = 0, status = -1, here = getpid();
  keel_print_hook(
      context.get(),
      [](void*, int32_t, const char*, uint64_t) {
        if (lines++) return;
        pid_t child = fork();
        if (child) waitpid(child, &status, 0);
        if (!child) alarm(20);
      },
      nullptr);
  const char* text =
      "keel 1\nfn @main(x: f32[]) -> y: f32[] {\n  print(x){format=\"{}\"}\n  print(x){format=\"{}\"}\n"
      "  y = add(x, 1)\n  return y\n}\nentry main = @main (x) -> (y)\n";
  keel::Module module = keel::Module::parse(context, text);
  keel::Plan plan = keel::Session(module, "reference").prepare();
  const float one = 1;
  keel::Array x = keel::Array::of<float>(context, {}, std::span(&one, 1));
  bool right = plan.run(std::vector{x})[0].values<float>()[0] == 2 && lines == 2;
  right = right && plan.run(std::vector{x})[0].values<float>()[0] == 2 && lines == 4;
  if (getpid() != here) _exit(right ? 0 : 1);
  EXPECT_TRUE(right);
  EXPECT_EQ(status, 0);
}

TEST(Fork, LeavesAChildThatMayCloseWhatHadTimeLimits) {
  auto context = std::make_unique<keel::Context>();
  context->load_plugin(KEEL_TEST_PLUGINS "/keel-reference.so");
  {
    keel::Module module = keel::Module::parse(*context, kText);
    const int64_t shape[] = {1, 1};
    keel::Array x = keel::Array::of<float>(*context, shape, std::vector{1.f});
    keel::Session(module, "reference", {{"timeout_ms", "60000"}}).prepare().run(std::vector{x});
  }
  std::this_thread::sleep_for(
      std::chrono::milliseconds(20));  // the thread that watches the limits is asleep by now
  EXPECT_EQ(InChild([&] { return context.reset(), true; }), 0);
}

}  // namespace
