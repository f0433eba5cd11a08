// trace.cc: see trace.h.
#include "kernel/program/trace/trace.h"

#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/device/move.h"

namespace keel {
namespace {

constexpr std::string_view kForeign = "a traced function can use its own arguments and concrete arrays only";

struct TracedValue : SymbolicValue {
  TracedValue(std::shared_ptr<Trace> of, ValueId id) : trace(std::move(of)), value(id) {}
  std::string Describe() const override {
    const Graph& g = *trace->graph();
    return absl::StrCat("value \"", g.ValueName(value), "\", ", Print(g.values[value].type, g.module->dims),
                        ", of the trace of \"", g.name, "\"");
  }
  std::shared_ptr<Trace> trace;
  ValueId value;
};

TracedValue* Traced(const keel_array* array) {
  return array ? static_cast<TracedValue*>(array->symbolic()) : nullptr;
}

}  // namespace

std::vector<keel_array*> Raw(std::span<const ArrayRef> arrays) {
  std::vector<keel_array*> raw;
  for (const ArrayRef& array : arrays) raw.push_back(array.get());
  return raw;
}

Results Share(Arrays arrays) {
  Results shared;
  for (keel_array* array : arrays) shared.push_back(ArrayRef::Share(array));
  return shared;
}

absl::Status NoRoom(std::string_view what, size_t results, size_t room) {
  return Invalid(what, " returns ", results, " results, but 'out' has room for ", room);
}

Trace::Trace(std::shared_ptr<Module> module, Graph* graph, std::string device)
    : module_(std::move(module)), graph_(graph), device_(std::move(device)) {}

Trace* Trace::Of(const keel_array* array) {
  TracedValue* traced = Traced(array);
  return traced ? traced->trace.get() : nullptr;
}

ValueId Trace::ValueOf(const keel_array* array) { return Traced(array)->value; }

absl::StatusOr<Trace*> Trace::OfAll(Arrays arrays) {
  const keel_array* first = nullptr;
  for (const keel_array* array : arrays) {
    Trace* trace = Of(array);
    if (!trace || (first && Of(first)->Current() == trace->Current())) continue;
    if (first)
      return Annotate(Invalid("operands belong to two traces: ", first->symbolic()->Describe(), ", and ",
                              array->symbolic()->Describe()),
                      kErrorHint, kForeign);
    first = array;
  }
  return first ? Of(first)->Current() : nullptr;
}

absl::Status Trace::CheckOpen(std::string_view doing) const {
  if (is_open_) return absl::OkStatus();
  return Annotate(Error(absl::StatusCode::kFailedPrecondition, "the trace of \"", graph_->name,
                        "\" has ended: cannot ", doing),
                  kErrorHint, "a symbolic array is only valid inside its function: return it as a result");
}

absl::StatusOr<ArrayRef> Trace::Symbol(ValueId value) {
  const TensorType& type = graph_->values[value].type;
  int64_t shape[KEEL_MAX_RANK];
  for (size_t d = 0; d < type.dims.size(); d++) shape[d] = IsSymbolic(type.dims[d]) ? -1 : type.dims[d];
  return NewSymbolic(type.dtype, {shape, type.dims.size()},
                     std::make_unique<TracedValue>(shared_from_this(), value));
}

absl::StatusOr<Results> Trace::Symbols(std::span<const ValueId> values) {
  Results symbols;
  for (ValueId value : values) {
    ASSIGN_OR_RETURN(symbols.emplace_back(), Symbol(value));
  }
  return symbols;
}

absl::StatusOr<ArrayRef> Trace::ArrayFor(ValueId value) {
  std::lock_guard lock(*mutex_);
  return Symbol(value);
}

absl::StatusOr<ArrayRef> Trace::Param(std::string_view name, TensorType type) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("add a parameter"));
  ASSIGN_OR_RETURN(ValueId value, graph_->AddParam(NameFor(name, "placeholder"), std::move(type)));
  return Symbol(value);
}

void Trace::At(const char* file, uint32_t line) noexcept {
  if (file != file_) try {
      std::lock_guard lock(*mutex_);
      file_ = file, in_file_ = 0;
      if (file) in_file_ = module_->Source(file, 0);
    } catch (const std::bad_alloc&) {  // the source stays unknown
    }
  source_ = in_file_ && !(line >> Origin::kLineBits) ? in_file_ | line : 0;
}

void Trace::NameAll(std::string scope) {
  std::lock_guard lock(*mutex_);
  scope_ = std::move(scope);
}

std::string Trace::Unique(std::string name) {
  auto taken = [&](const std::string& n) {
    return graph_->by_name.contains(n) || graph_->nodes_by_name.contains(n) || module_->FindConstant(n).ok();
  };
  uint32_t& next = next_suffix_[name];
  std::string free = next ? absl::StrCat(name, "_", next) : name;
  while (taken(free)) free = absl::StrCat(name, "_", ++next);
  next++;
  return free;
}

std::string Trace::NameFor(std::string_view given, std::string_view otherwise) {
  if (!scope_) return std::string(given);
  return given.empty() ? Unique(absl::StrCat(*scope_, otherwise)) : absl::StrCat(*scope_, given);
}

namespace {

// Constants are contiguous and in host memory.
absl::StatusOr<ArrayRef> RowsOnHost(keel_array* array) {
  ASSIGN_OR_RETURN(ArrayRef rows, MoveTo(array, nullptr));
  return rows->contiguous ? absl::StatusOr<ArrayRef>(std::move(rows)) : CopyArray(rows->view);
}

}  // namespace

