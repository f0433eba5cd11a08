// report.cc: facts about a context as JSON: plugins, devices, ops, importers, passes.
#include "kernel/api/handles.h"
#include "kernel/base/json.h"
#include "kernel/runtime/plan/core.h"
#include "kernel/runtime/plan/moves.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {
namespace {

void Text(Json& json, const char* key, std::string_view text) { json.Key(key).String(text); }

void ReportPlugins(Context& c, Json& json) {
  constexpr const char* kVerdicts[] = {"taken", "refused", "skipped"};
  json.Objects(c.registry.Attempts(), [&](const Attempt& a) {
    Text(json, "path", a.path);
    Text(json, "source", a.source);
    Text(json, "verdict", kVerdicts[static_cast<int>(a.verdict)]);
    Text(json, "reason", a.reason);
  });
}

void ReportDevice(Device& device, Json& json) {
  Text(json, "name", device.name());
  Text(json, "plugin", device.plugin().name);
  Text(json, "version", device.plugin().version);
  Text(json, "about", device.plugin().about);
  if (keel_device_info info; device.Describe(&info)) {
    Text(json, "description", info.description);
    json.Key("memory").Int(static_cast<int64_t>(info.memory));
    Text(json, "capabilities", info.capabilities);
    Text(json, "uuid", UuidText(info.uuid));
    json.Key("software").Bool(info.flags & KEEL_DEVICE_SOFTWARE);
  }
  absl::Status status = device.Open().status();
  json.Key("usable").Bool(status.ok());
  if (!status.ok()) json.Key("reason").String(std::string(status.message()));
}

void ReportImporters(Context& c, Json& json) {
  json.Objects(c.registry.Importers(), [&](const auto& of) {
    const auto& [plugin, importer] = of;
    Text(json, "name", importer->name);
    Text(json, "extensions", importer->extensions ? importer->extensions : "");
    json.Key("saves").Bool(importer->save);
    Text(json, "plugin", plugin->name);
  });
}

void ReportPasses(Context& c, Json& json) {
  json.Objects(c.registry.Passes(), [&](const Pass& pass) {
    const keel_pass& p = pass.table;
    Text(json, "name", p.name);
    Text(json, "about", p.about ? p.about : "");
    Text(json, "plugin", pass.plugin->name);
    Text(json, "phase",
         p.phase == KEEL_PHASE_CANON    ? "canon"
         : p.phase == KEEL_PHASE_PLACED ? "placed"
                                        : "lower");
    json.Key("level").Int(p.level);
    json.Key("exactness").Int(p.exactness);
    Text(json, "after", p.after ? p.after : "");
    Text(json, "before", p.before ? p.before : "");
    if (std::string why = c.passes.Disabled(p.name); !why.empty()) json.Key("disabled").String(why);
  });
}

// The source of the gradient, and the values that the gradient of each operand reads.
void WriteVjp(const OpDef& op, Json& json) {
  constexpr const char* kKinds[] = {"none", "rule", "body", "missing"};
  Text(json, "vjp", kKinds[static_cast<int>(VjpOf(op))]);
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
  Text(json, "name", OpName(op));
  json.Key("version").Int(OpVersion(op));
  Text(json, "doc", OpDoc(op));
  json.Key("traits").BeginArray();
  for (std::string_view trait : TraitNames(op)) json.String(trait);
  json.EndArray();
  json.Objects("operands", OpOperands(op), [&](const OperandInfo& o) {
    Text(json, "name", o.name);
    Text(json, "pattern", o.pattern);
    json.Key("optional").Bool(o.optional).Key("variadic").Bool(o.variadic);
  });
  json.Objects("attributes", OpAttrs(op), [&](const AttrInfo& a) {
    Text(json, "name", a.name);
    Text(json, "type", a.type);
    Text(json, "default", a.default_text);
  });
  json.Objects("results", OpResults(op), [&](const ResultInfo& r) {
    Text(json, "name", r.name);
    Text(json, "pattern", r.pattern);
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
  const char* why = WhyLacking(device, op, types);
  if (rows && !why)
    for (const Impl& impl : *rows)
      if (Supports(impl, op, types))
        return absl::StrCat(impl.table.name ? impl.table.name : impl.plugin->name,
                            impl.table.flags & KEEL_IMPL_THREAD_BITS ? " (other threads, other bits)" : "");
  if (IsControl(op) || IsCore(op)) return "core";
  if (!device.host_memory() && HasMovesImpl(op)) return "copies";
  if (Has(op, Trait::kAlias)) return "alias";
  if (why) return std::string("missing: ") + why;
  return HasBody(op) || IsTypedByGraph(op) ? "body" : "missing";
}

// By dtype of the op's first type variable; an op without one has a single row "any".
void WriteImpls(const Device& device, const OpDef& op, Json& json) {
  auto found = device.plugin().impls.find(std::string(OpName(op)));
  const std::vector<Impl>* rows = found == device.plugin().impls.end() ? nullptr : &found->second;
  auto types = OpTypes(op);
  const bool typed = !types.empty();
  const DType any = DType::kNone;
  json.Key("impls").BeginObject();
  for (DType d : typed ? std::span<const DType>(types[0].second) : std::span(&any, 1)) {
    const std::pair<std::string, DType> first(typed ? types[0].first : "", d);
    json.Key(typed ? Name(d) : "any").String(ImplFor(device, rows, op, {&first, typed}));
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
