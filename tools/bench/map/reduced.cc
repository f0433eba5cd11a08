// reduced.cc: elementwise ops and a reduction in one launch, compared with a handwritten loop and with two
// separate launches, through the C ABI, one thread.
//   bench_reduced [--rounds 15]
// Prints for each size the times and the ratios: medians and quartiles over alternating rounds. Results are
// compared bit by bit. See ../README.md.
#include <cstring>

#include "hand.h"
#include "turns.h"

namespace {

using hot::Call;

struct Case {
  const char* name;
  const char* group;   // of x, y: f32[n / 256, 256], ends in t
  const char* reduce;  // of t
  void (*hand)(const float* x, const float* y, float* out, int64_t rows, int64_t columns);
};
const Case kCases[] = {
    {"reduce_mean(square(x - y))", "  a = x - y\n  t = square(a)\n", "reduce_mean(t)",
     map_bench::MeanOfSquares},
    {"reduce_sum(x * y), last axis", "  t = x * y\n", "reduce_sum(t){axes=[1]}", map_bench::RowSums},
    {"reduce_sum(x * y), first axis", "  t = x * y\n", "reduce_sum(t){axes=[0]}", map_bench::ColumnSums},
    {"reduce_max(abs(x))", "  t = abs(x)\n", "reduce_max(t)", map_bench::MaxOfAbs},
};

// In one function, or with the group in a separate call that passes do not inline.
std::string Text(const Case& c, int64_t rows, int64_t columns, bool apart) {
  const std::string type = "f32[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
  const std::string head = "(x: " + type + ", y: " + type + ") {\n";
  const std::string group = "fn @group" + head + c.group + "  return t\n}\n\n";
  return "keel 1\n\n" + (apart ? group : "") + "fn @main" + head +
         (apart ? "  t = call(x, y){body=@group}\n" : c.group) + "  r = " + c.reduce +
         "\n  return r\n}\n\nentry main = @main (x, y)\n";
}

void Bench(keel_context* context, const Case& c, int64_t n, int rounds) {
  constexpr int64_t kColumns = 256;
  const std::vector<keel_kv> options = {{"threads", "1"}};
  const hot::Prepared one(context, "cpu", Text(c, n / kColumns, kColumns, false), options),
      two(context, "cpu", Text(c, n / kColumns, kColumns, true), options);
  keel_array* in[2] = {};
  const float* data[2];
  for (int i = 0; i < 2; i++) {
    in[i] = map_bench::Wave(context, {n / kColumns, kColumns}, i == 0 ? 0.7f : -0.4f);
    keel_tensor t;
    keel_array_tensor(in[i], &t);
    data[i] = static_cast<const float*>(t.data);
  }
  std::vector<float> y(static_cast<size_t>(std::max(kColumns, n / kColumns)));
  keel_array* result[2] = {};
  const auto run = [&](const hot::Prepared& plan, keel_array** out) {
    keel_array_free(*out);
    Call(keel_plan_run, plan.plan, in, 2u, out, 1u);
  };
  const auto fused = [&] { run(one, &result[0]); };
  const auto apart = [&] { run(two, &result[1]); };
  const auto hand = [&] { c.hand(data[0], data[1], y.data(), n / kColumns, kColumns); };
  fused(), apart(), hand();
  for (keel_array* r : result) {
    keel_tensor got;
    keel_array_tensor(r, &got);
    if (std::memcmp(y.data(), got.data, static_cast<size_t>(map_bench::Count(got)) * sizeof(float)) == 0)
      continue;
    std::fprintf(stderr, "bench_reduced: other bits than the hand-written loop's, %s of %lld\n", c.name,
                 static_cast<long long>(n));
    std::exit(1);
  }
  const map_bench::Turns turns({fused, apart, hand}, n, rounds);
  std::printf("| %s | %lld | %.4g | %.4g | %.4g | %s | %s |\n", c.name, static_cast<long long>(n),
              turns.Micros(0), turns.Micros(1), turns.Micros(2), turns.Ratio(0, 1).c_str(),
              turns.Ratio(0, 2).c_str());
  for (keel_array* a : {in[0], in[1], result[0], result[1]}) keel_array_free(a);
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
      "| ops | elements | one launch, us | two | by hand | of two [quartiles] | of the hand's |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Case& c : kCases)
    for (int64_t n : {1 << 12, 1 << 16, 1 << 20, 1 << 24}) Bench(context, c, n, rounds);
  keel_context_free(context);
  return 0;
}
