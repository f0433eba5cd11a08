// bench.cc: `keel bench`: load, first run and steady state.
//
// How to read it: one plan, bound inputs, sequential runs. peak_bytes is the planned memory: arena, scratch,
// results and constants; rss_growth_bytes is the growth of the process, including code of the device.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/measure/timing.h"
#include "cli/show/print.h"
#include "cli/terminal.h"

namespace cli {
namespace {

double planned_bytes(const Json& report) {
  double sum = 0;
  for (const char* key : {"arena_bytes", "scratch_bytes", "result_bytes", "constant_bytes"})
    sum += report.value(key, 0.0);
  return sum;
}

void add_times(Json& json, const Summary& s) {
  json.update(Json{{"p50_ms", s.p50},
                   {"p90_ms", s.p90},
                   {"p99_ms", s.p99},
                   {"mean_ms", s.mean},
                   {"mean_low_ms", s.mean_low},
                   {"mean_high_ms", s.mean_high},
                   {"min_ms", s.min}});
}

void add_machine(Json& json, const MachineWatch::Seen& seen, double drift) {
  json["throttling"] = throttling(seen, drift);
  json["machine"] = Json{{"drift", drift},
                         {"steal", seen.steal},
                         {"other_processes", seen.other},
                         {"preempted", seen.preempted},
                         {"mhz_first", seen.mhz_first},
                         {"mhz_last", seen.mhz_last}};
}

void print_measured(const Json& json) {
  auto ms = [&](const char* key) { return json.at(key).get<double>(); };
  fmt::print("{} on {}, {} runs, {} threads\n", cell(json.at("file")), cell(json.at("device")),
             cell(json.at("n")), cell(json.at("threads")));
  for (const char* key : {"p50_ms", "p90_ms", "p99_ms"}) fmt::print("  {:<10} {:.4g}\n", key, ms(key));
  fmt::print("  {:<10} {:.4g} [{:.4g}, {:.4g}]\n", "mean_ms", ms("mean_ms"), ms("mean_low_ms"),
             ms("mean_high_ms"));
  for (const char* key : {"min_ms", "first_ms", "load_ms"}) fmt::print("  {:<10} {:.4g}\n", key, ms(key));
  fmt::print("  {:<10} {} (arena, results and constants); the process {}\n", "peak",
             human_bytes(json.at("peak_bytes").get<double>()),
             human_bytes(json.at("rss_peak_bytes").get<double>()));
  std::string signs = cell(json.at("throttling"));
  fmt::print("  {:<10} {}\n", "throttling", signs.empty() ? "none seen" : signs);
}

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
  report_generated(args, inputs);
  start = Clock::now();
  keel::Plan plan = keel::Session(model.module, device, session_options(args, entry.name, &model)).prepare();
  device = device_of(device, plan);
  double prepare_ms = ms_since(start);
  load_ms += prepare_ms;

  start = Clock::now();
  Interruptible until_done(context);
  plan.run(inputs.arrays);
  double first_ms = ms_since(start);
  Progress progress("bench");
  auto run = [&] { plan.run(inputs.arrays); };
  for (int i = 0; i < args.warmup && kept_going(run); i++) progress.count("warm-up", i + 1, args.warmup);
  MachineWatch watch;
  std::vector<double> times;
  times.reserve(static_cast<size_t>(args.runs));
  for (int i = 0; i < args.runs; i++) {
    start = Clock::now();
    if (!kept_going(run)) break;
    times.push_back(ms_since(start));
    progress.count("run", i + 1, args.runs);
  }
  progress.done();
  if (times.empty()) return report_interrupted("bench", 0, args.runs, "runs");
  Summary summary = summarize(times);
  MachineWatch::Seen seen = watch.look();
  Json report = Json::parse(plan.report(inputs.arrays));

  Json json{{"schema", "keel.bench/1"},
            {"file", args.file},
            {"device", device},
            {"threads", report.value("threads", args.threads)},
            {"n", times.size()}};
  add_times(json, summary);
  json.update(Json{{"first_ms", first_ms},
                   {"load_ms", load_ms},
                   {"prepare_ms", prepare_ms},
                   {"plugins_ms", plugins_ms},
                   {"peak_bytes", static_cast<int64_t>(planned_bytes(report))},
                   {"rss_peak_bytes", static_cast<int64_t>(peak_rss())},
                   {"rss_growth_bytes", static_cast<int64_t>(peak_rss() - rss)}});
  add_machine(json, seen, summary.drift);
  if (interrupted()) json["stopped"] = "by Ctrl-C";
  args.json ? print_json(json) : print_measured(json);
  if (interrupted())
    return report_interrupted("bench", static_cast<int64_t>(times.size()), args.runs, "runs");
  return kOk;
}

const Command kBench("bench", "Measure load, first run and steady state of a graph",
                     {file_argument, input_flags, device_flag, placing_flags, entry_flag, count_flags,
                      time_limit_flag, pass_flags},
                     bench_command);

}  // namespace
}  // namespace cli
