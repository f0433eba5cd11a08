// passes.cc: `keel passes`: the passes found, in execution order.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/show/print.h"

namespace cli {
namespace {

void print_pass_table(const Json& passes) {
  constexpr const char* kClasses[] = {"exact", "close", "fast"};
  std::vector<std::vector<std::string>> rows{{"phase", "pass", "level", "class", "plugin", "about"}};
  for (const Json& p : passes)
    rows.push_back({cell(p.at("phase")), cell(p.at("name")), p.at("level").dump(),
                    kClasses[p.at("exactness").get<int>()], cell(p.at("plugin")),
                    p.contains("disabled") ? "disabled: " + cell(p.at("disabled")) : cell(p.at("about"))});
  print_table(rows);
}

int passes_command(const Args& args) {
  keel::Context context = open_context(args);
  Json passes = facts(context, "passes");
  if (args.json)
    print_json({{"schema", "keel.passes/1"}, {"passes", passes}});
  else if (passes.empty())
    fmt::print("no plugin provides passes\n");
  else
    print_pass_table(passes);
  return kOk;
}

const Command kPasses("passes", "List the passes in execution order", {}, passes_command);

}  // namespace
}  // namespace cli
