// compare.cc: `keel compare -d A,B`: the same inputs on several devices; the first one is the reference.
//
// How to read it: compare_outputs() compares results; with --nodes, first_difference() records every value
// of the first device by name and stops the other device at the first difference. The exit code depends on
// the outputs only: a difference in an inner value may be harmless.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/data/npy.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/measure/observe.h"
#include "cli/show/diff.h"
#include "cli/show/print.h"

namespace cli {
namespace {

struct {
  bool by_node = false;
} compare_flags;

void devices_flag(Flags& flags, Args& a) { flags.add("-d,--device", a.device, "devices: A,B").required(); }

void nodes_flag(Flags& flags, Args&) {
  flags.add("--nodes", compare_flags.by_node, "find the first node that differs");
}

struct Job {
  const keel::Context& context;
  const Model& model;
  const Entry& entry;
  const Inputs& inputs;
  const Args& args;
};

keel::Plan prepare(const Job& job, const std::string& device, bool observe) {
  keel::Options options = session_options(job.args, job.entry.name);
  if (observe) options.set("observe", "1");
  return keel::Session(job.model.module, device, options).prepare();
}

std::vector<keel::Array> run_on(const Job& job, const std::string& device) {
  std::vector<keel::Array> out = prepare(job, device, false).run(job.inputs.arrays);
  for (keel::Array& a : out) a = packed(job.context, a);
  return out;
}

struct Value {
  keel::Array array;
  std::string impl;
};

struct Difference {
  Seen seen;         // on the device under test
  std::string name;  // the value that differs
  keel::Array got;
  Value want;
  Diff diff;
};

// The values of a run by name, one for each round of a loop. Beyond kKeptBytes it keeps no more.
struct Values {
  static constexpr int64_t kKeptBytes = int64_t{1} << 30;
  std::unordered_map<std::string, std::vector<std::optional<Value>>> rounds;
  int64_t bytes = 0, dropped = 0;

