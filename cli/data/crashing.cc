// crashing.cc: see crashing.h. Plugins are selected by the variables that libkeel reads.
#include "cli/data/crashing.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>

#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/measure/trial.h"

namespace cli {
namespace {

constexpr char kSkip[] = "KEEL_PLUGINS_SKIP", kOnly[] = "KEEL_PLUGINS_ONLY";

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

// An environment variable has this value during its lifetime.
class Setting {
 public:
  Setting(const char* name, const std::string& value)
      : name_(name), before_(variable(name)), was_set_(getenv(name) != nullptr) {
    setenv(name, value.c_str(), 1);
  }
  ~Setting() { was_set_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool was_set_;
};

// How loading what the variables select ends a process; "": it does not.
std::string try_to_load(const Args& args) {
  return trial([&] { facts(open_context(args), "plugins"); });  // counts their devices
}

// Files that the user's variables select.
std::vector<std::string> candidates(const Args& args) {
  const Setting none(kSkip, "*");
  std::vector<std::string> paths;
  for (const Json& file : facts(open_context(args), "plugins"))
    if (file.at("reason") == fmt::format("in {}=*", kSkip))
      paths.push_back(file.at("path").get<std::string>());
  return paths;
}

}  // namespace

std::string plugin_name(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  return stem.starts_with("keel-") ? stem.substr(5) : stem;
}

std::map<std::string, std::string> skip_crashing_plugins(const Args& args) {
  std::map<std::string, std::string> found;
  const std::string together = try_to_load(args);
  if (together.empty()) return found;
  std::string skipped = variable(kSkip);
  for (const std::string& path : candidates(args)) {
    const std::string name = plugin_name(path);
    const Setting only(kOnly, name);
    std::string how = try_to_load(args);
    if (how.empty()) continue;
    found[name] = std::move(how);
    skipped += "," + name;
  }
  if (found.empty())
    throw Fail(kDevice, "a process that loads all plugins " + together + "; none of them does it alone",
               fmt::format("load few of them: {}=cpu,NAME", kOnly));
  setenv(kSkip, skipped.c_str(), 1);
  return found;
}

}  // namespace cli
