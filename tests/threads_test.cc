// threads_test.cc: concurrent use: nine threads on a pool of eight run one plan, apply one bound op, open
// contexts, load modules, stop runs. Oracles are literals; under ThreadSanitizer (the preset tsan) a race
// also fails the test. oneDNN is not built for that sanitizer, so only `reference` runs there.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "sdk/cpp/keel/keel.hpp"
#include "tests/devices.h"

namespace {

constexpr int kThreads = 9, kRounds = 40;
constexpr char kText[] = R"(keel 1

const w: f32[2, 2] = [2.0, 0.0, 0.0, -1.0]

fn @main(x: f32[n, 2]) -> y: f32[n, 2] {
  h = add(x, 1) : f32[n, 2]
  m = matmul(h, w) : f32[n, 2]
  y = relu(m) : f32[n, 2]
  return y
}

entry main = @main (x) -> (y)
)";

// Runs `body(thread)` on all threads, started together; an exception fails the test.
void Together(const std::function<void(int)>& body) {
  std::atomic<int> waiting = kThreads;
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++)
    threads.emplace_back([&, t] {
      for (waiting--; waiting > 0;) std::this_thread::yield();
      try {
        body(t);
      } catch (const std::exception& e) {
        failures[static_cast<size_t>(t)] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

class Threads : public testing::TestWithParam<std::string> {
 protected:
  static keel::Context Open(const std::string& device) {
    keel::Context context({{"threads", "8"}});
    context.load_plugin(std::string(KEEL_TEST_PLUGINS "/keel-") + device + ".so");
    return context;
  }
  // n rows of (v, v); the result has rows (2 v + 2, max(0, -v - 1)).
  static keel::Array Rows(const keel::Context& context, int64_t n, float v) {
    const int64_t shape[] = {n, 2};
    return keel::Array::of<float>(context, shape, std::vector<float>(static_cast<size_t>(2 * n), v));
  }
  static void Check(const keel::Array& y, int64_t n, float v) {
    std::span<float> got = y.values<float>();
    if (got.size() != static_cast<size_t>(2 * n)) throw std::runtime_error("wrong shape");
    for (size_t i = 0; i < got.size(); i += 2)
      if (got[i] != std::max(0.0f, 2 * v + 2) || got[i + 1] != std::max(0.0f, -v - 1))
        throw std::runtime_error("wrong answer");
  }
  static void RunOnce(const keel::Context& context, const keel::Plan& plan, int t, int round) {
    int64_t n = (t + round) % 4;
    auto v = static_cast<float>(t - 4 + round % 3);
    Check(plan.run(std::vector{Rows(context, n, v)})[0], n, v);
  }

  keel::Context context_ = Open(GetParam());
  keel::Module module_ = keel::Module::parse(context_, kText);
};

TEST_P(Threads, RunOnePlan) {
  keel::Plan plan = keel::Session(module_, GetParam()).prepare();
  Together([&](int t) {
    for (int round = 0; round < kRounds; round++) RunOnce(context_, plan, t, round);
  });
}

TEST_P(Threads, PrepareInOneSessionAndInTheirOwn) {
  keel::Session shared(module_, GetParam());
  Together([&](int t) {
    keel::Session own(module_, GetParam(), {{"threads", std::to_string(1 + t % 3)}});
    RunOnce(context_, shared.prepare(), t, 0);
    RunOnce(context_, own.prepare(), t, 1);
    const std::string cut[] = {"h"}, fetch[] = {"m"};
    if (keel::Plan part = shared.prepare(cut, fetch); part.inputs() != 1)
      throw std::runtime_error("not one input");
  });
}

TEST_P(Threads, OpenAndCloseContexts) {
  Together([&](int t) {
    for (int round = 0; round < 5; round++) {
      keel::Context context = Open(GetParam());
      keel::Module module = keel::Module::parse(context, kText);
      RunOnce(context, keel::Session(module, GetParam()).prepare(), t, round);
    }
  });
}

TEST_P(Threads, ApplyOneBoundOp) {
  keel::Op add(context_, GetParam(), "add");
  Together([&](int t) {
    for (int round = 0; round < kRounds; round++) {
      int64_t n = 1 + (t + round) % 5;  // sizes that other threads prepare concurrently
      auto v = static_cast<float>(t);
      keel::Array sum = add({Rows(context_, n, v), Rows(context_, n, 1)})[0];
      for (float got : sum.values<float>())
        if (got != v + 1) throw std::runtime_error("wrong sum");
    }
  });
}

TEST_P(Threads, LoadSaveParseAndReportModules) {
  std::string folder = testing::TempDir(), path = folder + "/threads" + std::to_string(getpid()) + ".keel";
  const std::string text = module_.text();
  module_.save(path);
  Together([&](int t) {
    std::string own = path + std::to_string(t);
    for (int round = 0; round < 5; round++) {
      keel::Module loaded = keel::Module::load(context_, path);
      RunOnce(context_, keel::Session(loaded, GetParam()).prepare(), t, round);
      if (loaded.text() != text || module_.text().size() < text.size())
        throw std::runtime_error("another text");
      module_.save(own);
      module_.metadata("round", std::to_string(t));
      module_.metadata("round", "");
      if (module_.info().empty() || context_.report("ops:" + GetParam()).empty())
        throw std::runtime_error("an empty report");
    }
    std::filesystem::remove(own);
  });
  std::filesystem::remove(path);
}

TEST_P(Threads, BuildGraphsOfOneModuleWhileOthersPlan) {
  Together([&](int t) {
    keel::Graph graph = module_.graph(("g" + std::to_string(t)).c_str());
    const keel_dim dims[] = {module_.dim("k" + std::to_string(t)), 2};
    keel_value x = graph.param("x", KEEL_F32, dims);
    for (int i = 0; i < 20; i++) x = graph.node("neg", std::vector{x})[0];
    graph.result("y", x);
    RunOnce(context_, keel::Session(module_, GetParam(), {{"entry", "main"}}).prepare(), t, 0);
    module_.entry("e" + std::to_string(t), graph);
  });
}

TEST_P(Threads, StopSomeRunsThroughTheirObservers) {
  keel::Plan plan = keel::Session(module_, GetParam(), {{"observe", "1"}}).prepare();
  Together([&](int t) {
    for (int round = 0; round < kRounds; round++) {
      uint32_t stop = static_cast<uint32_t>(t + round) % 4, seen = 0;  // 3: never
      std::vector<keel::Array> out =
          plan.run_observed(std::vector{Rows(context_, 3, 1)}, [&](const keel_event& event) {
            if (event.index != seen++) throw std::runtime_error("out of order");
            return event.index == stop;
          });
      if (out.empty() != (stop < 3) || seen != std::min(stop + 1, 3u))
        throw std::runtime_error("not stopped");
      if (!out.empty()) Check(out[0], 3, 1);
    }
  });
}

TEST_P(Threads, ScanPluginsWhileOthersAskForThem) {
  Together([&](int t) {
    if (t % 3 == 0) context_.scan_plugins();
    for (int round = 0; round < 5; round++)
      if (context_.devices().empty() || context_.report("plugins").empty() ||
          context_.report("devices").empty())
        throw std::runtime_error("nothing found");
    RunOnce(context_, keel::Session(module_, GetParam()).prepare(), t, 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Device, Threads, testing::ValuesIn(keel_test::ThreadedDevices()),
                         [](const auto& info) { return info.param; });

}  // namespace
