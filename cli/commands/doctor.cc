// doctor.cc: `keel doctor`: this machine, and every plugin candidate with its verdict.
#include <fmt/core.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cli/command.h"
#include "cli/data/crashing.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/show/print.h"

namespace cli {
namespace {

std::string read_line(const std::string& path, const std::string& prefix = "") {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(prefix)) return line;
  return "";
}

std::string cpu_name() {
  std::string line = read_line("/proc/cpuinfo", "model name");
  size_t colon = line.find(':');
  return colon == std::string::npos ? "unknown processor" : line.substr(std::min(colon + 2, line.size()));
}

int usable_cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                     : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

// Core quota of the control group; 0: no limit.
double cgroup_cores() {
  std::istringstream v2(read_line("/sys/fs/cgroup/cpu.max"));
  double quota = 0, period = 0;
  if (v2 >> quota >> period && period > 0) return quota / period;
  std::istringstream q(read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")),
      p(read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  return q >> quota && p >> period && quota > 0 && period > 0 ? quota / period : 0;
}

Json machine() {
  utsname name{};
  uname(&name);
  auto memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return {{"system", fmt::format("{} {} {}", name.sysname, name.release, name.machine)},
          {"processor", cpu_name()},
          {"cpus", usable_cpus()},
          {"cgroup_cores", cgroup_cores()},
          {"memory", memory}};
}

void print_machine(const Json& m) {
  fmt::print("system     {}\nprocessor  {}, {} usable", cell(m["system"]), cell(m["processor"]),
             m["cpus"].get<int>());
  if (m["cgroup_cores"] > 0.0)
    fmt::print(", limited to {:g} by the control group", m["cgroup_cores"].get<double>());
  fmt::print("\nmemory     {}\n", human_bytes(m["memory"].get<double>()));
}

void print_plugin(const Json& p) {
  std::string reason = cell(p.at("reason"));
  fmt::print("  {:<8} {}  (from {}){}\n", cell(p.at("verdict")), cell(p.at("path")), cell(p.at("source")),
             reason.empty() ? "" : "\n           " + reason);
}

// Files tried, and the verdict on each.
Json plugin_files(const keel::Context& context, const std::map<std::string, std::string>& crashing) {
  Json files = facts(context, "plugins");
  for (Json& file : files)
    if (auto found = crashing.find(plugin_name(cell(file["path"]))); found != crashing.end()) {
      file["verdict"] = "crashed";
      file["reason"] = "a process that loads it and counts its devices " + found->second;
    }
  return files;
}

int doctor_command(const Args& args) {
  const auto crashing = skip_crashing_plugins(args);  // before anything is loaded here
  keel::Context context = open_context(args);
  Json plugins = plugin_files(context, crashing), devices = facts(context, "devices"), host = machine();
  std::vector<std::string> passes;
  for (const Json& p : facts(context, "passes")) passes.push_back(cell(p.at("name")));
  std::string library = keel_version();
  if (args.json) {
    print_json({{"schema", "keel.doctor/1"},
                {"version", library},
                {"abi", fmt::format("{}.{}", keel_abi_version() >> 16, keel_abi_version() & 0xffff)},
                {"draft", KEEL_ABI_DRAFT},
                {"machine", host},
                {"plugins", plugins},
                {"devices", devices},
                {"passes", passes}});
    return kOk;
  }
  uint32_t abi = keel_abi_version();
  fmt::print("libkeel    {}, C ABI {}.{} draft {}\n", library, abi >> 16, abi & 0xffff, KEEL_ABI_DRAFT);
  print_machine(host);
  fmt::print("plugins tried:\n");
  if (plugins.empty()) fmt::print("  none found; set KEEL_PLUGIN_PATH or --plugins to their folder\n");
  for (const Json& p : plugins) print_plugin(p);
  std::vector<std::string> names = context.devices();
  fmt::print("devices    {}\n", names.empty() ? "none" : join(names, ", "));
  fmt::print("passes     {}\n", passes.empty() ? "none" : join(passes, ", "));
  return kOk;
}

const Command kDoctor(
    "doctor", "Describe this machine, and every plugin file with the reason why it was loaded or refused", {},
    doctor_command);

}  // namespace
}  // namespace cli
