// bench.cc: `keel bench`: load, first run and steady state.
//
// How to read it: one plan, bound inputs, runs one after another. peak_bytes is what the plan counts:
// arena, scratch, results and constants; rss_growth_bytes is what the process grew by, code of the device
// included.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <numeric>

#include "exit.h"
#include "interrupt.h"
#include "load.h"
#include "print.h"

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Linear between the two nearest of the sorted times.
double percentile(const std::vector<double>& sorted, double p) {
  double at = p * static_cast<double>(sorted.size() - 1);
  auto low = static_cast<size_t>(std::floor(at));
  size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - std::floor(at)) * (sorted[high] - sorted[low]);
}

// The process's greatest resident size so far.
double peak_rss() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024;
  return 0;
}

}  // namespace

int bench_command(const Args& args) {
  Clock::time_point start = Clock::now();
  keel::Context context = open_context(args);
  double plugins_ms = ms_since(start), rss = peak_rss();
  std::string device = pick_device(context, args.device);
  std::vector<InputSpec> given = parse_inputs(context, args.inputs);

  start = Clock::now();
  Model model = open_model(context, args.file, args, given);
  double load_ms = ms_since(start);
  const Entry& entry = pick_entry(model, args.entry);
  Inputs inputs = gather_inputs(context, model, entry, given, args, true);
  if (!inputs.made_up.empty()) fmt::print(stderr, "keel bench: made up {}\n", join(inputs.made_up, ", "));
  start = Clock::now();
  keel::Plan plan = keel::Session(model.module, device, session_options(args, entry.name)).prepare();
  double prepare_ms = ms_since(start);
  load_ms += prepare_ms;

  start = Clock::now();
  Interruptible until_done(context);
  plan.run(inputs.arrays);
  double first_ms = ms_since(start);
  for (int i = 0; i < args.warmup; i++) plan.run(inputs.arrays);
  std::vector<double> times(static_cast<size_t>(args.runs));
  for (double& t : times) {
    start = Clock::now();
    plan.run(inputs.arrays);
    t = ms_since(start);
  }
  double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  std::sort(times.begin(), times.end());
  Json report = Json::parse(plan.report(inputs.arrays));
  double peak = 0;
  for (const char* key : {"arena_bytes", "scratch_bytes", "result_bytes", "constant_bytes"})
    peak += report.value(key, 0.0);

  Json json{{"schema", "keel.bench/1"},
            {"file", args.file},
            {"device", device},
            {"threads", report.value("threads", args.threads)},
            {"n", args.runs},
            {"p50_ms", percentile(times, 0.5)},
            {"p90_ms", percentile(times, 0.9)},
            {"mean_ms", mean},
            {"min_ms", times.front()},
            {"first_ms", first_ms},
            {"load_ms", load_ms},
            {"prepare_ms", prepare_ms},
            {"plugins_ms", plugins_ms},
            {"peak_bytes", static_cast<int64_t>(peak)},
            {"rss_growth_bytes", static_cast<int64_t>(peak_rss() - rss)}};
  if (args.json) {
    print_json(json);
    return kOk;
  }
  fmt::print("{} on {}, {} runs\n", args.file, device, args.runs);
  for (const char* key : {"p50_ms", "p90_ms", "mean_ms", "min_ms", "first_ms", "load_ms"})
    fmt::print("  {:<10} {:.4g}\n", key, json[key].get<double>());
  fmt::print("  {:<10} {} (arena, results and constants)\n", "peak", human_bytes(peak));
  return kOk;
}

}  // namespace cli
