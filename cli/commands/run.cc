// run.cc: `keel run`: runs a graph; prints or saves the results; --watch and --break stop at a node.
#include <fmt/core.h>

#include <chrono>
#include <keel/variable.hpp>

#include "cli/command.h"
#include "cli/data/bytes.h"
#include "cli/data/load.h"
#include "cli/data/npy.h"
#include "cli/data/output.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/measure/observe.h"
#include "cli/show/print.h"
#include "cli/show/strings.h"

namespace cli {
namespace {

struct {
  std::string watch, break_at;
  std::vector<std::string> fetch;
  bool eagerly = false;
} run_flags;

void observing_flags(Flags& flags, Args&) {
  flags
      .add("--watch", run_flags.watch,
           "stop at the first result that contains one: nan, inf or 'nan|inf'; 'conv*=nan': only results of "
           "these nodes")
      .add("--break", run_flags.break_at, "stop after this node and show its values");
}

void running_flags(Flags& flags, Args& a) {
  flags.add("--strict", a.strict, "run all nodes, including unused ones, which may fail")
      .add("--fetch", run_flags.fetch,
           "value to compute (\"y\", \"split:1\"); may be repeated (default: the entry's results)", "NAME")
      .add("--eagerly", run_flags.eagerly,
           "run every node separately, as written, on the reference device (or -d)")
      .add("--checkpoint", a.checkpoint, "a checkpoint with the values of the file's variables");
}

// The output file: "@out.npz" is out.npz.
std::string results_path(const Args& args) {
  return args.output.starts_with("@") ? args.output.substr(1) : args.output;
}

void save_results(const std::string& path, const NamedArrays& results) {
  if (path == "-")
    return write_output(path, results.size() == 1 ? write_npy(results[0].second) : write_npz(results));
  bool npy = path.ends_with(".npy");
  if (!npy && !path.ends_with(".npz"))
    throw Fail(kUsage, "-o " + path + ": expected a name that ends in .npz or .npy",
               "for example -o @out.npz");
  if (npy && results.size() != 1)
    throw Fail(kUsage,
               fmt::format("-o {}: .npy holds one array, but the entry has {} results", path, results.size()),
               "use an .npz file");
  write_file(path, npy ? write_npy(results[0].second) : write_npz(results));
}

void print_results(const NamedArrays& results, const std::set<std::string>& strings, const Args& args,
                   const std::string& device) {
  if (args.json) {
    Json outputs = Json::object();
    for (const auto& [name, array] : results)
      outputs[name] = strings.count(name) ? strings_json(array) : array_json(array);
    return print_json({{"schema", "keel.run/1"}, {"device", device}, {"outputs", outputs}});
  }
  for (const auto& [name, array] : results)
    fmt::print("{}: {}\n{}\n", name, type_text(array.tensor()),
               strings.count(name) ? strings_text(array) : array_text(array));
}

int report_stop(const Seen& seen, const std::string& why, const Args& args, bool failed) {
  if (args.json) {
    Json stopped = seen_json(seen);
    stopped["why"] = why;
    print_json({{"schema", "keel.run/1"}, {"stopped", stopped}});
  } else {
    fmt::print("stopped after {}: {}\n", seen_title(seen), why);
    print_values("inputs", seen.in);
    print_values("outputs", seen.out);
  }
  return failed ? kCheckFailed : kOk;
}

// Runs node by node; if a watch or break stops the run, sets `stopped` and returns nothing.
class WatchedRun {
 public:
  WatchedRun(const keel::Context& context, const keel::Plan& plan, const Model& model, const Args& args)
      : context_(context), plan_(plan), names_(model), args_(args) {
    if (!run_flags.watch.empty()) watch_ = parse_watch(run_flags.watch);
  }

  std::vector<keel::Array> run(std::span<const keel::Array> in, std::optional<int>& stopped) {
    launches_ = launch_names(plan_, in);
    auto results = plan_.run_observed(in, [&](const keel_event& event) {
      remember(event);
      if (!run_flags.break_at.empty() && is_called(event, names_, run_flags.break_at)) {
        stopped = report_stop(seen(event), "--break", args_, false);
        return true;
      }
      if (!run_flags.watch.empty() && is_called(event, names_, watch_.nodes)) stopped = look(event);
      return stopped.has_value();
    });
    if (!stopped) refuse_unmet();
    return results;
  }

 private:
  void remember(const keel_event& event) {
    if (event.node) known_.push_back(event.node);
    for (uint32_t i = 0; i < event.n_out; i++)
      if (event.out_names[i]) known_.push_back(event.out_names[i]);
    watched_ = watched_ || is_called(event, names_, watch_.nodes);
  }

  Seen seen(const keel_event& event) const {
    Seen seen = copy_event(context_, event, launches_);
    seen.in_model = names_.node_of(seen.node);
    return seen;
  }