  void keep(const std::string& name, const keel::Array& array, const std::string& impl) {
    const bool fits = (bytes += array.bytes()) <= kKeptBytes;
    rounds[name].push_back(fits ? std::optional(Value{array, impl}) : std::nullopt);
    dropped += !fits;
  }
  const Value* find(const std::string& name, size_t round) const {
    auto found = rounds.find(name);
    if (found == rounds.end() || round >= found->second.size() || !found->second[round]) return nullptr;
    return &*found->second[round];
  }
};

std::optional<Difference> first_difference(const Job& job, const std::string& good,
                                           const std::string& other) {
  Values values;
  keel::Plan plan = prepare(job, good, true);
  std::vector<LaunchNames> names = launch_names(plan, job.inputs.arrays);
  plan.run_observed(job.inputs.arrays, [&](const keel_event& event) {
    Seen seen = copy_event(job.context, event, names);
    for (auto& [name, array] : seen.out) values.keep(name, array, seen.impl);
    return false;
  });
  if (values.dropped)
    fmt::print(stderr, "keel compare: {} values of {} beyond {} were not kept and are not compared\n",
               values.dropped, good, human_bytes(Values::kKeptBytes));
  std::optional<Difference> found;
  std::unordered_map<std::string, size_t> rounds;
  plan = prepare(job, other, true);
  names = launch_names(plan, job.inputs.arrays);
  plan.run_observed(job.inputs.arrays, [&](const keel_event& event) {
    Seen seen = copy_event(job.context, event, names);
    for (const auto& [name, array] : seen.out) {
      const Value* want = values.find(name, rounds[name]++);
      if (!want) continue;  // of the body of an op that only one device expands
      Diff diff = diff_arrays(array, want->array, tolerance_for(array.dtype(), job.args.rtol, job.args.atol));
      if (diff.ok()) continue;
      found = Difference{seen, name, array, *want, diff};
      return true;
    }
    return false;
  });
  return found;
}

Json difference_json(const Difference& d) {
  Json out = seen_json(d.seen);
  out["value"] = d.name;
  out["wanted_impl"] = d.want.impl;
  out["wanted"] = array_json(d.want.array);
  out["diff"] = d.diff.json();
  return out;
}

void print_difference(const std::optional<Difference>& d, bool differs, const std::string& good,
                      const std::string& other) {
  if (!d) {
    fmt::print("no single node of {} differs from {}{}\n", other, good,
               differs ? " when it runs alone: suspect fused nodes, or the order of work on the device" : "");
    return;
  }
  fmt::print("first diverging node: {} \"{}\" ({})\n", d->seen.index, d->seen.node, d->seen.op);
  fmt::print("  {}: impl {}\n  {}: impl {}\n", good, d->want.impl, other, d->seen.impl);
  if (!d->diff.same_type)
    fmt::print("  value \"{}\": {} on {}, {} on {}\n", d->name, type_text(d->want.array.tensor()), good,
               type_text(d->got.tensor()), other);
  else
    fmt::print(
        "  value \"{}\": {} elements outside, max|abs| {:.3g}, max|rel| {:.3g}; element {}: {} on {}, {} on "
        "{}\n",
        d->name, d->diff.outside, d->diff.max_abs, d->diff.max_rel, d->diff.first, d->diff.wanted, good,
        d->diff.got, other);
  print_values("inputs", d->seen.in);
  print_values(("outputs on " + other).c_str(), d->seen.out);
  print_values(("expected, from " + good).c_str(), {{d->name, d->want.array}});
}

// Adds a row per output; returns whether all are within tolerance.
bool compare_outputs(const Job& job, const std::string& device, const std::vector<keel::Array>& want,
                     std::vector<std::vector<std::string>>& rows, Json& json) {
  std::vector<keel::Array> got = run_on(job, device);
  bool all = true;
  for (size_t i = 0; i < got.size(); i++) {
    Tolerance t = tolerance_for(got[i].dtype(), job.args.rtol, job.args.atol);
    Diff diff = diff_arrays(got[i], want[i], t);
    const std::string& name = job.entry.results.at(i).name;
    all = all && diff.ok();
    rows.push_back({name, device, diff.same_type ? fmt::format("{:.3g}", diff.max_abs) : "-",
                    diff.same_type ? fmt::format("{:.3g}", diff.max_rel) : "-", std::to_string(diff.outside),
                    diff.ok()        ? "ok"
                    : diff.same_type ? fmt::format("FAIL (rtol {:g}, atol {:g})", t.rtol, t.atol)
                                     : "FAIL (type)"});
    Json one = diff.json();
    one["output"] = name;
    one["device"] = device;
    json.push_back(std::move(one));
  }
  return all;
}

int compare_command(const Args& args) {
  keel::Context context = open_context(args);
  std::vector<std::string> devices = pick_devices(context, "-d", args.device);
  std::vector<InputSpec> given = parse_inputs(context, args.inputs);
  Model model = open_model(context, args.file, args, given);
  const Entry& entry = pick_entry(model, args.entry);
  Inputs inputs = gather_inputs(context, model, entry, given, args, true);
  report_generated(args, inputs);
  Job job{context, model, entry, inputs, args};

  std::vector<std::vector<std::string>> rows{
      {"output", "device", "max|abs|", "max|rel|", "outside", "verdict"}};
  Json outputs = Json::array(), nodes = Json::array();
  std::vector<std::optional<Difference>> differences;
  std::vector<bool> same;  // by device after the first
  Interruptible until_done(context);
  std::vector<keel::Array> want = run_on(job, devices[0]);
  for (size_t d = 1; d < devices.size(); d++) {
    if (!kept_going([&] { same.push_back(compare_outputs(job, devices[d], want, rows, outputs)); })) break;
    if (!compare_flags.by_node) continue;
    if (!kept_going([&] { differences.push_back(first_difference(job, devices[0], devices[d])); })) break;
    nodes.push_back(differences.back() ? difference_json(*differences.back()) : Json());
  }
  const bool ok = std::ranges::find(same, false) == same.end();
  if (args.json) {
    Json json{{"schema", "keel.compare/1"}, {"ok", ok}, {"devices", devices}, {"outputs", outputs}};
    if (compare_flags.by_node) json["first_difference"] = nodes;
    print_json(json);
  } else {
    print_table(rows);
    for (size_t d = 0; d < differences.size(); d++)
      print_difference(differences[d], !same[d], devices[0], devices[d + 1]);
  }
  if (interrupted())
    return report_interrupted("compare", static_cast<int64_t>(same.size()),
                              static_cast<int64_t>(devices.size() - 1), "devices");
  return ok ? kOk : kCheckFailed;
}

const Command kCompare("compare", "Run a graph on several devices and compare the results",
                       {file_argument, input_flags, devices_flag, cpu_flags, entry_flag, tolerance_flags,
                        nodes_flag, time_limit_flag, pass_flags},
                       compare_command);

}  // namespace
}  // namespace cli
