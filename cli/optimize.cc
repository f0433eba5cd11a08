// optimize.cc: `keel optimize`: lets passes rewrite a file's graph; `keel passes`: the passes that there are.
#include <fmt/core.h>

#include "exit.h"
#include "lines.h"
#include "load.h"
#include "print.h"

namespace cli {
namespace {

// A table of what ran goes to stderr, where it does not mix with the text; what failed goes there too.
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

void print_pass_table(const Json& passes) {
  constexpr const char* kClasses[] = {"exact", "close", "fast"};
  std::vector<std::vector<std::string>> rows{{"phase", "pass", "level", "class", "plugin", "about"}};
  for (const Json& p : passes)
    rows.push_back(
        {cell(p.at("phase")), cell(p.at("name")), p.at("level").dump(),
         kClasses[p.at("exactness").get<int>()], cell(p.at("plugin")),
         p.contains("disabled") ? "switched off: " + cell(p.at("disabled")) : cell(p.at("about"))});
  print_table(rows);
}

}  // namespace

int optimize_command(const Args& args) {
  keel::Context context = open_context(args);
  std::string device = pick_device(context, args.device);
  Model model = open_model(context, args.file, args);
  const Entry& entry = pick_entry(model, args.entry);
  keel::Options options = session_options(args, "");
  if (!args.fuel.empty()) options.set("fuel", args.fuel);
  if (!args.dump_after.empty()) options.set("dump_after", args.dump_after);
  std::string before = args.diff ? model.module.text() : "";
  Json report = Json::parse(model.module.optimize(entry.name, device, options));
  const Json& passes = report.at("passes");
  std::string text;
  if (args.output.empty() || args.diff) text = model.module.text();
  if (args.diff) text = changed_lines(before, text);
  if (!args.output.empty()) save_model(args, args.output, model);
  if (args.json) {
    Json json{{"schema", "keel.optimize/1"}, {"device", device}};
    json.update(report);
    if (!text.empty()) json["text"] = text;
    print_json(json);
  } else {
    print_runs(passes);
    for (const Json& dump : report.value("dumps", Json::array()))
      fmt::print("# after {}\n{}\n", cell(dump.at("pass")), cell(dump.at("text")));
    fmt::print("{}", text);
  }
  return any_failed(passes) ? kCheckFailed : kOk;
}

int passes_command(const Args& args) {
  keel::Context context = open_context(args);
  Json passes = facts(context, "passes");
  if (args.json)
    print_json({{"schema", "keel.passes/1"}, {"passes", passes}});
  else if (passes.empty())
    fmt::print("no plugin brings passes\n");
  else
    print_pass_table(passes);
  return kOk;
}

}  // namespace cli