  std::optional<int> look(const keel_event& event) const {
    for (uint32_t i = 0; i < event.n_out; i++) {
      if (!event.out[i]) continue;
      std::string why = watched(keel::Array::copy_of(context_, *event.out[i]), watch_);
      if (why.empty()) continue;
      Seen at = seen(event);
      return report_stop(at, fmt::format("\"{}\" has {}", at.out.at(i).first, why), args_, true);
    }
    return std::nullopt;
  }

  void refuse_unmet() {
    for (const std::string& node : names_.nodes()) known_.push_back(node);
    if (!run_flags.break_at.empty())
      throw Fail(kUsage, fmt::format("--break {}: no node of that name ran", run_flags.break_at),
                 closest(run_flags.break_at, known_));
    if (!run_flags.watch.empty() && !watched_)
      throw Fail(kUsage, fmt::format("--watch {}: no node of that name ran", run_flags.watch),
                 closest(watch_.nodes, known_));
  }

  const keel::Context& context_;
  const keel::Plan& plan_;
  NodeNames names_;
  const Args& args_;
  Watch watch_;
  std::vector<LaunchNames> launches_;
  std::vector<std::string> known_;
  bool watched_ = false;
};

// The equivalent of keel::run_eagerly: runs each node separately, as written, including unused nodes.
void run_as_written(Args& args) {
  if (args.level > 0 || !args.passes.empty())
    throw Fail(kUsage, "--eagerly runs the graph as it is written, without passes",
               "omit --level and --passes");
  if (args.device.empty()) args.device = "reference";
  args.level = 0;
  args.strict = true;
}

void load_variables(const keel::Context& context, Model& model, const std::string& path) {
  keel::NamedVariables variables;
  for (const Json& v : model.info.at("variables")) {
    std::string name = v.at("name").get<std::string>();
    variables.emplace_back(name, keel::Variable(model.module, name));
  }
  if (variables.empty()) throw Fail(kUsage, "--checkpoint: the file has no variables");
  at(Stage::kFile, [&] { keel::load_checkpoint(context, path, variables); });
}

// With explicit feeds and fetches, even if both are empty.
keel::Plan prepare(const keel::Session& session, const Entry& entry) {
  std::vector<const char*> names[2];
  for (const Port& p : entry.params) names[0].push_back(p.name.c_str());
  for (const Port& p : entry.results) names[1].push_back(p.name.c_str());
  for (auto& list : names) list.push_back(nullptr);  // a non-null pointer for an empty list
  keel_plan* out = nullptr;
  keel::call(keel_plan_new, session.get(), names[0].data(), static_cast<uint32_t>(names[0].size() - 1),
             names[1].data(), static_cast<uint32_t>(names[1].size() - 1),
             static_cast<const char* const*>(nullptr), 0u, &out);
  return keel::Plan(out);
}

int run_command(const Args& given_args) {
  auto start = std::chrono::steady_clock::now();
  Args args = given_args;
  if (run_flags.eagerly) run_as_written(args);
  if (!args.output.empty()) {
    refuse_overwrite(args, results_path(args));
    if (args.json && args.output == "-")
      throw Fail(kUsage, "--json and -o - both write to stdout", "name a file, or omit --json");
  }
  keel::Context context = open_context(args);
  std::string device = pick_device(context, args.device);
  std::vector<InputSpec> given = parse_inputs(context, args.inputs);
  Model model = open_model(context, args.file, args, given);
  if (!args.checkpoint.empty()) load_variables(context, model, args.checkpoint);
  bool cut = false;
  const Entry entry = choose_ports(model, pick_entry(model, args.entry), given, run_flags.fetch, &cut);
  Inputs inputs = gather_inputs(context, model, entry, given, args, false);

  bool observed = !run_flags.watch.empty() || !run_flags.break_at.empty();
  keel::Options options = session_options(args, entry.name, &model);
  if (observed) options.set("observe", "1");
  keel::Session session(model.module, device, options);
  keel::Plan plan = cut ? prepare(session, entry) : session.prepare();
  device = device_of(device, plan);
  auto prepared = std::chrono::steady_clock::now();
  std::optional<int> stopped;
  Interruptible until_done(context);
  std::vector<keel::Array> out =
      observed ? WatchedRun(context, plan, model, args).run(inputs.arrays, stopped) : plan.run(inputs.arrays);
  if (stopped) return *stopped;
  auto ms = [](auto d) { return std::chrono::duration<double, std::milli>(d).count(); };
  log_verbose(args, fmt::format("device {}, ready after {:.2f} ms, ran {:.2f} ms", device,
                                ms(prepared - start), ms(std::chrono::steady_clock::now() - prepared)));
  NamedArrays results;
  for (size_t i = 0; i < out.size(); i++)
    results.emplace_back(entry.results.at(i).name, packed(context, out[i]));
  if (args.output.empty())
    print_results(results, string_results(model), args, device);
  else
    save_results(results_path(args), results);
  return kOk;
}

const Command kRun("run", "Run a graph on inputs; print or save the results",
                   {file_argument, input_flags, output_flag, device_flag, placing_flags, entry_flag,
                    observing_flags, time_limit_flag, pass_flags, running_flags},
                   run_command);

}  // namespace
}  // namespace cli
