// ops.cc: `keel ops`: the catalogue, or with -d the implementation of each op and dtype on a device.
#include <fmt/core.h>

#include <map>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/show/print.h"

namespace cli {
namespace {

std::string explain(const std::string& how) {
  static const std::map<std::string, std::string> kKnown{{"alias", "no work: shares memory"},
                                                         {"body", "its body: no impl of its own"},
                                                         {"copies", "copies and fills: no impl of its own"},
                                                         {"core", "Keel, on the host"},
                                                         {"missing", "missing: neither impl nor body"}};
  auto known = kKnown.find(how);
  return known == kKnown.end() ? how : known->second;
}

// One row per op and implementation: "add  f32 f64  own loop".
void print_device_ops(const Json& ops) {
  std::vector<std::vector<std::string>> rows{{"op", "types", "how"}};
  for (const Json& o : ops) {
    std::map<std::string, std::string> types;  // by implementation
    for (const auto& [type, how] : o.at("impls").items()) {
      std::string& list = types[cell(how)];
      list += (list.empty() ? "" : " ") + type;
    }
    for (const auto& [how, list] : types) rows.push_back({cell(o.at("name")), list, explain(how)});
  }
  print_table(rows);
}

void print_catalogue(const Json& ops) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& o : ops) {
    std::vector<std::string> in, out;
    for (const Json& p : o.at("operands"))
      in.push_back(cell(p.at("name")) + (p.at("optional") == true ? "?" : ""));
    for (const Json& r : o.at("results")) out.push_back(cell(r.at("name")));
    rows.push_back({fmt::format("{}({}) -> {}", cell(o.at("name")), join(in, ", "), join(out, ", ")),
                    cell(o.at("doc"))});
  }
  print_table(rows);
}

int ops_command(const Args& args) {
  keel::Context context = open_context(args);
  std::string device = args.device.empty() ? "" : pick_device(context, args.device);
  Json ops = facts(context, device.empty() ? "ops" : "ops:" + device);
  if (args.json) {
    Json json{{"schema", "keel.ops/1"}};
    if (!device.empty()) json["device"] = device;
    json["ops"] = ops;
    print_json(json);
  } else if (device.empty()) {
    print_catalogue(ops);
  } else {
    print_device_ops(ops);
  }
  return kOk;
}

const Command kOps("ops", "List the ops, or how a device computes each of them", {device_flag}, ops_command);

}  // namespace
}  // namespace cli
