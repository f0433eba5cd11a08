// contents.cc: see contents.h.
#include "cli/show/contents.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cli/data/bytes.h"
#include "cli/data/node_names.h"
#include "cli/show/print.h"
#include "cli/terminal.h"

namespace cli {
namespace {

void print_ports(const char* title, const std::vector<Port>& ports) {
  for (const Port& p : ports) fmt::print("  {} {}: {}\n", title, p.name, p.type.text());
}

// Ops of all graphs, most frequent first.
std::vector<std::pair<std::string, int64_t>> histogram(const Json& info) {
  std::map<std::string, int64_t> counts;
  for (const Json& graph : info.at("graphs"))
    for (const auto& [op, count] : graph.at("ops").items()) counts[op] += count.get<int64_t>();
  std::vector<std::pair<std::string, int64_t>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

void print_ops(const Json& info) {
  int64_t total = 0;
  std::vector<std::string> parts;
  for (const auto& [op, count] : histogram(info)) {
    total += count;
    parts.push_back(fmt::format("{} {}", op, count));
  }
  fmt::print("nodes: {}\n", total);
  const size_t room = std::min<size_t>(terminal_width(stdout) ? terminal_width(stdout) - 2 : 100, 100);
  std::string line = "  ";
  for (size_t i = 0; i < parts.size(); i++) {
    if (line.size() + parts[i].size() > room) {
      fmt::print("{}\n", line);
      line = "  ";
    }
    line += parts[i] + (i + 1 < parts.size() ? ", " : "");
  }
  if (!parts.empty()) fmt::print("{}\n", line);
}

// Prepares a plan, which lists every op that the device lacks. "" if it can run.
std::string why_not(const Model& model, const Entry& entry, const std::string& device, const Args& args) {
  try {
    keel::Session(model.module, device, session_options(args, entry.name)).prepare();
    return "";
  } catch (const keel::Error& error) {
    return error.what();
  }
}

}  // namespace

Json check_devices(const keel::Context& context, const Model& model, const Args& args) {
  Json out = Json::array();
  std::vector<std::string> devices =
      args.device.empty() ? context.devices() : std::vector{pick_device(context, args.device)};
  for (const std::string& device : devices) {
    for (const Entry& entry : model.entries) {
      std::string why = why_not(model, entry, device, args);
      out.push_back({{"device", device}, {"entry", entry.name}, {"runs", why.empty()}, {"why", why}});
    }
  }
  return out;
}

void print_contents(const Model& model, const Json& devices, const Args& args) {
  fmt::print("{} ({})\n", args.file, human_bytes(static_cast<double>(file_size(args.file))));
  for (const Entry& e : model.entries) {
    fmt::print("entry {}\n", e.name);
    print_ports("in ", e.params);
    print_ports("out", e.results);
  }
  print_ops(model.info);
  fmt::print("constants: {}, {}\n", model.info.at("constants").get<int64_t>(),
             human_bytes(model.info.at("constant_bytes").get<double>()));
  for (const Json& v : model.info.at("variables"))
    fmt::print("variable {}: {}\n", cell(v["name"]), cell(v["type"]));
  for (const auto& [key, value] : model.info.at("metadata").items())
    if (key != kNodeNames) fmt::print("metadata {}: {}\n", key, one_line(cell(value), 80));
  for (const StoredCase& c : model.cases) fmt::print("case {} of entry {}\n", c.name, c.entry);
  for (const Json& d : devices)
    fmt::print("on {}: {}{}\n", cell(d["device"]), model.entries.size() > 1 ? cell(d["entry"]) + " " : "",
               d["runs"] ? "runs" : "cannot run: " + cell(d["why"]));
}

}  // namespace cli