absl::StatusOr<ArrayRef> Trace::Constant(std::string_view name, keel_array* array) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("add a constant"));
  ASSIGN_OR_RETURN(ArrayRef rows, RowsOnHost(array));
  std::string own = NameFor(name, "const");
  if (!own.empty() && (graph_->by_name.contains(own) || graph_->nodes_by_name.contains(own)))
    return Error(absl::StatusCode::kAlreadyExists, "graph '", graph_->name, "' already has a value '", own,
                 "'; names must be unique within a graph");
  ASSIGN_OR_RETURN(uint32_t number, module_->AddConstant(ConstantOf(own, std::move(rows))));
  ASSIGN_OR_RETURN(ValueId value, graph_->AddConstant(number));
  return Symbol(value);
}

absl::Status Trace::Rename(keel_array* array, std::string_view name, bool unique) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("name a value"));
  if (Of(array) != this) return Invalid("the array does not belong to the trace of \"", graph_->name, "\"");
  std::string own = NameFor(name, "value");
  return graph_->NameValue(ValueOf(array), unique ? Unique(std::move(own)) : own);
}

absl::StatusOr<ValueId> Trace::Capture(keel_array* array) {
  if (auto it = captured_.find(array); it != captured_.end()) return it->second;
  ASSIGN_OR_RETURN(ArrayRef rows, RowsOnHost(array));
  bool known = array->serial.load(std::memory_order_relaxed) != 0;  // to a tape that may watch it
  ASSIGN_OR_RETURN(uint32_t number,
                   module_->AddConstant(ConstantOf("", std::move(rows)), known && IsFloating(array->dtype)));
  ASSIGN_OR_RETURN(ValueId value, graph_->AddConstant(number));
  captured_.emplace(array, value);
  links_.push_back({value, nullptr, ArrayRef::Share(array)});  // keeps the address in captured_ valid
  return value;
}

absl::StatusOr<ValueId> Trace::ValueFor(keel_array* array) {
  if (!array) return kNoValue;
  TracedValue* traced = Traced(array);
  if (traced && traced->trace.get() == this) return traced->value;
  if (parent_) return FromParent(array);
  if (!traced) return Capture(array);
  return Annotate(Invalid(traced->Describe(), " cannot be used in the trace of \"", graph_->name, "\""),
                  kErrorHint, traced->trace->parent_ ? "return the value as a result of its body" : kForeign);
}

absl::StatusOr<std::vector<ValueId>> Trace::ValuesFor(Arrays arrays) {
  std::vector<ValueId> values;
  values.reserve(arrays.size());
  for (keel_array* array : arrays) {
    ASSIGN_OR_RETURN(values.emplace_back(), ValueFor(array));
  }
  return values;
}

absl::StatusOr<ValueId> Trace::Import(keel_array* array) {
  std::lock_guard lock(*mutex_);
  return ValueFor(array);
}

absl::Status Trace::Apply(const OpDef& op, const Attrs& attrs, const std::string& device, Arrays in,
                          std::span<keel_array*> out) {
  std::lock_guard lock(*mutex_);
  if (!is_open_) return CheckOpen(absl::StrCat("apply ", OpName(op)));
  ASSIGN_OR_RETURN(std::vector<ValueId> operands, ValuesFor(in));
  graph_->scope = {0, source_};
  if (device != device_) {
    ASSIGN_OR_RETURN(graph_->scope.device, module_->DeviceScope(device));
  }
  ASSIGN_OR_RETURN(NodeId node, Add(op, std::move(operands), attrs));
  const std::vector<ValueId>& results = graph_->nodes[node].out;
  if (results.size() != out.size()) return NoRoom(OpName(op), results.size(), out.size());
  ASSIGN_OR_RETURN(Results made, Symbols(results));
  for (size_t i = 0; i < made.size(); i++) out[i] = made[i].Detach();
  return absl::OkStatus();
}

absl::StatusOr<NodeId> Trace::Add(const OpDef& op, std::vector<ValueId> in, const Attrs& attrs,
                                  const std::vector<TensorType>& declared) {
  std::vector<std::string> names;
  if (scope_) names.push_back(NameFor("", OpName(op)));
  ASSIGN_OR_RETURN(NodeId node, graph_->AddNode(&op, std::move(in), attrs, names, declared));
  if (MustRun(*graph_, graph_->nodes[node]))
    for (uint32_t written : EffectsOf(*graph_, graph_->nodes[node]).writes)
      current_reads_.erase(written), written_.insert(written);
  return node;
}

absl::StatusOr<std::vector<ValueId>> Trace::Add(std::string_view op, std::vector<ValueId> in,
                                                const Attrs& attrs) {
  ASSIGN_OR_RETURN(const OpDef* def, module_->catalogue->Find(op, 0));
  graph_->scope = {0, source_};
  ASSIGN_OR_RETURN(NodeId node, Add(*def, std::move(in), attrs));
  return graph_->nodes[node].out;
}

NodeId Trace::NextNode() const {
  std::lock_guard lock(*mutex_);
  return static_cast<NodeId>(graph_->nodes.size());
}

absl::Status Trace::Result(std::string_view name, keel_array* array) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("add a result"));
  ASSIGN_OR_RETURN(ValueId value, ValueFor(array));
  return graph_->AddResult(name, value);
}

absl::Status Trace::End(std::vector<TraceLink>* links) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("end it again"));
  if (const Trace* inner = open_body_)
    return Annotate(Invalid("the body \"", inner->graph_->name, "\" of \"", graph_->name, "\" has not ended"),
                    kErrorHint, "end it with keel_body_end or discard it with keel_trace_free");
  is_open_ = false;
  captured_.clear();
  current_reads_.clear();
  if (links) *links = std::move(links_);
  if (!parent_) links_.clear();
  return absl::OkStatus();
}

}  // namespace keel
