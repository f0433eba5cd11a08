// entry.cc: an entry of another module, written into a trace node by node, as if its program were called
// there. So what was saved is differentiated, trained and saved again as what is written in code.
//
// How to read it: Sizes says what the symbols of the entry's parameters are here; then Trace::WriteEntry.

#include "absl/strings/ascii.h"
#include "kernel/dims/rule.h"
#include "kernel/trace/linker.h"
#include "kernel/trace/trace.h"

namespace keel {
namespace {

using Hold = std::function<absl::Status(const std::string& rule)>;

class Sizes {
 public:
  // hold: is given what must hold here and only a run can tell.
  Sizes(const EntryWanted& wanted, DimTable& to, Hold hold)
      : wanted_(wanted),
        from_(wanted.from.dims),
        to_(to),
        hold_(std::move(hold)),
        here_(from_.symbol_count(), kOpen) {}

  // A parameter is given that type.
  absl::Status Bind(ValueId param, const TensorType& given) {
    const TensorType& type = wanted_.graph.values[param].type;
    if (given.dtype != type.dtype || given.dims.size() != type.dims.size()) return Wrong(param, given);
    for (size_t d = 0; d < type.dims.size(); d++)
      if (std::optional<size_t> symbol = from_.symbol_index(type.dims[d]))
        if (here_[*symbol] == kOpen) here_[*symbol] = given.dims[d];
    return absl::OkStatus();
  }
  // Then, where a symbol stands in expressions only: with a parameter of 2*n, which is given m, n is m//2.
  // Check says what must hold for that to be true.
  [[gnu::noinline]] absl::Status Solve(ValueId param, const TensorType& given) {
    const Dims& dims = wanted_.graph.values[param].type.dims;
    for (size_t d = 0; d < dims.size(); d++) {
      std::vector<size_t> open;
      from_.Symbols(dims[d], &open);
      std::erase_if(open, [this](size_t symbol) { return here_[symbol] != kOpen; });
      if (!open.empty() && std::count(open.begin(), open.end(), open[0]) == std::ssize(open))
        RETURN_IF_ERROR(SolveFor(&here_[open[0]], dims[d], given.dims[d]));
    }
    return absl::OkStatus();
  }
  // When all are bound: the parameter's dims here, of which those of what is given are known to be no others.
  absl::StatusOr<Dims> Check(ValueId param, const TensorType& given) {
    Dims dims = wanted_.graph.values[param].type.dims;
    for (size_t d = 0; d < dims.size(); d++) {
      ASSIGN_OR_RETURN(dims[d], Here(dims[d], from_));
      ASSIGN_OR_RETURN(bool holds, Holds({given.dims[d], dims[d], true}));
      if (!holds) return Wrong(param, given);
    }
    return dims;
  }
  absl::Status CheckRules() {
    for (const std::string& text : wanted_.graph.rules) {
      DimTable table(from_);
      ASSIGN_OR_RETURN(std::vector<DimRule> rules, ParseRule(text, table));
      for (DimRule rule : rules) {
        ASSIGN_OR_RETURN(rule.a, Here(rule.a, table));
        ASSIGN_OR_RETURN(rule.b, Here(rule.b, table));
        ASSIGN_OR_RETURN(bool holds, Holds(rule));
        if (!holds) return Invalid("entry \"", wanted_.name, "\": \"", text, "\" does not hold; ", Bound());
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<Dim> Here(Dim dim) const { return Here(dim, from_); }

 private:
  static constexpr Dim kOpen = INT64_MAX;  // nothing says yet how large it is
  // A dim is a line in that symbol, with a value at 0 and at 1.
  absl::Status SolveFor(Dim* symbol, Dim dim, Dim given) {
    Dim at[2];
    for (Dim i : {0, 1}) {
      *symbol = i;
      ASSIGN_OR_RETURN(at[i], Here(dim));
    }
    *symbol = kOpen;
    if (IsSymbolic(at[0]) || IsSymbolic(at[1]) || at[0] >= at[1]) return absl::OkStatus();
    std::string text = absl::StrCat("max((", to_.Print(given), "-", at[0]);  // sizes are not negative
    absl::StrAppend(&text, ")//", at[1] - at[0], ", 0)");
    ASSIGN_OR_RETURN(*symbol, to_.Parse(text, true));
    return absl::OkStatus();
  }
  std::string Bound() const {
    std::string out;
    for (size_t i = 0; i < here_.size(); i++)
      if (here_[i] != kOpen)
        absl::StrAppend(&out, out.empty() ? "" : ", ", from_.symbol_name(i), " is ", to_.Print(here_[i]));
    return out;
  }
  // By its text, with what is bound in place of symbols; what stands before a bracket is max or min.
  absl::StatusOr<Dim> Here(Dim dim, const DimTable& of) const {
    if (!IsSymbolic(dim)) return dim;
    std::string text = of.Print(dim), out;
    auto part_of_name = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && part_of_name(text[end])) end++;
      std::string word = text.substr(at, std::max<size_t>(end - at, 1));
      bool symbol = end > at && !absl::ascii_isdigit(static_cast<unsigned char>(word[0])) &&
                    (end == text.size() || text[end] != '(');
      if (symbol) {
        std::optional<Dim> known = from_.FindSymbol(word);
        Dim found = known ? here_[*from_.symbol_index(*known)] : kOpen;
        if (found == kOpen)
          return Unimplemented("entry \"", wanted_.name, "\": no parameter says how large ", word, " is");
        absl::StrAppend(&out, "(", to_.Print(found), ")");
      } else {
        out += word;
      }
      at += word.size();
    }
    return to_.Parse(out, true);
  }
  // false: never.
  absl::StatusOr<bool> Holds(const DimRule& rule) {
    if (std::optional<bool> decided = DecidedForAll(rule, to_)) return *decided;
    RETURN_IF_ERROR(hold_(PrintRule(rule, to_)));
    return true;
  }
  absl::Status Wrong(ValueId param, const TensorType& given) const {
    return Invalid("entry \"", wanted_.name, "\": ", wanted_.graph.ValueName(param), " is ",
                   Print(given, to_), ", wanted ", Print(wanted_.graph.values[param].type, from_));
  }

  const EntryWanted& wanted_;
  const DimTable& from_;
  DimTable& to_;
  Hold hold_;
  std::vector<Dim> here_;  // of each symbol
};

}  // namespace

// Checked by each run: a rule of the program that all this is part of.
absl::Status Trace::AddRuleOfSizes(const std::string& rule) { return Program().graph_->AddRule(rule); }

// What only a run can tell is written down: bodies want the very dims of their parameters.
absl::StatusOr<ValueId> Trace::Reshaped(ValueId value, const Dims& dims) {
  ASSIGN_OR_RETURN(const OpDef* reshape, module_->catalogue->Find("reshape", 0));
  AttrValue to;
  to.kind = KEEL_ATTR_DIMS;
  to.list.assign(dims.begin(), dims.end());
  graph_->scope = {0, source_};
  ASSIGN_OR_RETURN(NodeId node, Add(*reshape, {value}, {{"to", to}}));
  return graph_->nodes[node].out[0];
}

absl::Status Trace::WriteEntry(const EntryWanted& wanted, std::vector<ArrayRef>* out) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("write an entry"));
  const Graph& source = wanted.graph;
  if (wanted.from.catalogue != module_->catalogue || &wanted.from == module_.get())
    return Invalid("entry \"", wanted.name, "\" is of ",
                   &wanted.from == module_.get() ? "the module that is being written" : "another context");
  if (wanted.in.size() != source.params.size())
    return Invalid("entry \"", wanted.name, "\" takes ", source.params.size(), " arrays, got ",
                   wanted.in.size());
  std::vector<ValueId> at(source.values.size(), kNoValue);
  Sizes sizes(wanted, module_->dims, [&](const std::string& rule) { return AddRuleOfSizes(rule); });
  for (size_t i = 0; i < wanted.in.size(); i++) {
    ASSIGN_OR_RETURN(at[source.params[i]], ValueFor(wanted.in[i]));
    RETURN_IF_ERROR(sizes.Bind(source.params[i], graph_->values[at[source.params[i]]].type));
  }
  for (ValueId param : source.params) RETURN_IF_ERROR(sizes.Solve(param, graph_->values[at[param]].type));
  for (ValueId param : source.params) {
    TensorType type = graph_->values[at[param]].type;
    ASSIGN_OR_RETURN(Dims dims, sizes.Check(param, type));
    if (type.dims != dims) {
      ASSIGN_OR_RETURN(at[param], Reshaped(at[param], dims));
    }
  }
  RETURN_IF_ERROR(sizes.CheckRules());
  auto variable = [&](const ModuleVariable& v) { return NumberOf(v.storage, v.name); };
  Linker linker(*module_, wanted.from, {[&](Dim d) { return sizes.Here(d); }, variable});
  size_t graphs = module_->graphs.size();
  absl::Status status = WriteNodes(wanted, linker, &at);
  if (!status.ok()) DropUnusedGraphs(module_.get(), graphs, graph_);
  RETURN_IF_ERROR(status);
  for (ValueId v : source.results) {
    ASSIGN_OR_RETURN(out->emplace_back(), Symbol(at[v]));
  }
  return absl::OkStatus();
}

