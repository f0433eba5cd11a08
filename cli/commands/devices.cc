// devices.cc: `keel devices`: the devices found.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/show/print.h"

namespace cli {
namespace {

// Other devices that are the same hardware: "; same hardware as cuda:0".
std::string twins(const Json& devices, const Json& d) {
  std::string text;
  const std::string uuid = d.value("uuid", "");
  for (const Json& other : devices)
    if (!uuid.empty() && other.value("uuid", "") == uuid && other.at("name") != d.at("name"))
      text += (text.empty() ? "; same hardware as " : ", ") + cell(other.at("name"));
  return text;
}

int devices_command(const Args& args) {
  keel::Context context = open_context(args);
  Json devices = facts(context, "devices");
  if (args.json) {
    print_json({{"schema", "keel.devices/1"}, {"devices", devices}});
    return kOk;
  }
  if (devices.empty())
    fmt::print("no devices; keel doctor lists the plugins found and why they were refused\n");
  std::vector<std::vector<std::string>> rows;
  for (const Json& d : devices) {
    double memory = d.value("memory", 0.0);
    std::string text = cell(d.value("description", Json()));
    if (text.empty()) text = cell(d.at("about"));
    if (std::string can = cell(d.value("capabilities", Json())); !can.empty()) text += "; " + can;
    if (d.value("software", false)) text += "; imitated by the processor";
    text += twins(devices, d);
    if (d.at("usable") != true) text += " (not usable: " + cell(d.value("reason", Json())) + ")";
    rows.push_back({cell(d.at("name")), cell(d.at("version")), text, memory > 0 ? human_bytes(memory) : ""});
  }
  print_table(rows);
  return kOk;
}

const Command kDevices("devices", "List the devices found", {isa_flag}, devices_command);

}  // namespace
}  // namespace cli
