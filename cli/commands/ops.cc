// ops.cc: `keel ops`: the catalogue, with -d the implementation of each op and dtype on a device, with --onnx
// the operators of ONNX that can be imported.
#include <fmt/core.h>

#include <map>
#include <sstream>

#include "cli/command.h"
#include "cli/data/bytes.h"
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

bool list_onnx = false;

void onnx_flag(Flags& flags, Args&) {
  flags.add("--onnx", list_onnx,
            "list ONNX's operators instead, with the first opset or the reason against it");
}

// The importer lists its operators in the metadata of a module, here of a model without nodes.
Json onnx_operators(const keel::Context& context) {
  const std::string model = file_in_memory("onnx", "\x08\x08\x3a\x03\x12\x01g");
  keel::Options options;
  options.set("list", "operators");
  const Json info = at(
      Stage::kFile, [&] { return Json::parse(keel::Module::import_file(context, model, options).info()); });
  Json list = Json::array();
  std::istringstream lines(info.at("metadata").at("onnx.operators").get<std::string>());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string domain, name, since, reason;
    for (std::string* word : {&domain, &name, &since, &reason}) std::getline(words, *word, '\t');
    Json row{{"domain", domain}, {"name", name}};
    if (reason.empty())
      row["since"] = std::stoi(since);
    else
      row["reason"] = reason;
    list.push_back(row);
  }
  return list;
}

void print_onnx(const Json& operators) {
  std::vector<std::vector<std::string>> rows{{"operator", "from opset", ""}};
  for (const Json& o : operators) {
    const std::string domain = cell(o.at("domain")), name = cell(o.at("name"));
    rows.push_back({domain.empty() ? name : domain + "." + name,
                    o.contains("since") ? cell(o.at("since")) : "-",
                    o.contains("reason") ? "not supported: " + cell(o.at("reason")) : ""});
  }
  print_table(rows);
}

int ops_command(const Args& args) {
  keel::Context context = open_context(args);
  if (list_onnx) {
    const Json operators = onnx_operators(context);
    args.json ? print_json({{"schema", "keel.ops/1"}, {"onnx", operators}}) : print_onnx(operators);
    return kOk;
  }
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

const Command kOps(
    "ops", "List the ops, how a device computes each of them, or the operators of ONNX that are imported",
    {device_flag, onnx_flag}, ops_command);

}  // namespace
}  // namespace cli
