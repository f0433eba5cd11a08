// taped.cc: see taped.h.
#include "kernel/program/trace/taped.h"

#include <algorithm>
#include <cstring>

#include "kernel/language/dims/substitute.h"
#include "kernel/program/trace/linker.h"

namespace keel {
namespace {

// Rules see a variadic operand or result as one value: its bit extends to all further bits.
uint64_t Bits(const std::vector<bool>& read, bool variadic) {
  uint64_t bits = 0;
  for (size_t i = 0; i < read.size(); i++) {
    if (!read[i]) continue;
    bits |= variadic && i + 1 == read.size() ? ~(Taped::Bit(i) - 1) : Taped::Bit(i);
  }
  return bits;
}

template <typename Infos>
bool EndsVariadic(const Infos& infos) {
  return !infos.empty() && infos.back().variadic;
}

bool SameNode(const Node& a, const Node& b) {
  return a.op == b.op && a.in == b.in && a.out == b.out && a.origin.device == b.origin.device &&
         a.attrs == b.attrs;
}

// fed: constants whose elements are not compared.
bool SameGraph(const Graph& a, const Graph& b, std::span<const ValueId> fed) {
  if (a.values.size() != b.values.size() || a.params != b.params || a.results != b.results) return false;
  for (ValueId v = 0; v < a.values.size(); v++) {
    const Value &x = a.values[v], &y = b.values[v];
    if (x.kind != y.kind || x.index != y.index || x.result != y.result || x.type != y.type) return false;
    if (x.kind != ValueKind::kConstant || std::ranges::find(fed, v) != fed.end()) continue;
    const Constant &was = a.module->constants[x.index], &is = b.module->constants[y.index];
    if (was.bytes != is.bytes || std::memcmp(was.data, is.data, was.bytes) != 0) return false;
  }
  return std::ranges::equal(a.nodes, b.nodes, SameNode);
}

}  // namespace

std::shared_ptr<const Taped> Taped::Of(const OpDef& op, Attrs attrs) {
  auto taped = std::make_shared<Taped>();
  taped->op = &op;
  taped->attrs = std::move(attrs);
  Vjp how = VjpOf(op);
  taped->differentiable = how != Vjp::kNone;
  bool in = EndsVariadic(OpOperands(op)), out = EndsVariadic(OpResults(op));
  for (const VjpReads& r : VjpReadsOf(op))
    taped->reads.push_back({Bits(r.operands, in), Bits(r.results, out)});
  if (how == Vjp::kBody || taped->reads.empty()) taped->reads.assign(1, {~uint64_t{0}, ~uint64_t{0}});
  return taped;
}

std::shared_ptr<const Taped> Taped::Of(std::shared_ptr<const Module> owner, const Graph* graph,
                                       std::vector<ValueId> feeds, std::vector<ValueId> fetches) {
  auto taped = std::make_shared<Taped>();
  taped->owner = std::move(owner);
  taped->graph = graph;
  taped->feeds = std::move(feeds);
  taped->fetches = std::move(fetches);
  taped->reads.assign(1, {~uint64_t{0}, 0});
  return taped;
}

// Graphs with symbolic sizes never compare equal: equal handles may mean different expressions.
bool Taped::SameGraphs(const Taped& a, const Taped& b) {
  const Module &x = *a.owner, &y = *b.owner;
  if (a.feeds != b.feeds || a.fetches != b.fetches || x.devices != y.devices || x.dims.symbol_count() ||
      y.dims.symbol_count())
    return false;
  return std::ranges::equal(x.graphs, y.graphs, [&](const auto& g, const auto& h) {
    return SameGraph(*g, *h, g.get() == a.graph ? std::span(a.feeds) : std::span<const ValueId>());
  });
}

absl::Status Taped::CheckResultSizes() const {
  for (ValueId v : fetches)
    for (Dim d : graph->values[v].type.dims)
      if (graph->Makes(d))
        return Annotate(Unimplemented("the gradient of a call of graph '", graph->name, "', whose size ",
                                      graph->module->dims.Print(d), " is known in a run only"),
                        kErrorHint,
                        "differentiate in a traced function, or call the function without tracing it");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ValueId>> Taped::Write(Graph* to, std::vector<ValueId> operands) const {
  if (op) {
    ASSIGN_OR_RETURN(NodeId node, to->AddNode(op, std::move(operands), attrs));
    return to->nodes[node].out;
  }
  RETURN_IF_ERROR(CheckResultSizes());
  const DimTable& dims = graph->module->dims;
  std::vector<int64_t> sizes(dims.symbol_count(), -1);
  HashMap<size_t, Dim> born;  // by symbol: a size that a run finds is another one in each copy
  auto known_or_new = [&](std::string_view name) -> absl::StatusOr<Dim> {
    const size_t symbol = *dims.symbol_index(*dims.FindSymbol(name));
    if (sizes[symbol] >= 0) return sizes[symbol];
    if (auto found = born.find(symbol); found != born.end()) return found->second;
    ASSIGN_OR_RETURN(const Dim made, to->module->dims.NewSymbol());
    return born[symbol] = made;
  };
  auto size = [&](Dim dim) { return Substitute(dim, dims, to->module->dims, known_or_new); };
  Linker linker(*to->module, *graph->module, {size, {}, true});
  LinkedCopy copy(linker, *graph, *to, nullptr);
  for (size_t i = 0; i < feeds.size(); i++) {
    copy.map[feeds[i]] = operands[i];
    if (operands[i] == kNoValue) continue;
    const Dims &is = graph->values[feeds[i]].type.dims, &given = to->values[operands[i]].type.dims;
    for (size_t d = 0; d < is.size() && d < given.size(); d++)
      if (auto symbol = dims.symbol_index(is[d])) sizes[*symbol] = given[d];
  }
  RETURN_IF_ERROR(copy.CopyNodes(NeededNodes(*graph, feeds, fetches, {})));
  std::vector<ValueId> results;
  for (ValueId v : fetches) {
    ASSIGN_OR_RETURN(results.emplace_back(), copy.Find(v));
  }
  return results;
}

}  // namespace keel
