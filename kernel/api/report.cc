// report.cc: facts about a context as JSON: plugins, devices, ops, importers, passes.
#include "kernel/api/handles.h"
#include "kernel/base/json.h"
#include "kernel/runtime/plan/core.h"
#include "kernel/runtime/plan/moves.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {
namespace {

void ReportPlugins(Context& c, Json& json) {
  constexpr const char* kVerdicts[] = {"taken", "refused", "skipped"};
  json.Objects(c.registry.Attempts(), [&](const Attempt& a) {
    json.Key("path").String(a.path);
    json.Key("source").String(a.source);
    json.Key("verdict").String(kVerdicts[static_cast<int>(a.verdict)]);
    json.Key("reason").String(a.reason);
  });
}

// "" if it is not known.
std::string UuidText(const uint8_t (&uuid)[16]) {
  std::string text;
  bool known = false;
  for (int i = 0; i < 16; i++) {
    constexpr const char* kDigits = "0123456789abcdef";
    if (i >= 4 && i <= 10 && i % 2 == 0) text += '-';
    text += {kDigits[uuid[i] >> 4], kDigits[uuid[i] & 15]};
    known = known || uuid[i];
  }
  return known ? text : "";
}

void ReportDevice(Device& device, Json& json) {
  json.Key("name").String(device.name());
  json.Key("plugin").String(device.plugin().name);
  json.Key("version").String(device.plugin().version);
  json.Key("about").String(device.plugin().about);
  keel_device_info info{};
  info.struct_size = sizeof info;
  if (device.plugin().device.info &&
      device.plugin().device.info(&HostTable(), device.index(), &info) == KEEL_OK) {
    info.description[sizeof info.description - 1] = 0;
    json.Key("description").String(info.description);
    json.Key("memory").Int(static_cast<int64_t>(info.memory));
    info.capabilities[sizeof info.capabilities - 1] = 0;
    json.Key("capabilities").String(info.capabilities);
    json.Key("uuid").String(UuidText(info.uuid));
    json.Key("software").Bool(info.flags & KEEL_DEVICE_SOFTWARE);
  }
  absl::Status status = device.Open().status();
  json.Key("usable").Bool(status.ok());
  if (!status.ok()) json.Key("reason").String(std::string(status.message()));
}

void ReportImporters(Context& c, Json& json) {
  json.Objects(c.registry.Importers(), [&](const auto& of) {
    const auto& [plugin, importer] = of;
    json.Key("name").String(importer->name);
    json.Key("extensions").String(importer->extensions ? importer->extensions : "");
    json.Key("plugin").String(plugin->name);
  });
}

void ReportPasses(Context& c, Json& json) {
  json.Objects(c.registry.Passes(), [&](const Pass& pass) {
    const keel_pass& p = pass.table;
    json.Key("name").String(p.name);
    json.Key("about").String(p.about ? p.about : "");
    json.Key("plugin").String(pass.plugin->name);
    json.Key("phase").String(p.phase == KEEL_PHASE_CANON    ? "canon"
                             : p.phase == KEEL_PHASE_PLACED ? "placed"
                                                            : "lower");
    json.Key("level").Int(p.level);
    json.Key("exactness").Int(p.exactness);
    json.Key("after").String(p.after ? p.after : "");
    json.Key("before").String(p.before ? p.before : "");
    if (std::string why = c.passes.Disabled(p.name); !why.empty()) json.Key("disabled").String(why);
  });
}

// The source of the gradient, and the values that the gradient of each operand reads.
void WriteVjp(const OpDef& op, Json& json) {
  constexpr const char* kKinds[] = {"none", "rule", "body", "missing"};
  json.Key("vjp").String(kKinds[static_cast<int>(VjpOf(op))]);
  if (VjpOf(op) != Vjp::kRule) return;
  std::vector<OperandInfo> operands = OpOperands(op);
  std::vector<ResultInfo> results = OpResults(op);
  std::vector<VjpReads> reads = VjpReadsOf(op);
  json.Key("vjp_reads").BeginObject();
  for (size_t i = 0; i < reads.size(); i++) {
    json.Key(operands[i].name).BeginArray();
    for (size_t k = 0; k < operands.size(); k++)
      if (reads[i].operands[k]) json.String(operands[k].name);
    for (size_t k = 0; k < results.size(); k++)
      if (reads[i].results[k]) json.String(results[k].name);
    json.EndArray();
  }
  json.EndObject();
}

void WriteOp(const OpDef& op, Json& json) {
  json.Key("name").String(OpName(op));
  json.Key("version").Int(OpVersion(op));
  json.Key("doc").String(OpDoc(op));
  json.Key("traits").BeginArray();
  for (std::string_view trait : TraitNames(op)) json.String(trait);
  json.EndArray();
  json.Objects("operands", OpOperands(op), [&](const OperandInfo& o) {
    json.Key("name").String(o.name).Key("pattern").String(o.pattern);
    json.Key("optional").Bool(o.optional).Key("variadic").Bool(o.variadic);
  });
  json.Objects("attributes", OpAttrs(op), [&](const AttrInfo& a) {
    json.Key("name").String(a.name).Key("type").String(a.type).Key("default").String(a.default_text);
  });
  json.Objects("results", OpResults(op), [&](const ResultInfo& r) {
    json.Key("name").String(r.name).Key("pattern").String(r.pattern);
  });
  json.Key("body").Bool(HasBody(op));
  WriteVjp(op, json);
}

void WriteTypes(const OpDef& op, Json& json) {
  json.Key("types").BeginObject();
  for (const auto& [variable, dtypes] : OpTypes(op)) {
    json.Key(variable).BeginArray();
    for (DType d : dtypes) json.String(Name(d));
    json.EndArray();
  }
  json.EndObject();
}

std::string ImplFor(const Device& device, const std::vector<Impl>* rows, const OpDef& op,
                    std::span<const std::pair<std::string, DType>> types) {
  if (rows)
    for (const Impl& impl : *rows)
      if (Supports(impl, OpVersion(op), types))
        return absl::StrCat(impl.table.name ? impl.table.name : impl.plugin->name,
                            impl.table.flags & KEEL_IMPL_THREAD_BITS ? " (other threads, other bits)" : "");
  if (IsControl(op) || IsCore(op)) return "core";
  if (!device.host_memory() && HasMovesImpl(op)) return "copies";
  return HasBody(op) || IsTypedByGraph(op) ? "body" : Has(op, Trait::kAlias) ? "alias" : "missing";
}

// By dtype of the op's first type variable; an op without one has a single row "any".
void WriteImpls(const Device& device, const OpDef& op, Json& json) {
  auto found = device.plugin().impls.find(std::string(OpName(op)));
  const std::vector<Impl>* rows = found == device.plugin().impls.end() ? nullptr : &found->second;
  auto types = OpTypes(op);
  json.Key("impls").BeginObject();
  if (types.empty()) json.Key("any").String(ImplFor(device, rows, op, {}));
  if (!types.empty())
    for (DType d : types[0].second) {
      const std::pair<std::string, DType> first[] = {{types[0].first, d}};
      json.Key(Name(d)).String(ImplFor(device, rows, op, first));
    }
  json.EndObject();
}

absl::Status ReportOps(Context& c, const Device* device, Json& json) {
  json.BeginArray();
  for (const std::string& name : c.catalogue->Names()) {
    ASSIGN_OR_RETURN(const OpDef* op, c.catalogue->Find(name, 0));
    json.BeginObject();
    WriteOp(*op, json);
    WriteTypes(*op, json);
    if (device) WriteImpls(*device, *op, json);
    json.EndObject();
  }
  json.EndArray();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReportOf(Context& c, std::string_view caller, std::string_view what) {
  Json json;
  if (what == "plugins") {
    ReportPlugins(c, json);
  } else if (what == "devices") {
    json.Objects(c.registry.Devices(), [&](Device* device) { ReportDevice(*device, json); });
  } else if (what.substr(0, 8) == "devices:") {
    ASSIGN_OR_RETURN(Device * device, c.registry.FindDevice(std::string(what.substr(8))));
    json.Objects(std::span(&device, 1), [&](Device* one) { ReportDevice(*one, json); });
  } else if (what == "importers") {
    ReportImporters(c, json);
  } else if (what == "passes") {
    ReportPasses(c, json);
  } else if (what == "ops") {
    RETURN_IF_ERROR(ReportOps(c, nullptr, json));
  } else if (what.substr(0, 4) == "ops:") {
    ASSIGN_OR_RETURN(Device * device, c.registry.FindDevice(std::string(what.substr(4))));
    RETURN_IF_ERROR(ReportOps(c, device, json));
  } else {
    return UnknownChoice(caller, "what", what,
                         "plugins, devices, devices:DEVICE, importers, passes, ops, ops:DEVICE");
  }
  return json.Take();
}

}  // namespace keel
