// profile.cc: `keel profile`: where a run spends its time, node by node, as a table and as a trace.
//
// How to read it: plain runs and watched runs of one plan take turns; the plain ones say what watching
// costs. Watching costs nothing while a launch runs, so times of launches are right down to about a
// microsecond.
#include <fmt/core.h>
#include <algorithm>
#include <keel/timeline.hpp>
#include <map>
#include <optional>
#include <utility>

#include "exit.h"
#include "load.h"
#include "print.h"
#include "profile.h"
#include "timing.h"

namespace cli {
namespace {

constexpr size_t kShown = 20;

void watched_run(const keel::Plan& plan, const std::vector<keel::Array>& in, uint32_t run, Profile& profile) {
  Clock::time_point start = Clock::now();
  plan.run_observed(in, [&](const keel_event& event) {
    if (event.index >= profile.nodes.size()) profile.nodes.resize(event.index + 1);
    Node& node = profile.nodes[event.index];
    if (node.op.empty()) node = {event.node, event.op, event.impl, work_of(event), {}};
    if (std::exchange(node.last, profile.watched_ms.size() + 1) != profile.watched_ms.size() + 1 ||
        node.ms.empty())
      node.ms.push_back(0);
    node.ms.back() += static_cast<double>(event.end_ns - event.begin_ns) / 1e6;
    node.launches++;
    profile.spans.push_back({run, event.index, event.lane, event.begin_ns, event.end_ns});
    return false;
  });
  profile.watched_ms.push_back(ms_since(start));
}

Profile take(const keel::Plan& plan, const std::vector<keel::Array>& in, int runs, int warmup) {
  Profile profile;
  {
    keel::TimedBlock first("first run", "planning");
    watched_run(plan, in, 0, profile);
  }
  for (int i = 0; i < warmup; i++) watched_run(plan, in, 0, profile);
  size_t launches = profile.nodes.size();
  profile.spans.clear();
  profile.watched_ms.clear();
  for (Node& node : profile.nodes) {
    node.ms.clear();
    node.launches = 0;
  }
  profile.spans.reserve(launches * static_cast<size_t>(runs));
  for (int i = 0; i < runs; i++) {
    Clock::time_point start = Clock::now();
    plan.run(in);
    profile.plain_ms.push_back(ms_since(start));
    watched_run(plan, in, static_cast<uint32_t>(i), profile);
  }
  return profile;
}

double rate(double work, double ms) { return ms > 0 ? work / ms / 1e6 : 0; }

Json node_json(const Node& node, size_t index, double sum) {
  double ms = median(node.ms);
  return {{"index", index},
          {"node", node.name},
          {"op", node.op},
          {"impl", node.impl},
          {"calls", node.launches},
          {"ms", ms},
          {"share", sum > 0 ? ms / sum : 0},
          {"flops", node.work.flops},
          {"bytes", node.work.bytes},
          {"gflops", rate(node.work.flops, ms)},
          {"gbytes", rate(node.work.bytes, ms)}};
}

// Nodes with the same op and impl together, the dearest first.
Json by_op(const Json& nodes) {
  std::map<std::pair<std::string, std::string>, Json> groups;
  for (const Json& n : nodes) {
    Json& g = groups[{n.at("op"), n.at("impl")}];
    if (g.is_null()) g = {{"op", n.at("op")}, {"impl", n.at("impl")}};
    g["launches"] = g.value("launches", 0) + 1;
    for (const char* key : {"ms", "share", "flops", "bytes"})
      g[key] = g.value(key, 0.0) + n.at(key).get<double>();
  }
  std::vector<Json> rows;
  for (auto& [key, g] : groups) {
    g["gflops"] = rate(g.at("flops"), g.at("ms"));
    g["gbytes"] = rate(g.at("bytes"), g.at("ms"));
    rows.push_back(std::move(g));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Json& a, const Json& b) { return a.at("ms") > b.at("ms"); });
  return rows;
}

Json to_json(const Profile& profile, const Roof& roof) {
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
  return {{"run_ms", plain},
          {"watched_ms", watched},
          {"launches_ms", sum},
          {"distortion", plain > 0 ? watched / plain - 1 : 0},
          {"roof", {{"gflops", roof.gflops}, {"gbytes", roof.gbytes}}},
          {"ops", ops},
          {"nodes", nodes}};
}

void print_rows(const Json& rows, const char* first, const char* second, const Json& roof) {
  std::vector<std::vector<std::string>> table{
      {"ms", "share", first, second, "impl", "GFLOP/s", "of roof", "GB/s", "of roof"}};
  auto of = [&](const Json& row, const char* key) {
    double part = row.at(key).get<double>() / roof.at(key).get<double>();
    return part > 1 ? std::string("cache") : fmt::format("{:.0f} %", 100 * part);  // memory's roof only
  };
  double rest = 0;
  for (const Json& row : rows) {
    if (table.size() > kShown) {
      rest += row.at("ms").get<double>();
      continue;
    }
    table.push_back({fmt::format("{:.4g}", row.at("ms").get<double>()),
                     fmt::format("{:.1f} %", 100 * row.at("share").get<double>()), cell(row.at(first)),
                     cell(row.at(second)), cell(row.at("impl")),
                     fmt::format("{:.3g}", row.at("gflops").get<double>()), of(row, "gflops"),
                     fmt::format("{:.3g}", row.at("gbytes").get<double>()), of(row, "gbytes")});
  }
  print_table(table);
  if (rows.size() > kShown) fmt::print("and {} more: {:.4g} ms\n", rows.size() - kShown, rest);
}

void print_text(const Json& json) {
  auto number = [&](const char* key) { return json.at(key).get<double>(); };
  const Json& roof = json.at("roof");
  fmt::print("{} on {}, {} threads: {:.4g} ms a run (median of {}), {:.4g} ms of it in {} launches\n",
             cell(json.at("file")), cell(json.at("device")), cell(json.at("threads")), number("run_ms"),
             cell(json.at("n")), number("launches_ms"), json.at("nodes").size());
  fmt::print(
      "watching changed a run by {:.1f} %; roof measured here: {:.4g} GFLOP/s, {:.3g} GB/s of memory\n\n",
      100 * number("distortion"), roof.at("gflops").get<double>(), roof.at("gbytes").get<double>());
  print_rows(json.at("ops"), "op", "launches", roof);
  fmt::print("\n");
  print_rows(json.at("nodes"), "node", "op", roof);
}

}  // namespace

