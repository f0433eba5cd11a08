// parse.cc: finds the subcommand, parses its flags, suggests corrections.
#include "cli/parse.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "cli/command.h"
#include "cli/describe.h"
#include "cli/exit.h"
#include "cli/flags.h"

namespace cli {
namespace {

std::string version_text() {
  uint32_t abi = keel_abi_version();
  return fmt::format("keel {} (C ABI {}.{} draft {}) · no telemetry", keel_version(), abi >> 16, abi & 0xffff,
                     KEEL_ABI_DRAFT);
}

// "did you mean --level" for the first flag that is not known.
std::string flag_hint(int argc, char** argv, const CLI::App& app, const std::string& command) {
  std::vector<std::string> names;
  auto add = [&](const CLI::App& of) {
    for (const CLI::Option* option : of.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    }
  };
  add(app);
  if (!command.empty()) add(*app.get_subcommand(command));
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; i++) {
    std::string flag = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (!flag.starts_with("--")) continue;
    if (std::find(names.begin(), names.end(), flag) == names.end())
      if (std::string hint = closest(flag, names); !hint.empty()) return hint;
  }
  return "";
}

// CLI11 reports "The following argument was not expected: rnu"; a wrong command or flag gets a suggestion
// instead.
std::string usage_hint(int argc, char** argv, const CLI::App& app) {
  std::vector<std::string> names;
  for (const Command* c : commands()) names.push_back(c->name);
  std::string command = command_of(argc, argv), hint;
  if (std::find(names.begin(), names.end(), command) == names.end()) {
    if (!command.empty()) hint = closest(command, names);
    command.clear();
  }
  if (hint.empty()) hint = flag_hint(argc, argv, app, command);
  return hint.empty() ? fmt::format("keel {}--help", command.empty() ? "" : command + " ") : hint;
}

}  // namespace

std::string command_of(int argc, char** argv) {
  for (int i = 1; i < argc; i++)
    for (const Command* c : commands())
      if (c->name == std::string_view(argv[i])) return c->name;
  return argc > 1 && argv[1][0] != '-' ? argv[1] : "";
}

std::optional<int> parse_args(int argc, char** argv, Args& args) {
  CLI::App app("keel runs tensor programs: load a graph, pick a device, run it.", "keel");
  bool version = false, man = false;  // man: described() finds it first
  app.fallthrough();
  Flags flags(app);
  global_flags(flags, args);
  flags.add("--version", version, "print versions");
  flags.add("--man", man, "print the manual page: keel run --man | man -l -");
  for (const Command* c : commands()) {
    CLI::App* sub = app.add_subcommand(c->name, c->about);
    Flags own(*sub);
    for (DeclareFlags declare : c->flags) declare(own, args);
    sub->callback([&args, c] { args.command = c; });
  }
  app.require_subcommand(0, 1);
  if (std::optional<std::string> text = described(app, command_of(argc, argv), argc, argv)) {
    fmt::print("{}", *text);
    return kOk;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    std::ostringstream help;
    app.exit(e, help, help);
    fmt::print("{}", help.str());
    return kOk;
  } catch (const CLI::ParseError& e) {
    args.json =
        args.json || std::any_of(argv, argv + argc, [](char* s) { return std::string_view(s) == "--json"; });
    throw Fail(kUsage, e.what(), usage_hint(argc, argv, app));
  }
  if (version) {
    fmt::print("{}\n", version_text());
    return kOk;
  }
  if (!args.command) {
    fmt::print("{}\n\n{}", version_text(), app.help());
    return kOk;
  }
  return std::nullopt;
}

}  // namespace cli
