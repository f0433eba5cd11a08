// soak_test.cc: 64 threads call, trace and train concurrently for KEEL_SOAK_SECONDS (default 2) on each
// device. The test checks the answers, and that the heap does not grow after a warm-up. Findings of
// AddressSanitizer and of ThreadSanitizer (device reference only: oneDNN is not built for it) fail it too:
//   KEEL_SOAK_SECONDS=60 build/tsan/tests/soak_test
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "sdk/cpp/keel/keel.hpp"
#include "tests/devices.h"
#include "tests/live_bytes.h"

namespace {

using keel::Array;
constexpr int kThreads = 64, kParts = 4;

double Seconds() {
  const char* given = std::getenv("KEEL_SOAK_SECONDS");
  return given ? std::atof(given) : 2;
}

void Expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}
bool All(const Array& a, float value) {
  for (float v : a.values<float>())
    if (v != value) return false;
  return true;
}

// Shared by all threads: a function, an op, a variable, a plan.
class Soak : public testing::TestWithParam<std::string> {
 protected:
  using Tape = keel::Handle<keel_tape, keel_tape_free>;
  using Function = keel::Handle<keel_function, keel_function_free>;

  Array Filled(int64_t n, float value) const {
    return Array::of<float>(context_, {&n, 1}, std::vector<float>(static_cast<size_t>(n), value));
  }
  // y = x * x + x, repeated as the static argument specifies
  static keel_rc Program(void* self, keel_trace* trace, const keel_leaf* in, uint32_t, keel_error** err) {
    auto* soak = static_cast<Soak*>(self);
    keel_array* y = keel_array_retain(in[0].array);
    keel_rc rc = KEEL_OK;
    for (int64_t i = 0; i < 2 * in[1].i && rc == KEEL_OK; i++) {
      keel_array *operands[] = {y, i % 2 ? in[0].array : y}, *next = nullptr;
      rc = keel_trace_apply(trace, nullptr, (i % 2 ? soak->add_ : soak->mul_).get(), operands, 2, &next, 1,
                            err);
      keel_array_free(std::exchange(y, next));
    }
    if (rc == KEEL_OK) rc = keel_trace_result(trace, "y", y, err);
    keel_array_free(y);
    return rc;
  }
  Function NewFunction() {
    keel_function* out = nullptr;
    const keel_kv few[] = {{"max_traces", "8"}};  // so that some traces are evicted and made again
    keel::call(keel_function_new, context_.get(), "f", GetParam().c_str(), few, 1u, Program,
               static_cast<void*>(this), static_cast<void (*)(void*)>(nullptr), &out);
    return Function(out);
  }
  static Array Call(const Function& f, const Array& x, int64_t times) {
    const keel_leaf leaves[] = {{KEEL_LEAF_ARRAY, 0, nullptr, x.get(), 0, 0, nullptr},
                                {KEEL_LEAF_I64, 0, nullptr, nullptr, times, 0, nullptr}};
    keel_array* out = nullptr;
    uint32_t n = 0;
    keel::call(keel_function_call, f.get(), static_cast<keel_trace*>(nullptr), nullptr, "", leaves, 2u, &out,
               1u, &n);
    return Array(out);
  }

  void Calls(const Function& f, unsigned turn) {
    int64_t times = 1 + turn % 3, n = 1 + turn % 5;
    float want = 1;
    for (int64_t i = 0; i < times; i++) want = want * want + 1;
    Expect(All(Call(f, Filled(n, 1), times), want), "a function's answer");
  }
  // One step of gradient descent on w * w, with a variable that all threads train.
  void Trains() {
    keel_tape* made = nullptr;
    keel::call(keel_tape_new, context_.get(), GetParam().c_str(), static_cast<const keel_kv*>(nullptr), 0u,
               static_cast<keel_tape*>(nullptr), &made);
    Tape tape(made);
    Array w = weight_.read();
    keel::call(keel_tape_watch, made, w.get(), nullptr);
    keel_array *in[] = {w.get(), w.get()}, *y = nullptr, *dw = nullptr;
    keel::call(keel_trace_apply, nullptr, made, mul_.get(), in, 2u, &y, 1u);
    Array loss(y);
    keel::call(keel_tape_gradient, made, &y, 1u, static_cast<keel_array* const*>(nullptr), in, nullptr, 1u,
               0u, &dw);
    Array gradient(dw);
    for (size_t i = 0; i < 4; i++)
      Expect(gradient.values<float>()[i] == 2 * w.values<float>()[i], "a gradient");
    weight_.assign_sub(mul_.one(gradient, rate_));
  }
  void Step(const Function& own, unsigned turn) {
    switch (turn % 4) {
      case 0:
        return Calls(shared_, turn / 4);
      case 1:
        return turn % 32 == 1 ? Calls(NewFunction(), turn / 4) : Calls(own, turn / 4);
      case 2:
        return Trains();
      default:
        Expect(All(plan_.run(std::vector{Filled(1 + turn % 7, 2)})[0], 5), "a plan's answer");
    }
  }
  // All threads, from start to end; the first failure stops them.
  void Part(double seconds, std::atomic<uint64_t>* steps) {
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    std::atomic<bool> failed{false};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; t++)
      threads.emplace_back([&, t] {
        try {
          Function own = NewFunction();
          for (unsigned turn = 7 * t; !failed && std::chrono::steady_clock::now() < end; turn++, ++*steps)
            Step(own, turn);
        } catch (const std::exception& e) {
          failed = true;
          ADD_FAILURE() << "thread " << t << ": " << e.what();
        }
      });
    for (std::thread& t : threads) t.join();
  }

  keel::Context context_ = keel_test::Open(GetParam(), {{"threads", "2"}});
  keel::Op add_{context_, GetParam(), "add"}, mul_{context_, GetParam(), "mul"};
  keel::Module module_ =
      keel::Module::parse(context_,
                          "keel 1\nfn @main(x: f32[n]) -> f32[n] {\n  y = x * x + 1.0\n  return y\n}\n"
                          "entry main = @main (x) -> (y)\n");
  keel::Plan plan_ = keel::Session(module_, GetParam()).prepare();
  keel::Variable weight_{context_, Filled(4, 1)};
  Array rate_ = Filled(4, 1e-6f);
  Function shared_ = NewFunction();
};

TEST_P(Soak, CallsTracesAndTrains) {
  std::atomic<uint64_t> steps{0};
  double bytes[kParts];
  for (double& after : bytes) {
    Part(Seconds() / kParts, &steps);
    if (HasFailure()) return;
    after = keel_test::LiveBytes();
  }
  RecordProperty("steps", std::to_string(steps));
  std::printf("%llu steps; heap after each part: %.0f %.0f %.0f %.0f bytes\n",
              static_cast<unsigned long long>(steps), bytes[0], bytes[1], bytes[2], bytes[3]);
  EXPECT_LT(bytes[kParts - 1] - bytes[0], 1 << 20) << "the heap grows";
  Expect(weight_.read().values<float>()[0] < 1, "nobody trained");
}

INSTANTIATE_TEST_SUITE_P(Devices, Soak, testing::ValuesIn(keel_test::ThreadedDevices()),
                         [](const auto& i) { return i.param; });

}  // namespace
