// profile.cc: `keel profile`: where a run spends its time, node by node, as a table and as a trace.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <keel/timeline.hpp>
#include <map>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/data/output.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/measure/profile.h"
#include "cli/measure/timing.h"
#include "cli/show/print.h"
#include "cli/terminal.h"

namespace cli {
namespace {

struct {
  bool is_program = false;
  std::vector<std::string> program_arguments;
} profile_flags;

void program_flags(Flags& flags, Args& a) {
  flags.add("--trace", a.trace, "file for a trace of all launches (Chrome, Perfetto)")
      .add("--program", profile_flags.is_program,
           "FILE is a program that uses Keel: report its traces, plans and runs")
      .add("arguments", profile_flags.program_arguments, "arguments of the program, after --");
}

constexpr size_t kShown = 20, kInside = 6, kMaxOps = 40;  // rows, rows of a region, columns of its ops

double rate(double work, double ms) { return ms > 0 ? work / ms / 1e6 : 0; }

// NaN (unknown) becomes null.
Json known(double v) { return std::isnan(v) ? Json() : Json(v); }
double number_or_nan(const Json& json) { return json.is_null() ? NAN : json.get<double>(); }

Json body_json(const Region& region) {
  Json body = Json::array();
  for (const RegionNode& node : region.nodes)
    body.push_back({{"node", node.name}, {"op", node.op}, {"flops", known(node.flops)}});
  return body;
}

Json node_json(const Node& node, size_t index, double sum) {
  double ms = median(node.ms);
  Json json{{"index", index},
            {"node", node.name},
            {"op", node.op},
            {"impl", node.impl},
            {"calls", node.launches},
            {"ms", ms},
            {"share", sum > 0 ? ms / sum : 0},
            {"flops", known(node.work.flops)},
            {"bytes", node.work.bytes},
            {"gflops", known(rate(node.work.flops, ms))},
            {"gbytes", rate(node.work.bytes, ms)}};
  if (node.region) {
    json["contains"] = ops_in(*node.region);
    json["body"] = body_json(*node.region);
  }
  return json;
}

// Groups nodes by op and impl, most expensive first.
Json by_op(const Json& nodes) {
  std::map<std::pair<std::string, std::string>, Json> groups;
  for (const Json& n : nodes) {
    Json& g = groups[{n.at("op"), n.at("impl")}];
    if (g.is_null()) g = {{"op", n.at("op")}, {"impl", n.at("impl")}};
    g["launches"] = g.value("launches", 0) + 1;
    for (const char* key : {"ms", "share", "flops", "bytes"})
      g[key] = known((g.contains(key) ? number_or_nan(g[key]) : 0.0) + number_or_nan(n.at(key)));
  }
  std::vector<Json> rows;
  for (auto& [key, g] : groups) {
    g["gflops"] = known(rate(number_or_nan(g.at("flops")), g.at("ms")));
    g["gbytes"] = rate(g.at("bytes"), g.at("ms"));
    rows.push_back(std::move(g));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Json& a, const Json& b) { return a.at("ms") > b.at("ms"); });
  return rows;
}

Json to_json(const Profile& profile, const Roofline& roof) {
  double sum = 0;
  for (const Node& node : profile.nodes)
    if (!node.ms.empty()) sum += median(node.ms);
  std::vector<Json> nodes;
  for (size_t i = 0; i < profile.nodes.size(); i++)
    if (!profile.nodes[i].ms.empty()) nodes.push_back(node_json(profile.nodes[i], i, sum));
  Json ops = by_op(nodes);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const Json& a, const Json& b) { return a.at("ms") > b.at("ms"); });
  double plain = median(profile.plain_ms), watched = median(profile.watched_ms);
  // By pairs of adjacent runs, which cancels slow changes of the machine.
  std::vector<double> changes;
  for (size_t i = 0; i < profile.plain_ms.size(); i++)
    changes.push_back(profile.plain_ms[i] > 0 ? profile.watched_ms[i] / profile.plain_ms[i] - 1 : 0);
  auto interval = median_interval(changes);
  return {{"run_ms", plain},
          {"watched_ms", watched},
          {"launches_ms", sum},
          {"distortion", median(changes)},
          {"distortion_low", interval ? Json(interval->first) : Json()},
          {"distortion_high", interval ? Json(interval->second) : Json()},
          {"roof", {{"gflops", roof.gflops}, {"gbytes", roof.gbytes}}},
          {"ops", ops},
          {"nodes", nodes}};
}

