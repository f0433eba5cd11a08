// map.cc: a fused elementwise group compared with a handwritten loop, through the C ABI, one thread.
//   bench_map [--rounds 15]
// Prints for each size both times and the ratio: median and quartiles over alternating rounds. Results are
// compared bit by bit. See ../README.md.
#include <cstring>

#include "hand.h"
#include "turns.h"

namespace {

using hot::Call;

struct Chain {
  const char* name;
  const char* body;  // of x, w, b: f32[n]
  void (*hand)(const float* x, const float* w, const float* b, float* y, int64_t n);
};
const Chain kChains[] = {
    {"9 ops", R"(  t0 = x * w
  t1 = t0 + b
  t2 = maximum(t1, -2.0)
  t3 = t2 - x
  t4 = t3 * t3
  t5 = t4 + w
  t6 = abs(t5)
  t7 = t6 * 0.5
  y = t7 + x
)",
     map_bench::NineOps},
    {"gelu by tanh", R"(  t0 = x * x
  t1 = t0 * x
  t2 = t1 * 0.044715
  t3 = t2 + x
  t4 = t3 * 0.7978846
  t5 = tanh(t4)
  t6 = t5 + 1.0
  t7 = x * 0.5
  y = t7 * t6
)",
     nullptr},
};

std::string Text(const Chain& chain, int64_t n) {
  const std::string type = "f32[" + std::to_string(n) + "]";
  const bool one = !chain.hand;
  return "keel 1\n\nfn @main(x: " + type + (one ? "" : ", w: " + type + ", b: " + type) + ") {\n" +
         chain.body + "  return y\n}\n\nentry main = @main (" + (one ? "x" : "x, w, b") + ")\n";
}

void Bench(keel_context* context, const Chain& chain, int64_t n, int rounds) {
  const hot::Prepared keel(context, "cpu", Text(chain, n), {{"threads", "1"}});
  std::vector<keel_array*> arrays;
  std::vector<const float*> data;
  for (float height : {0.7f, 1.3f, -0.4f}) {
    arrays.push_back(map_bench::Wave(context, {n}, height));
    keel_tensor t;
    keel_array_tensor(arrays.back(), &t);
    data.push_back(static_cast<const float*>(t.data));
  }
  std::vector<float> y(static_cast<size_t>(n));
  keel_array* result = nullptr;
  uint32_t n_in = 0;
  keel_plan_counts(keel.plan, &n_in, nullptr);
  const auto run = [&] {
    keel_array_free(result);
    Call(keel_plan_run, keel.plan, arrays.data(), n_in, &result, 1u);
  };
  const auto hand = [&] { chain.hand(data[0], data[1], data[2], y.data(), n); };
  run();
  if (!chain.hand) {
    const map_bench::Turns turns({run}, n, rounds);
    std::printf("| %s | %lld | %.4g |  |  |\n", chain.name, static_cast<long long>(n), turns.Micros(0));
  } else {
    hand();
    keel_tensor got;
    keel_array_tensor(result, &got);
    if (std::memcmp(y.data(), got.data, y.size() * sizeof(float)) != 0) {
      std::fprintf(stderr, "bench_map: other bits than the hand-written loop's, %s of %lld\n", chain.name,
                   static_cast<long long>(n));
      std::exit(1);
    }
    const map_bench::Turns turns({run, hand}, n, rounds);
    std::printf("| %s | %lld | %.4g | %.4g | %s |\n", chain.name, static_cast<long long>(n), turns.Micros(0),
                turns.Micros(1), turns.Ratio(0, 1).c_str());
  }
  for (keel_array* a : arrays) keel_array_free(a);
  keel_array_free(result);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 15;
  for (int i = 1; i + 1 < argc; i++)
    if (!std::strcmp(argv[i], "--rounds")) rounds = std::atoi(argv[i + 1]);
  keel_context* context = nullptr;
  Call(keel_context_new, static_cast<const keel_kv*>(nullptr), 0u, &context);
  Call(keel_plugin_load, context, nullptr);
  std::printf(
      "| ops | elements | Keel, us | by hand, us | ratio [quartiles] |\n| --- | --- | --- | --- | --- |\n");
  for (const Chain& chain : kChains)
    for (int64_t n : {1, 64, 1000, 4096, 65536, 1 << 20, 1 << 24}) Bench(context, chain, n, rounds);
  keel_context_free(context);
  return 0;
}
