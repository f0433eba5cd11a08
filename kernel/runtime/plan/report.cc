// report.cc: writes a plan as JSON: launches in order, folded nodes, placement, memory.
#include <algorithm>

#include "kernel/base/json.h"
#include "kernel/runtime/pass/pass.h"
#include "kernel/runtime/plan/plan.h"

namespace keel {
namespace {

void WriteValue(Json& json, const Lowered& l, uint32_t v, const Binding* b) {
  constexpr const char* kPlaces[] = {"feed", "constant", "arena", "result", "variable", "assigned"};
  json.BeginObject();
  json.Key("name").String(l.values[v].name);
  json.Key("type").String(Print(l.values[v].type, l.dims));
  if (b) {
    json.Key("shape").BeginArray();
    for (int64_t d : b->shapes[v]) json.Int(d);
    json.EndArray();
    json.Key("bytes").Int(static_cast<int64_t>(BytesOf(l, *b, v)));
    json.Key("place").String(kPlaces[b->storage[v].kind]);
    if (b->storage[v].kind == Storage::kArena)
      json.Key("offset").Int(static_cast<int64_t>(b->storage[v].place));
  }
  json.EndObject();
}

void WriteStep(Json& json, const Lowered& l, size_t s, const Binding* b, std::string_view owner) {
  const Step& step = l.steps[s];
  json.BeginObject();
  if (!owner.empty()) json.Key("body_of").String(owner);
  json.Key("node").String(step.name);
  json.Key("op").String(OpName(*step.op));
  json.Key("impl").String(step.impl->table.name ? step.impl->table.name : "");
  json.Key("device").String(l.device->name());
  const Launch* launch = b ? b->launches[s].get() : nullptr;
  if (launch && launch->launch.steps) json.Key("steps").String(launch->launch.steps);
  for (const auto& [key, side] : {std::pair("in", &step.in), std::pair("out", &step.out)}) {
    json.Key(key).BeginArray();
    for (uint32_t v : *side)
      if (v != kNoValue) WriteValue(json, l, v, b);
    json.EndArray();
  }
  json.EndObject();
}

// In the order of NumberSteps: the steps of a plan, then of its bodies, then of those that are plans.
void WriteSteps(Json& json, const Lowered& l, const Binding* b, std::string_view owner) {
  for (size_t s = 0; s < l.steps.size(); s++) WriteStep(json, l, s, b, owner);
  for (size_t s = 0; s < l.steps.size(); s++)
    for (size_t i = 0; i < l.steps[s].bodies.size(); i++)
      WriteSteps(json, *l.steps[s].bodies[i], b ? b->controls[s]->bodies[i].get() : nullptr, l.steps[s].name);
  for (const Step& step : l.steps)
    for (const PlannedBody& body : step.plans)
      for (const Plan* part : body.plan->Parts()) WriteSteps(json, part->lowered(), nullptr, step.name);
}

// Names of the steps of each parallel section.
void WriteLanes(Json& json, const Lowered& l, const Binding& b) {
  json.Key("lanes").BeginArray();
  for (const Section& section : b.sections) {
    if (!section.parallel) continue;
    json.BeginArray();
    for (uint32_t s : section.steps) json.String(l.steps[s].name);
    json.EndArray();
  }
  json.EndArray();
}

void WriteFolded(Json& json, const Lowered& l) {
  for (const std::string& name : l.folded) json.String(name);
  for (const Step& step : l.steps)
    for (const auto& body : step.bodies) WriteFolded(json, *body);
}

void WriteMemory(Json& json, const Lowered& l, const Binding& b) {
  uint64_t constants = 0;
  for (const Constant& c : l.constants) constants += c.bytes;
  json.Key("arena_bytes").Int(static_cast<int64_t>(b.arena_bytes));
  json.Key("unshared_bytes").Int(static_cast<int64_t>(b.unshared_bytes));
  json.Key("in_place").Int(static_cast<int64_t>(b.in_place));
  json.Key("still").Int(std::ranges::count(b.is_noop, true));  // launches with all results in place
  json.Key("scratch_bytes").Int(static_cast<int64_t>(b.scratch_bytes));
  json.Key("result_bytes").Int(static_cast<int64_t>(b.output_bytes));
  json.Key("constant_bytes").Int(static_cast<int64_t>(constants));
}

}  // namespace

absl::StatusOr<std::string> Plan::Report(std::span<keel_array* const> in) {
  std::shared_ptr<Binding> binding;
  if (!in.empty() || lowered_->dims.symbol_count() == 0) {
    if (!in.empty()) RETURN_IF_ERROR(CheckFeeds(in));
    if (in.empty()) {
      ASSIGN_OR_RETURN(binding, BindOrReplace({}));
    } else if (!lowered_->new_sizes) {
      ASSIGN_OR_RETURN(binding, FindBinding(in));
    }
  }
  const Lowered& lowered = binding ? *LoweredOf(*binding) : *lowered_;
  Json json;
  json.BeginObject();
  json.Key("device").String(lowered.device->name());
  json.Key("threads").Int(options_.threads);
  json.Key("nodes").Int(static_cast<int64_t>(options_.nodes));
  json.Key("needed_nodes").Int(static_cast<int64_t>(options_.needed));
  if (options_.passes) options_.passes->Write(json);
  json.Key("launches").BeginArray();
  WriteSteps(json, lowered, binding.get(), "");
  const auto parts = placement_ ? placement_->Plans() : std::vector<const Plan*>();
  for (const Plan* part : parts) WriteSteps(json, part->lowered(), nullptr, "");
  json.EndArray();
  json.Key("folded").BeginArray();
  WriteFolded(json, lowered);
  for (const Plan* part : parts) WriteFolded(json, part->lowered());
  json.EndArray();
  if (placement_) placement_->Report(json, *lowered_, binding.get());
  json.Key("checks").BeginArray();
  for (const Inferred::Check& check : lowered.checks) json.String(check.message);
  json.EndArray();
  if (binding && !split_) {
    WriteLanes(json, lowered, *binding);
    WriteMemory(json, lowered, *binding);
  }
  json.EndObject();
  return json.Take();
}

}  // namespace keel
