// plan.cc: `keel plan`: the launches of a graph on a device, and their memory.
#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "cli/command.h"
#include "cli/commands/plan_devices.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/show/memory.h"
#include "cli/show/print.h"

namespace cli {
namespace {

struct {
  bool with_map = false;
  std::string devices;
} plan_flags;

void plan_only_flags(Flags& flags, Args&) {
  flags.add("--map", plan_flags.with_map, "draw the memory layout over time")
      .add("--devices", plan_flags.devices,
           "place nodes on the first of these that has their op, and time them on each", "DEVICE,...")
      .excludes("--device")
      .excludes("--fallback")
      .excludes("--map");
}

// The device of each node with the reason, and the copies between memories.
void print_placement(const Json& report) {
  std::vector<std::vector<std::string>> rows{{"node", "op", "device", "why"}};
  for (const Json& p : report.at("placement"))
    rows.push_back({cell(p.at("node")), cell(p.at("op")), cell(p.at("device")), cell(p.at("why"))});
  fmt::print("\nplacement\n");
  print_table(rows);
  rows = {{"value", "from", "to", "bytes"}};
  for (const Json& c : report.at("copies"))
    rows.push_back({cell(c.at("value")), cell(c.at("from")), cell(c.at("to")),
                    c.contains("bytes") ? c.at("bytes").dump() : "?"});
  fmt::print("\ncopies between memories: {}\n", rows.size() - 1);
  if (rows.size() > 1) print_table(rows);
  fmt::print("\n");
}

// The products and convolutions inside fused launches, each with its impl in a plan without fusion: the
// device chooses alike in both, and a fused launch has one name for all its nodes.
Json fused_choices(const keel::Module& module, const std::string& device, keel::Options options,
                   const Args& args, const std::vector<keel::Array>& in, const Json& launches) {
  Json choices = Json::array();
  const auto is_fused = [](const Json& l) { return l.at("op") == "call"; };
  const std::string passes = without_fusion(args.passes);
  if (passes == args.passes || std::none_of(launches.begin(), launches.end(), is_fused)) return choices;
  options.set("passes", passes);
  try {
    const Json plain = Json::parse(keel::Session(module, device, options).prepare().report(in));
    for (const Json& l : plain.at("launches")) {
      const auto is_same = [&](const Json& other) {
        return other.at("node") == l.at("node") && !is_fused(other);
      };
      if ((l.at("op") == "matmul" || l.at("op") == "conv") &&
          std::none_of(launches.begin(), launches.end(), is_same))
        choices.push_back(
            {{"node", l.at("node")}, {"op", l.at("op")}, {"impl", l.at("impl")}, {"device", l.at("device")}});
    }
  } catch (const keel::Error&) {  // the passes plugin is not loaded, or memory is short
  }
  return choices;
}

// Launches with several ways to compute report the chosen one (keel_launch.steps): of a single node in place
// of its impl's name; of a fused launch a list of its steps, which is returned.
Json take_ways(Json& launches, bool* any) {
  Json fused = Json::array();
  for (Json& l : launches) {
    if (!l.contains("steps")) continue;
    *any = true;
    std::istringstream lines(l.at("steps").get<std::string>());
    for (std::string line; std::getline(lines, line);) {
      std::istringstream cells(line);
      std::string node, op, way;
      for (std::string* cell : {&node, &op, &way}) std::getline(cells, *cell, '\t');
      if (way.empty())
        l["impl"] = line;
      else
        fused.push_back({{"launch", l.at("node")},
                         {"node", node},
                         {"op", op},
                         {"impl", way},
                         {"device", l.at("device")}});
    }
    l.erase("steps");
  }
  return fused;
}

void print_launches(const Json& launches) {
  std::vector<std::vector<std::string>> rows{{"", "node", "op", "impl", "device"}};
  for (const Json& l : launches)
    rows.push_back({std::to_string(rows.size() - 1), cell(l.at("node")), cell(l.at("op")), cell(l.at("impl")),
                    cell(l.at("device"))});
  print_table(rows);
}

int plan_command(const Args& args) {
  if (!plan_flags.devices.empty()) return plan_devices_command(args, plan_flags.devices);
  keel::Context context = open_context(args);
  std::string device = pick_device(context, args.device);
  std::vector<InputSpec> given = parse_inputs(context, args.inputs);
  Model model = open_model(context, args.file, args, given);
  const Entry& entry = pick_entry(model, args.entry);
  Inputs inputs = gather_inputs(context, model, entry, given, args, true);
  const keel::Options options = session_options(args, entry.name, &model);
  Json report = Json::parse(keel::Session(model.module, device, options).prepare().report(inputs.arrays));
  bool any = false;
  report["fused"] = take_ways(report.at("launches"), &any);
  if (!any)
    report["fused"] =
        fused_choices(model.module, device, options, args, inputs.arrays, report.at("launches"));
  if (args.json) {
    Json json{{"schema", "keel.plan/1"}, {"device", device}};
    json.update(report);
    print_json(json);
    return kOk;
  }
  for (const Json& p : report.value("passes", Json::array()))
    if (p.at("edits") != 0 || p.contains("error"))
      fmt::print("pass {}: {} edits, {:.2f} ms{}\n", cell(p.at("name")), p.at("edits").dump(),
                 p.at("ms").get<double>(), p.contains("error") ? ", FAILED: " + cell(p.at("error")) : "");
  fmt::print("{} of {} compute nodes needed\n", report.at("needed_nodes").dump(), report.at("nodes").dump());
  print_launches(report.at("launches"));
  if (!report.at("fused").empty()) {
    fmt::print("\nsteps of fused launches\n");
    print_launches(report.at("fused"));
    fmt::print("\n");
  }
  if (report.contains("placement")) print_placement(report);
  for (const auto& [key, value] : report.items())
    if (value.is_number() && !key.ends_with("nodes")) fmt::print("{}: {}\n", key, value.dump());
  for (const Json& section : report.value("lanes", Json::array())) {
    std::vector<std::string> names;
    for (const Json& name : section) names.push_back(cell(name));
    fmt::print("in parallel: {}\n", join(names, ", "));
  }
  print_memory(report, plan_flags.with_map);
  if (!inputs.generated.empty()) fmt::print("sizes taken from: {}\n", join(inputs.generated, ", "));
  return kOk;
}

const Command kPlan("plan", "Show how a device will run a graph: launches and memory",
                    {file_argument, input_flags, device_flag, placing_flags, entry_flag, pass_flags,
                     plan_only_flags},
                    plan_command);

}  // namespace
}  // namespace cli
