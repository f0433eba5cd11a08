// plan_devices.cc: plans and times a graph on several devices.
//
// How to read it: each device of the list is the first choice of one session, with the others as fallbacks in
// the order of the list; the session of the first device is the placement that the command proposes. Launches
// are timed in a plan without fusion, where each belongs to a node of the file; whole runs with all passes.
#include "cli/commands/plan_devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/measure/profile.h"
#include "cli/measure/timing.h"
#include "cli/show/print.h"

namespace cli {
namespace {

constexpr int kDeviceRuns = 5;
constexpr const char* kNoNode = "other";  // launches that belong to no node, made by passes

// A session whose default device this is.
struct Choice {
  std::string device;                     // as placements name it
  Json report;                            // of the plan without fusion
  std::map<std::string, Json> placement;  // of the report, by node
  std::map<std::string, double> ms;       // by node: median of the sum of its launches
  std::vector<double> run_ms;             // whole runs, all passes
};

struct Subject {
  const Args& args;
  const keel::Module& module;
  const std::vector<keel::Array>& in;
  const keel::Options& options;
};

// The node of a launch. Launches of an expanded body are named "node/op"; launches of a loop belong to the
// loop.
std::string node_of(const Choice& choice, size_t launch, std::string name) {
  const Json& launches = choice.report.at("launches");
  if (launch < launches.size() && launches[launch].contains("body_of"))
    name = launches[launch].at("body_of").get<std::string>();
  for (size_t slash = name.size(); slash != std::string::npos; slash = name.rfind('/')) {
    name.resize(slash);
    if (choice.placement.contains(name)) return name;
  }
  return kNoNode;
}

Choice measure_choice(const Subject& of, const std::string& device, const std::string& fallbacks) {
  Choice choice;
  choice.device = device;
  keel::Options options = of.options;
  options.set("fallback", fallbacks);
  options.set("profile", "1");
  const keel::Plan whole = keel::Session(of.module, device, options).prepare();
  options.set("passes", without_fusion(of.args.passes));
  const keel::Plan plan = keel::Session(of.module, device, options).prepare();
  const Profile profile = take_profile(plan, of.in, kDeviceRuns, 1);
  choice.report = Json::parse(plan.report(of.in));
  for (const Json& p : choice.report.at("placement")) choice.placement[p.at("node")] = p;
  for (size_t i = 0; i < profile.nodes.size(); i++)
    if (!profile.nodes[i].ms.empty())
      choice.ms[node_of(choice, i, profile.nodes[i].name)] += median(profile.nodes[i].ms);
  if (!interrupted()) choice.run_ms = take_profile(whole, of.in, kDeviceRuns, 0).plain_ms;
  return choice;
}

// The cost of a node with this choice; null: passes removed the node.
Json cost_of(const Choice& choice, const std::string& node) {
  const auto placed = choice.placement.find(node);
  if (placed != choice.placement.end() && placed->second.at("device") != choice.device)
    return {{"lacks", placed->second.at("why")}};
  const auto found = choice.ms.find(node);
  return found == choice.ms.end() ? Json() : Json{{"ms", found->second}};
}

Json nodes_json(const std::vector<Choice>& choices) {
  Json nodes = Json::array();
  const auto add = [&](Json node) {
    for (const Choice& choice : choices) node["costs"][choice.device] = cost_of(choice, node.at("node"));
    nodes.push_back(std::move(node));
  };
  for (const Json& p : choices[0].report.at("placement")) add(p);
  if (std::ranges::any_of(choices, [](const Choice& c) { return c.ms.contains(kNoNode); }))
    add({{"node", kNoNode}, {"op", ""}, {"device", ""}, {"why", "made by passes"}});
  return nodes;
}

Json runs_json(const std::vector<Choice>& choices) {
  Json runs = Json::array();
  for (const Choice& choice : choices) {
    const Json& placement = choice.report.at("placement");
    runs.push_back(
        {{"device", choice.device},
         {"nodes_elsewhere",
          std::ranges::count_if(placement, [&](const Json& p) { return p.at("device") != choice.device; })},
         {"copies", choice.report.at("copies").size()},
         {"ms", choice.run_ms.empty() ? Json() : Json(median(choice.run_ms))}});
  }
  return runs;
}

std::string cost_cell(const Json& cost) {
  if (cost.is_null()) return "-";
  if (cost.contains("ms")) return fmt::format("{:.4g}", cost.at("ms").get<double>());
  const std::string why = cell(cost.at("lacks"));
  const size_t lacks = why.find("lacks ");
  return lacks == std::string::npos ? why : why.substr(lacks);
}

void print_devices(const Json& json) {
  std::vector<std::vector<std::string>> rows{{"node", "op", "device"}};
  for (const Json& run : json.at("runs")) rows[0].push_back(cell(run.at("device")) + " ms");
  for (const Json& node : json.at("nodes")) {
    rows.push_back({cell(node.at("node")), cell(node.at("op")), cell(node.at("device"))});
    for (const auto& [device, cost] : node.at("costs").items()) rows.back().push_back(cost_cell(cost));
  }
  print_table(rows);
  rows = {{"device", "nodes elsewhere", "copies", "ms per run"}};
  for (const Json& run : json.at("runs"))
    rows.push_back({cell(run.at("device")), run.at("nodes_elsewhere").dump(), run.at("copies").dump(),
                    run.at("ms").is_null() ? "-" : fmt::format("{:.4g}", run.at("ms").get<double>())});
  fmt::print("\nwhole runs with all passes, each device first, the others as its fallbacks\n");
  print_table(rows);
  fmt::print("medians of {} runs; nodes are timed without fusion\n", kDeviceRuns);
}

}  // namespace

int plan_devices_command(const Args& args, const std::string& list) {
  keel::Context context = open_context(args);
  std::vector<std::string> devices;
  for (const std::string& name : pick_devices(context, "--devices", list)) {
    devices.push_back(facts(context, "devices:" + name).at(0).at("name"));
    if (std::ranges::count(devices, devices.back()) > 1)
      throw Fail(kUsage, fmt::format("--devices {}: {} is named twice", list, devices.back()));
  }
  std::vector<InputSpec> given = parse_inputs(context, args.inputs);
  Model model = open_model(context, args.file, args, given);
  const Entry& entry = pick_entry(model, args.entry);
  const Inputs inputs = gather_inputs(context, model, entry, given, args, true);
  report_generated(args, inputs);
  const keel::Options options = session_options(args, entry.name, &model);
  const Subject of{args, model.module, inputs.arrays, options};
  std::vector<Choice> choices;
  Interruptible until_done(context);
  for (const std::string& device : devices) {
    std::vector<std::string> others = devices;
    std::erase(others, device);
    choices.push_back(measure_choice(of, device, join(others, ",")));
    if (interrupted()) break;
  }
  const Json json{{"schema", "keel.plan.devices/1"},
                  {"nodes", nodes_json(choices)},
                  {"copies", choices[0].report.at("copies")},
                  {"runs", runs_json(choices)}};
  args.json ? print_json(json) : print_devices(json);
  if (interrupted())
    return report_interrupted("plan", static_cast<int64_t>(choices.size()) - 1,
                              static_cast<int64_t>(devices.size()), "devices");
  return kOk;
}

}  // namespace cli