absl::Status Trace::WriteNodes(const EntryWanted& wanted, Linker& linker, std::vector<ValueId>* at) {
  const Graph& source = wanted.graph;
  for (ValueId v = 0; v < source.values.size(); v++) {
    if (source.values[v].kind != ValueKind::kConstant) continue;
    ASSIGN_OR_RETURN(uint32_t number, linker.ConstantFor(source.values[v].index, graph_));
    ASSIGN_OR_RETURN((*at)[v], graph_->AddConstant(number));
  }
  for (const Node& node : source.nodes) {
    if (OpName(*node.op) == "read") {
      const ModuleVariable& read = wanted.from.variables[static_cast<size_t>(node.attrs[0].value.i)];
      RETURN_IF_ERROR(NumberOf(read.storage, read.name).status());
      ASSIGN_OR_RETURN(ArrayRef value, Read(read.storage));
      if (wanted.saw) wanted.saw(read.storage, value.get());
      (*at)[node.out[0]] = ValueOf(value.get());
      continue;
    }
    std::vector<ValueId> in;
    for (ValueId v : node.in) in.push_back(v == kNoValue ? v : (*at)[v]);
    std::vector<TensorType> types;
    for (ValueId v : node.out) {
      ASSIGN_OR_RETURN(types.emplace_back(), linker.TypeOf(source.values[v].type));
    }
    ASSIGN_OR_RETURN(Attrs attrs, linker.AttrsOf(node));
    ASSIGN_OR_RETURN(graph_->scope, linker.ScopeOf(node));
    if (!graph_->scope.source) graph_->scope.source = source_;
    ASSIGN_OR_RETURN(NodeId made, Add(*node.op, std::move(in), attrs, types));
    for (size_t i = 0; i < node.out.size(); i++) (*at)[node.out[i]] = graph_->nodes[made].out[i];
  }
  return absl::OkStatus();
}

}  // namespace keel
