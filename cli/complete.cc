// complete.cc: the words that can follow on a command line, for the shells' files in completion/.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/args.h"
#include "cli/data/load.h"
#include "cli/describe.h"

namespace cli {
namespace {

struct Candidate {
  std::string text, about;
};

using Options = std::vector<const CLI::Option*>;

// The options of the app and its subcommand, without positional arguments and hidden options.
Options options_of(const CLI::App& app, const CLI::App* sub) {
  auto named = [](const CLI::Option* o) { return !o->get_positional() && !o->get_group().empty(); };
  Options options = app.get_options(named);
  if (!sub) return options;
  Options own = sub->get_options(named);
  options.insert(options.begin(), own.begin(), own.end());
  return options;
}

const CLI::Option* find(const Options& options, const std::string& word) {
  for (const CLI::Option* option : options)
    if (word.starts_with('-') && option->check_name(word)) return option;
  return nullptr;
}

std::vector<Candidate> devices() {
  std::vector<Candidate> found = {{"auto", "the first that has all ops"}};
  for (const std::string& name : open_context(Args{}).devices()) found.push_back({name, "device"});
  return found;
}

// The values that an option takes where they can be listed: a check prints "{auto,off,all}".
std::vector<Candidate> values(const CLI::Option& option) {
  std::string type = option.get_type_name();
  if (type == "DEVICE") return devices();
  std::vector<Candidate> found;
  size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return found;
  for (std::string& value : CLI::detail::split(type.substr(begin + 1, end - begin - 1), ','))
    found.push_back({value, ""});
  return found;
}

std::vector<Candidate> option_names(const Options& options) {
  std::vector<Candidate> found;
  for (const CLI::Option* option : options) {
    for (const std::string& name : option->get_lnames())
      found.push_back({"--" + name, option->get_description()});
    for (const std::string& name : option->get_snames())
      found.push_back({"-" + name, option->get_description()});
  }
  return found;
}

std::vector<Candidate> candidates(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<const CLI::App*> commands = app.get_subcommands({});
  const CLI::App* sub = nullptr;
  for (size_t i = 0; i + 1 < words.size() && !sub; i++)
    for (const CLI::App* c : commands)
      if (c->get_name() == words[i]) sub = c;
  Options options = options_of(app, sub);

  const std::string& last = words.back();
  if (size_t equals = last.find('='); last.starts_with("--") && equals != std::string::npos) {
    std::vector<Candidate> found;
    if (const CLI::Option* option = find(options, last.substr(0, equals))) found = values(*option);
    for (Candidate& c : found) c.text = last.substr(0, equals + 1) + c.text;
    return found;
  }
  size_t before = words.size() - 1;
  if (before && words[before - 1] == "=") before--;  // bash makes "=" a word
  const CLI::Option* option = before ? find(options, words[before - 1]) : nullptr;
  if (option && option->get_items_expected_max() > 0) return values(*option);
  if (last.starts_with('-')) return option_names(options);
  std::vector<Candidate> found;
  if (!sub)
    for (const CLI::App* c : commands) found.push_back({c->get_name(), c->get_description()});
  return found;
}

}  // namespace

std::string completions(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return "";
  std::string out, typed = words.back() == "=" ? "" : words.back();
  std::vector<std::string> all = words;
  if (words.back() == "=") all.push_back("");
  for (const Candidate& c : candidates(app, all))
    if (c.text.starts_with(typed)) out += c.text + "\t" + c.about + "\n";
  return out;
}

std::optional<std::string> described(const CLI::App& app, const std::string& command, int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--complete")
    return completions(app, std::vector<std::string>(argv + 2, argv + argc));
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; i++)
    if (std::string_view(argv[i]) == "--man") return man_page(app, command);
  return std::nullopt;
}

}  // namespace cli