void print_rows(const Json& rows, const char* first, const char* second, const Json& roof) {
  std::vector<std::vector<std::string>> table{
      {"ms", "share", first, second, "impl", "GFLOP/s", "of roof", "GB/s", "of roof"}};
  auto number = [](double v) { return std::isnan(v) ? std::string("?") : fmt::format("{:.3g}", v); };
  auto of = [&](const Json& row, const char* key) {
    double part = number_or_nan(row.at(key)) / roof.at(key).get<double>();
    if (std::isnan(part)) return std::string("?");
    return part > 1 ? std::string("cache") : fmt::format("{:.0f} %", 100 * part);  // memory bandwidth only
  };
  double rest = 0;
  for (const Json& row : rows) {
    if (table.size() > kShown) {
      rest += row.at("ms").get<double>();
      continue;
    }
    table.push_back({fmt::format("{:.4g}", row.at("ms").get<double>()),
                     fmt::format("{:.1f} %", 100 * row.at("share").get<double>()), cell(row.at(first)),
                     cell(row.at(row.contains("contains") ? "contains" : second)).substr(0, kMaxOps),
                     cell(row.at("impl")), number(number_or_nan(row.at("gflops"))), of(row, "gflops"),
                     number(number_or_nan(row.at("gbytes"))), of(row, "gbytes")});
  }
  print_table(table);
  if (rows.size() > kShown) fmt::print("and {} more: {:.4g} ms\n", rows.size() - kShown, rest);
}

// The model's nodes with most of the arithmetic in a region. Their times are unknown.
void print_regions(const Json& nodes) {
  for (size_t n = 0; n < std::min(nodes.size(), kShown); n++) {
    const Json& region = nodes[n];
    if (!region.contains("body")) continue;
    std::vector<Json> inside(region.at("body").begin(), region.at("body").end());
    std::stable_sort(inside.begin(), inside.end(), [](const Json& a, const Json& b) {
      return number_or_nan(a.at("flops")) > number_or_nan(b.at("flops"));
    });
    print_text(fmt::format("\nin {}, {} nodes ({}), the most arithmetic:\n", cell(region.at("node")),
                           inside.size(), one_line(cell(region.at("contains")), 60)));
    std::vector<std::vector<std::string>> table{{"MFLOP", "of it", "node", "op"}};
    double all = number_or_nan(region.at("flops"));
    for (size_t i = 0; i < std::min(inside.size(), kInside); i++) {
      double flops = number_or_nan(inside[i].at("flops"));
      table.push_back({fmt::format("{:.4g}", flops / 1e6), fmt::format("{:.1f} %", 100 * flops / all),
                       cell(inside[i].at("node")), cell(inside[i].at("op"))});
    }
    print_table(table);
  }
}

std::string distortion_text(const Json& json) {
  if (json.at("distortion_low").is_null()) return "too few runs to measure the overhead of observation";
  double low = 100 * json.at("distortion_low").get<double>(),
         high = 100 * json.at("distortion_high").get<double>();
  if (low <= 0 && high >= 0)
    return fmt::format("observation has no measurable effect on the time of a run ({:+.1f} to {:+.1f} %)",
                       low, high);
  return fmt::format("observation changes the time of a run by {:+.1f} to {:+.1f} %", low, high);
}