int profile_command(const Args& args) {
  if (args.program) return profile_program(args);
  if (!args.rest.empty()) throw Fail(kUsage, "arguments are for a program: " + args.rest[0], "--program");
  keel::Context context = open_context(args);
  std::string device = pick_device(context, args.device);
  std::vector<InputSpec> given = parse_inputs(context, args.inputs);
  std::optional<keel::Timeline> timeline;
  if (!args.trace.empty()) at(Stage::kFile, [&] { timeline.emplace(args.trace, false); });
  Model model = open_model(context, args.file, args, given);
  const Entry& entry = pick_entry(model, args.entry);
  Inputs inputs = gather_inputs(context, model, entry, given, args, true);
  say_made_up(args, inputs);
  keel::Options options = session_options(args, entry.name);
  options.set("profile", "1");
  keel::Plan plan = keel::Session(model.module, device, options).prepare();
  Profile profile = take(plan, inputs.arrays, args.runs, args.warmup);
  const Json report = Json::parse(plan.report(inputs.arrays));
  if (timeline) {
    show_launches(profile, report);
    at(Stage::kFile, [&] { timeline->end(); });
  }
  int threads = report.value("threads", 1);
  Json json{{"schema", "keel.profile/1"},
            {"file", args.file},
            {"device", device},
            {"threads", threads},
            {"n", args.runs}};
  json.update(to_json(profile, measure_roof(context, device, threads)));
  args.json ? print_json(json) : print_text(json);
  return kOk;
}

}  // namespace cli
