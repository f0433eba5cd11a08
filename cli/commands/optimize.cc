// optimize.cc: `keel optimize`: rewrites a file's graph with passes.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/data/bytes.h"
#include "cli/data/load.h"
#include "cli/data/output.h"
#include "cli/exit.h"
#include "cli/show/lines.h"
#include "cli/show/print.h"
#include "cli/terminal.h"

namespace cli {
namespace {

struct {
  std::string fuel, dump_after;
  bool as_diff = false;
} optimize_flags;

void edit_flags(Flags& flags, Args&) {
  flags.add("--fuel", optimize_flags.fuel, "stop the passes after N edits", "N")
      .add("--dump-after", optimize_flags.dump_after,
           "print the text after each edit round of this pass, or of all passes", "PASS|all")
      .add("--diff", optimize_flags.as_diff, "print only removed (-) and added (+) nodes");
}

constexpr const char* kUnpack = "unpack";  // the pass that folds even if constants grow

// The table of passes and their failures go to stderr, separate from the text.
void print_runs(const Json& passes) {
  std::vector<std::vector<std::string>> rows{{"pass", "plugin", "ms", "edits", ""}};
  for (const Json& p : passes) {
    const double ms = p.at("ms").get<double>();
    const std::string not_run = ms > 0 ? "not run again: " : "not run: ";
    std::string failed = p.contains("error")     ? "FAILED: " + cell(p.at("error"))
                         : p.contains("skipped") ? not_run + cell(p.at("skipped"))
                                                 : "";
    rows.push_back(
        {cell(p.at("name")), cell(p.at("plugin")), fmt::format("{:.2f}", ms), p.at("edits").dump(), failed});
  }
  print_table(rows, stderr);
  for (const Json& p : passes)
    if (p.contains("diff"))
      fmt::print(stderr, "\n{} was rolled back; it had edited:\n{}", cell(p.at("name")), cell(p.at("diff")));
}

bool any_failed(const Json& passes) {
  for (const Json& p : passes)
    if (p.contains("error")) return true;
  return false;
}

// Sessions unpack quantised weights; a file should stay small.
std::string passes_for_a_file(const keel::Context& context, const Args& args) {
  bool relative = args.passes.empty() || args.passes.starts_with("-") || args.passes.starts_with("+");
  if (!relative || args.passes.find(kUnpack) != std::string::npos) return args.passes;
  for (const Json& pass : facts(context, "passes"))
    if (pass.at("name") == kUnpack)
      return (args.passes.empty() ? "" : args.passes + ",") + std::string("-") + kUnpack;
  return args.passes;
}

double constant_bytes(const Model& model) {
  return Json::parse(model.module.info()).at("constant_bytes").get<double>();
}

// Reports the growth of a file or a graph on stderr.
void report_growth(const Args& args, double constants_before, double constants_after) {
  if (!args.output.empty() && args.output != "-") {
    auto before = static_cast<double>(file_size(args.file)),
         after = static_cast<double>(file_size(args.output));
    fmt::print(
        stderr, "wrote {} ({}{})\n", args.output, human_bytes(after),
        after > before && before > 0 ? fmt::format("; {} has {}", args.file, human_bytes(before)) : "");
  }
  if (constants_after > constants_before)
    fmt::print(stderr, "passes made the constants grow from {} to {}\n", human_bytes(constants_before),
               human_bytes(constants_after));
}

int optimize_command(const Args& args) {
  if (!args.output.empty()) {
    model_form(args, args.output);
    refuse_overwrite(args, args.output);
    if (args.output == "-" && (args.json || optimize_flags.as_diff))
      throw Fail(kUsage, "-o - and --json or --diff both write to stdout", "name a file");
  }
  keel::Context context = open_context(args);
  std::string device = pick_device(context, args.device);
  Model model = open_model(context, args.file, args);
  const Entry& entry = pick_entry(model, args.entry);
  Args as_file = args;
  as_file.passes = passes_for_a_file(context, args);
  keel::Options options = pass_options(as_file);
  if (!optimize_flags.fuel.empty()) options.set("fuel", optimize_flags.fuel);
  if (!optimize_flags.dump_after.empty()) options.set("dump_after", optimize_flags.dump_after);
  std::string before = optimize_flags.as_diff ? model.module.outline() : "";
  const double constants = constant_bytes(model);
  Json report = Json::parse(model.module.optimize(entry.name, device, options));
  const Json& passes = report.at("passes");
  std::string text;
  if (optimize_flags.as_diff)
    text = changed_lines(before, model.module.outline());
  else if (args.output.empty())
    text = args.json ? model.module.text() : model.module.outline();
  if (!args.output.empty()) save_model(context, args, args.output, model);
  if (args.json) {
    Json json{{"schema", "keel.optimize/1"}, {"device", device}};
    json.update(report);
    json["constant_bytes_before"] = constants;
    json["constant_bytes"] = constant_bytes(model);
    if (!text.empty()) json["text"] = text;
    print_json(json);
  } else {
    print_runs(passes);
    report_growth(args, constants, constant_bytes(model));
    for (const Json& dump : report.value("dumps", Json::array()))
      print_text(fmt::format("# after {}\n{}\n", cell(dump.at("pass")), cell(dump.at("text"))));
    print_text(text);
  }
  return any_failed(passes) ? kCheckFailed : kOk;
}

const Command kOptimize("optimize", "Rewrite a graph with passes; save it, or print it as text",
                        {file_argument, output_flag, device_flag, entry_flag, text_flag, pass_flags,
                         edit_flags},
                        optimize_command);

}  // namespace
}  // namespace cli
