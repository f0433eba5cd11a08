// entry.cc: copies an entry of another module into a trace, node by node, so that a loaded model can be
// differentiated, trained and saved like traced code.
//
// How to read it: EntrySizes maps the symbols of the entry's parameters to sizes of the trace; then
// Trace::WriteEntry.

#include "kernel/language/dims/rule.h"
#include "kernel/language/dims/substitute.h"
#include "kernel/language/graph/graph_sink.h"
#include "kernel/program/trace/linker.h"
#include "kernel/program/trace/tape.h"

namespace keel {
namespace {

using AddRule = std::function<absl::Status(const std::string& rule)>;

class EntrySizes {
 public:
  // add_rule: adds a rule that only a run can check.
  EntrySizes(const EntryRequest& request, DimTable& to, AddRule add_rule)
      : request_(request),
        from_(request.from.dims),
        to_(to),
        add_rule_(std::move(add_rule)),
        bound_(from_.symbol_count(), kUnbound) {}

  // Binds symbols that are whole dims of the parameter.
  absl::Status Bind(ValueId param, const TensorType& given) {
    const TensorType& type = request_.graph.values[param].type;
    if (given.dtype != type.dtype || given.dims.size() != type.dims.size()) return Wrong(param, given);
    for (size_t d = 0; d < type.dims.size(); d++)
      if (std::optional<size_t> symbol = from_.symbol_index(type.dims[d]))
        if (bound_[*symbol] == kUnbound) bound_[*symbol] = given.dims[d];
    return absl::OkStatus();
  }
  // Then binds symbols that occur in expressions only: for a parameter of size 2*n and an operand of size m,
  // n is m//2. Check adds the rule that makes this exact.
  [[gnu::noinline]] absl::Status Solve(ValueId param, const TensorType& given) {
    const Dims& dims = request_.graph.values[param].type.dims;
    for (size_t d = 0; d < dims.size(); d++) {
      std::vector<size_t> open;
      from_.Symbols(dims[d], &open);
      std::erase_if(open, [this](size_t symbol) { return bound_[symbol] != kUnbound; });
      if (!open.empty() && std::count(open.begin(), open.end(), open[0]) == std::ssize(open))
        RETURN_IF_ERROR(SolveFor(&bound_[open[0]], dims[d], given.dims[d]));
    }
    return absl::OkStatus();
  }
  // After binding: the dims of the parameter in this trace; an error if they cannot equal the operand's dims.
  absl::StatusOr<Dims> Check(ValueId param, const TensorType& given) {
    Dims dims = request_.graph.values[param].type.dims;
    for (size_t d = 0; d < dims.size(); d++) {
      ASSIGN_OR_RETURN(dims[d], MapDim(dims[d], from_));
      ASSIGN_OR_RETURN(bool holds, Holds({given.dims[d], dims[d], true}));
      if (!holds) return Wrong(param, given);
    }
    return dims;
  }
  absl::Status CheckRules() {
    for (const std::string& text : request_.graph.rules) {
      DimTable table(from_);
      ASSIGN_OR_RETURN(std::vector<DimRule> rules, ParseRule(text, table));
      for (DimRule rule : rules) {
        ASSIGN_OR_RETURN(rule.a, MapDim(rule.a, table));
        ASSIGN_OR_RETURN(rule.b, MapDim(rule.b, table));
        ASSIGN_OR_RETURN(bool holds, Holds(rule));
        if (!holds)
          return Invalid("entry \"", request_.name, "\": \"", text, "\" does not hold; ", PrintBound());
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<Dim> MapDim(Dim dim) const { return MapDim(dim, from_); }

 private:
  static constexpr Dim kUnbound = INT64_MAX;  // no parameter determines it yet
  // A dim is linear in the symbol: its values at 0 and 1 determine offset and slope.
  absl::Status SolveFor(Dim* symbol, Dim dim, Dim given) {
    Dim at[2];
    for (Dim i : {0, 1}) {
      *symbol = i;
      ASSIGN_OR_RETURN(at[i], MapDim(dim));
    }
    *symbol = kUnbound;
    if (IsSymbolic(at[0]) || IsSymbolic(at[1]) || at[0] >= at[1]) return absl::OkStatus();
    std::string text = absl::StrCat("max((", to_.Print(given), "-", at[0]);  // sizes are not negative
    absl::StrAppend(&text, ")//", at[1] - at[0], ", 0)");
    ASSIGN_OR_RETURN(*symbol, to_.Parse(text, true));
    return absl::OkStatus();
  }
  std::string PrintBound() const {
    std::string out;
    for (size_t i = 0; i < bound_.size(); i++)
      if (bound_[i] != kUnbound)
        absl::StrAppend(&out, out.empty() ? "" : ", ", from_.symbol_name(i), " is ", to_.Print(bound_[i]));
    return out;
  }
  // With the bound symbols in it.
  absl::StatusOr<Dim> MapDim(Dim dim, const DimTable& of) const {
    return Substitute(dim, of, to_, [&](std::string_view name) -> absl::StatusOr<Dim> {
      std::optional<Dim> known = from_.FindSymbol(name);
      Dim found = known ? bound_[*from_.symbol_index(*known)] : kUnbound;
      if (found != kUnbound) return found;
      return Unimplemented("entry \"", request_.name, "\": no parameter determines the size ", name);
    });
  }
  // false: the rule never holds. An undecided rule is left to each run.
  absl::StatusOr<bool> Holds(const DimRule& rule) {
    if (std::optional<bool> decided = DecidedForAll(rule, to_)) return *decided;
    RETURN_IF_ERROR(add_rule_(PrintRule(rule, to_)));
    return true;
  }
  absl::Status Wrong(ValueId param, const TensorType& given) const {
    return Invalid("entry \"", request_.name, "\": ", request_.graph.ValueName(param), " is ",
                   Print(given, to_), ", expected ", Print(request_.graph.values[param].type, from_));
  }

  const EntryRequest& request_;
  const DimTable& from_;
  DimTable& to_;
  AddRule add_rule_;
  std::vector<Dim> bound_;  // by symbol
};

}  // namespace

// Each run checks the rule, so it belongs to the outermost trace.
absl::Status Trace::AddRuleOfSizes(const std::string& rule) { return Program().graph_->AddRule(rule); }

// Reads of variables become reads of the trace.
class Trace::EntryCopy : public LinkedCopy {
 public:
  EntryCopy(Trace& trace, Linker& linker, const EntryRequest& request, std::vector<ValueId> map)
      : LinkedCopy(linker, request.graph, *trace.graph_, trace.graph_, std::move(map)),
        trace_(trace),
        request_(request) {}

  absl::Status Run() {
    for (NodeId n = 0; n < from_.nodes.size(); n++)
      RETURN_IF_ERROR(OpName(*from_.nodes[n].op) == "read" ? CopyRead(from_.nodes[n]) : CopyNode(n));
    return absl::OkStatus();
  }

 private:
  absl::Status CopyRead(const Node& node) {
    const ModuleVariable& read = request_.from.variables[static_cast<size_t>(node.attrs[0].value.i)];
    RETURN_IF_ERROR(trace_.NumberOf(read.storage, read.name).status());
    ASSIGN_OR_RETURN(ArrayRef value, trace_.Read(read.storage));
    if (request_.tape) request_.tape->RecordRead(read.storage, value.get());
    map[node.out[0]] = ValueOf(value.get());
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<ValueId>> Add(Draft draft) override {
    to_.scope = draft.origin;
    if (!to_.scope.source) to_.scope.source = trace_.source_;
    ASSIGN_OR_RETURN(NodeId made, trace_.Add(*draft.op, std::move(draft.in), draft.attrs, draft.types));
    return to_.nodes[made].out;
  }

  Trace& trace_;
  const EntryRequest& request_;
};

absl::StatusOr<Results> Trace::WriteEntry(const EntryRequest& request) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("write an entry"));
  const Graph& source = request.graph;
  if (request.from.catalogue != module_->catalogue || &request.from == module_.get())
    return Invalid("entry \"", request.name, "\" is part of ",
                   &request.from == module_.get() ? "the module being traced" : "another context");
  if (request.in.size() != source.params.size())
    return Invalid("entry \"", request.name, "\" takes ", source.params.size(), " arrays, got ",
                   request.in.size());
  std::vector<ValueId> at(source.values.size(), kNoValue);
  EntrySizes sizes(request, module_->dims, [&](const std::string& rule) { return AddRuleOfSizes(rule); });
  for (size_t i = 0; i < request.in.size(); i++) {
    ASSIGN_OR_RETURN(at[source.params[i]], ValueFor(request.in[i]));
    RETURN_IF_ERROR(sizes.Bind(source.params[i], graph_->values[at[source.params[i]]].type));
  }
  for (ValueId param : source.params) RETURN_IF_ERROR(sizes.Solve(param, graph_->values[at[param]].type));
  for (ValueId param : source.params) {
    TensorType type = graph_->values[at[param]].type;
    ASSIGN_OR_RETURN(Dims dims, sizes.Check(param, type));
    if (type.dims == dims) continue;
    // Only a run can check the equality; bodies need identical dims.
    ASSIGN_OR_RETURN(std::vector<ValueId> same, Add("reshape", {at[param]}, DimsAttrs("to", dims)));
    at[param] = same[0];
  }
  RETURN_IF_ERROR(sizes.CheckRules());
  auto variable = [&](const ModuleVariable& v) { return NumberOf(v.storage, v.name); };
  Linker linker(*module_, request.from, {[&](Dim d) { return sizes.MapDim(d); }, variable});
  size_t graphs = module_->graphs.size();
  EntryCopy copy(*this, linker, request, std::move(at));
  absl::Status status = copy.Run();
  if (!status.ok()) DropUnusedGraphs(module_.get(), graphs, graph_);
  RETURN_IF_ERROR(status);
  std::vector<ValueId> results;
  for (ValueId v : source.results) {
    ASSIGN_OR_RETURN(results.emplace_back(), copy.Find(v));
  }
  return Symbols(results);
}

}  // namespace keel