void print_report(const Json& json) {
  auto number = [&](const char* key) { return json.at(key).get<double>(); };
  const Json& roof = json.at("roof");
  print_text(fmt::format(
      "{} on {}, {} threads: {:.4g} ms per run (median of {}); observed, its {} launches take {:.4g} ms\n",
      cell(json.at("file")), cell(json.at("device")), cell(json.at("threads")), number("run_ms"),
      cell(json.at("n")), json.at("nodes").size(), number("launches_ms")));
  const double gflops = roof.at("gflops").get<double>();
  print_text(fmt::format("{}\nmeasured roofline: {} GFLOP/s, {:.3g} GB/s of memory\n\n",
                         distortion_text(json), std::isnan(gflops) ? "?" : fmt::format("{:.4g}", gflops),
                         roof.at("gbytes").get<double>()));
  print_rows(json.at("ops"), "op", "launches", roof);
  fmt::print("\n");
  print_rows(json.at("nodes"), "node", "op", roof);
  print_regions(json.at("nodes"));
}

}  // namespace

namespace {

// The nodes in the device's launches. Omitted, without an error, if the passes produce a different graph
// here.
Regions regions_of(const keel::Context& context, const Args& args, const std::vector<InputSpec>& given,
                   const Entry& entry, const Inputs& inputs, const std::string& device) {
  Args quiet = args;
  quiet.verbose = false;
  Model copy = open_model(context, args.file, quiet, given);
  Dims dims;
  for (size_t i = 0; i < entry.params.size(); i++)
    bind_dims(entry.params[i].type, inputs.arrays[i].shape(), dims);
  return find_regions(copy, entry, device, pass_options(args), dims);
}

int profile_command(const Args& args) {
  if (!args.trace.empty()) {
    refuse_overwrite(args, args.trace);
    refuse_other_than_json(args.trace);
  }
  if (profile_flags.is_program) return profile_program(args, profile_flags.program_arguments);
  if (!profile_flags.program_arguments.empty())
    throw Fail(kUsage, "unexpected argument " + profile_flags.program_arguments[0],
               "arguments after the file require --program");
  keel::Context context = open_context(args);
  std::string device = pick_device(context, args.device);
  std::vector<InputSpec> given = parse_inputs(context, args.inputs);
  std::optional<keel::Timeline> timeline;
  if (!args.trace.empty()) at(Stage::kFile, [&] { timeline.emplace(args.trace, false); });
  Model model = open_model(context, args.file, args, given);
  const Entry& entry = pick_entry(model, args.entry);
  Inputs inputs = gather_inputs(context, model, entry, given, args, true);
  report_generated(args, inputs);
  keel::Options options = session_options(args, entry.name, &model);
  options.set("profile", "1");
  keel::Plan plan = keel::Session(model.module, device, options).prepare();
  device = device_of(device, plan);
  std::optional<Interruptible> until_done(std::in_place, context);
  Profile profile = take_profile(plan, inputs.arrays, args.runs, args.warmup);
  if (profile.plain_ms.empty()) return report_interrupted("profile", 0, args.runs, "runs");
  until_done.reset();
  const Json report = Json::parse(plan.report(inputs.arrays));
  if (timeline) {
    show_launches(profile, report);
    at(Stage::kFile, [&] { timeline->end(); });
  }
  // After the timeline, because it opens the file and runs the passes again.
  const Regions regions = regions_of(context, args, given, entry, inputs, device);
  for (Node& node : profile.nodes) {
    auto region = regions.find(node.name);
    if (node.op != "call" || region == regions.end()) continue;
    node.region = &region->second;
    node.work.flops = region->second.flops;
  }
  int threads = report.value("threads", 1);
  Json json{{"schema", "keel.profile/1"},
            {"file", args.file},
            {"device", device},
            {"threads", threads},
            {"n", profile.plain_ms.size()}};
  json.update(to_json(profile, measure_roofline(context, device, threads)));
  if (interrupted()) json["stopped"] = "by Ctrl-C";
  args.json ? print_json(json) : print_report(json);
  if (interrupted())
    return report_interrupted("profile", static_cast<int64_t>(profile.plain_ms.size()), args.runs, "runs");
  return kOk;
}

const Command kProfile("profile", "Show where a run spends its time, node by node; write a trace",
                       {file_argument, input_flags, device_flag, entry_flag, placing_flags, count_flags,
                        program_flags, pass_flags},
                       profile_command);

}  // namespace
}  // namespace cli
