// fuzz_rules.cc: any text as rewrite rules is accepted or rejected with a location; accepted rules run on a
// small graph.
#include <cstdint>
#include <cstdlib>

#include "kernel/runtime/pass/rewrite.h"
#include "kernel/runtime/rules/rules.h"

namespace {

constexpr char kGraph[] = R"(keel 1
fn @main(x: f32[b, 3], i: i32[3]) {
  a = relu(x * 1 + -0.0) / 8
  c = transpose(transpose(a)){perm=[1, 0]}
  r = reshape(reshape(c){to=[-1]}){to=[3, -1]}
  s = reduce_sum(1 / (1 + exp(-r))){axes=[0], keep=true}
  j = cast(cast(i){to=f64}){to=i8}
  return s, select(x > 0, x, x), j, logical_not(i == i)
}
entry main = @main (x, i)
)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto catalogue = std::make_shared<keel::Catalogue>();
  static auto module = *keel::ParseText(kGraph, catalogue);
  static auto plugin = std::make_shared<keel::Plugin>();
  static keel::Device device(plugin, 0);
  auto rules = keel::ReadRules({reinterpret_cast<const char*>(data), size}, "fuzz", *catalogue);
  if (!rules.ok()) {
    if (rules.status().message().substr(0, 5) != "fuzz:" && size <= 1 << 20) abort();
    return 0;
  }
  const keel::Graph& graph = *module->graphs[0];
  keel::PassGraph whole{nullptr, &graph, graph.params, graph.results, graph.result_names, {}};
  for (const keel::Pass& pass : (*rules)->passes) {
    keel::Rewrite work(whole, {&device, nullptr});
    work.Allow(64);
    if (keel::rules::Run(*pass.rules, work.edit()).ok() && work.edits() && !work.Finish().ok()) abort();
  }
  return 0;
}
