// man.cc: manual pages from the declared subcommands and flags; the build writes one for each subcommand.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "cli/describe.h"
#include "keel/context.hpp"

namespace cli {
namespace {

constexpr char kExitStatus[] =
    ".SH EXIT STATUS\n"
    ".TP\n0\nsuccess\n"
    ".TP\n1\na check failed: compare, verify, run \\-\\-watch\n"
    ".TP\n2\nusage: a flag, a name, a missing input\n"
    ".TP\n3\na bad or missing file\n"
    ".TP\n4\na plugin or device\n"
    ".TP\n5\na shape, a dtype, an op, or a value out of range\n"
    ".TP\n6\nout of memory, over a limit, or stopped by Ctrl\\-C\n"
    ".TP\n70\na defect of Keel\n";

// Text as roff prints it unchanged.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool line_start = out.empty() || out.back() == '\n';
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// "MS:UINT in [1 - 9]" is the type MS with a check.
std::string value_name(const CLI::Option& option) {
  std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

bool shown(const CLI::Option* option) { return !option->get_group().empty(); }

std::vector<const CLI::Option*> shown_options(const CLI::App& app, bool positional) {
  return app.get_options([=](const CLI::Option* o) { return shown(o) && o->get_positional() == positional; });
}

// .TP entries: "-i, --input INPUT" and the description.
std::string entries(const std::vector<const CLI::Option*>& options) {
  std::string out;
  for (const CLI::Option* option : options) {
    std::string head;
    auto name = [&](const std::string& text) {
      head += (head.empty() ? "\\fB" : ", \\fB") + escaped(text) + "\\fR";
    };
    for (const std::string& s : option->get_snames()) name("-" + s);
    for (const std::string& l : option->get_lnames()) name("--" + l);
    if (option->get_positional())
      head = "\\fI" + escaped(upper(option->get_name())) + "\\fR";
    else if (option->get_items_expected_max() > 0)
      head += " \\fI" + escaped(value_name(*option)) + "\\fR";
    out += ".TP\n" + head + "\n" + escaped(option->get_description()) + "\n";
  }
  return out;
}

std::string synopsis(const CLI::App& app, const std::string& name) {
  std::string out = ".SH SYNOPSIS\n\\fB" + escaped(name) + "\\fR [\\fIOPTIONS\\fR]";
  for (const CLI::Option* option : shown_options(app, true)) {
    std::string text = "\\fI" + escaped(upper(option->get_name())) + "\\fR";
    out += option->get_required() ? " " + text : " [" + text + "]";
  }
  if (!app.get_subcommands({}).empty()) out += " \\fICOMMAND\\fR";
  return out + "\n";
}

std::string section(const char* title, const std::string& body) {
  return body.empty() ? "" : fmt::format(".SH {}\n{}", title, body);
}

// The name line's description is a phrase: no capital, no full stop.
std::string phrase(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  while (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

std::string head(const std::string& page, const std::string& about) {
  return fmt::format(".TH {} 1 \"\" \"Keel {}\" \"Keel\"\n.SH NAME\n{} \\- {}\n", escaped(upper(page)),
                     keel_version(), escaped(page), escaped(phrase(about)));
}

std::string main_page(const CLI::App& app) {
  std::string commands;
  for (const CLI::App* sub : app.get_subcommands({})) {
    commands += fmt::format(".TP\n\\fBkeel\\-{0}\\fR(1)\n{1}\n", escaped(sub->get_name()),
                            escaped(sub->get_description()));
  }
  return head("keel", "load, run, inspect and optimize tensor programs") + synopsis(app, "keel") +
         section("DESCRIPTION", escaped(app.get_description()) + "\n") + section("COMMANDS", commands) +
         section("OPTIONS", entries(shown_options(app, false))) + kExitStatus;
}

}  // namespace

std::string man_page(const CLI::App& app, const std::string& command) {
  auto of_name = [&](const CLI::App* sub) { return sub->get_name() == command; };
  std::vector<const CLI::App*> found = app.get_subcommands(of_name);
  if (found.empty()) return main_page(app);
  const CLI::App& sub = *found[0];
  return head("keel-" + command, sub.get_description()) + synopsis(sub, "keel " + command) +
         section("DESCRIPTION", escaped(sub.get_description()) + ".\n") +
         section("ARGUMENTS", entries(shown_options(sub, true))) +
         section("OPTIONS", entries(shown_options(sub, false))) +
         section("OPTIONS OF EVERY COMMAND", entries(shown_options(app, false))) + kExitStatus +
         ".SH SEE ALSO\n\\fBkeel\\fR(1)\n";
}

}  // namespace cli
