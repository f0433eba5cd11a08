// control.cc: cond and switch as If, while as Loop, scan as Scan or Loop. Graphs of ONNX see the values
// around them, so operands that do not change need no inputs.
#include "plugins/onnx/export/save.h"

namespace onnx_export {
namespace {

struct Body {
  keel_edit* edit = nullptr;
  const keel_value *params = nullptr, *results = nullptr;
  Body(Call& c, int64_t graph) {
    check(c.scope.host()->edit_body(c.scope.edit(), graph, &edit, &params, &results));
  }
};

Scope inside(Call& c, const Body& body, Graph& graph, const Scope& outer) {
  return {c.scope.host(), body.edit, c.scope.model(), graph, &outer};
}

// The body's nodes with these operands, in the graph around; its results.
// NOLINTNEXTLINE(misc-no-recursion)
Names inlined(Call& c, int64_t graph, Scope& at, const Names& in, size_t n_results) {
  const Body body(c, graph);
  Scope scope = inside(c, body, at.graph(), at);
  for (size_t i = 0; i < in.size(); i++) scope.set(body.params[i], in[i]);
  export_nodes(scope);
  Names results;
  for (size_t i = 0; i < n_results; i++) results.push_back(scope.name(body.results[i]));
  return results;
}

// Outputs of a graph within the model, which need names of their own.
void add_outputs(Scope& scope, const Body& body, size_t n) {
  for (size_t i = 0; i < n; i++) scope.output(body.results[i], scope.model().unique("result"));
}

// The graph of a branch, which takes operands from `first` on.
// NOLINTNEXTLINE(misc-no-recursion)
Message branch(Call& c, int64_t graph, uint32_t first, const Scope& outer) {
  const Body body(c, graph);
  Graph made;
  Scope scope = inside(c, body, made, outer);
  for (uint32_t i = first; i < c.n_in; i++) scope.set(body.params[i - first], c.in(i));
  export_nodes(scope);
  add_outputs(scope, body, c.n_out);
  return made.take(c.scope.model().unique("branch"));
}

// NOLINTNEXTLINE(misc-no-recursion)
void cond(Call& c) {
  NodeAttrs attrs = NodeAttrs()
                        .graph("then_branch", branch(c, c.number("then"), 1, c.scope))
                        .graph("else_branch", branch(c, c.number("else"), 1, c.scope));
  for (const std::string& each : c.scope.add_many("If", {c.in(0)}, std::move(attrs), c.n_out)) c.give(each);
}

// The results of branch k or a later one; the last one needs no test.
// NOLINTNEXTLINE(misc-no-recursion)
Names chosen(Call& c, const Dims& branches, size_t k, Scope& at) {
  if (k + 1 == branches.size()) {
    Names in;
    for (uint32_t i = 1; i < c.n_in; i++) in.push_back(c.in(i));
    return inlined(c, branches[k], at, in, c.n_out);
  }
  Graph rest;
  Scope other(c.scope.host(), c.scope.edit(), c.scope.model(), rest, &at);
  const Names results = chosen(c, branches, k + 1, other);
  for (uint32_t i = 0; i < c.n_out; i++) {
    const std::string name = c.scope.model().unique("result");
    rest.add("Identity", {results[i]}, {name});
    rest.outputs.push_back(value_info(name, c.out_dtype(i), c.scope.labels(c.out_dims(i))));
  }
  const std::string here = at.add("Equal", {c.in(0), c.scalar(c.dtype(0), static_cast<double>(k))});
  NodeAttrs attrs = NodeAttrs()
                        .graph("then_branch", branch(c, branches[k], 1, at))
                        .graph("else_branch", rest.take(c.scope.model().unique("branch")));
  return at.add_many("If", {here}, std::move(attrs), c.n_out);
}

// NOLINTNEXTLINE(misc-no-recursion)
void choose(Call& c) {
  for (const std::string& each : chosen(c, c.list("branches"), 0, c.scope)) c.give(each);
}

// Inputs of a Loop's graph before the carried values.
struct Counter {
  std::string iteration, go;
};
Counter add_counter(Call& c, Graph& graph) {
  Counter made = {c.scope.model().unique("iteration"), c.scope.model().unique("go")};
  graph.inputs.push_back(value_info(made.iteration, KEEL_I64, {}));
  graph.inputs.push_back(value_info(made.go, KEEL_BOOL, {}));
  return made;
}

void add_condition(Call& c, Graph& graph, const std::string& go) {
  const std::string name = c.scope.model().unique("more");
  graph.add("Identity", {go}, {name});
  graph.outputs.push_back(value_info(name, KEEL_BOOL, {}));
}

// ONNX tests after each turn; so the first test is before the Loop.
// NOLINTNEXTLINE(misc-no-recursion)
void loop(Call& c) {
  const auto carry = static_cast<uint32_t>(c.number("carry"));
  const Body body(c, c.number("body"));
  Graph graph;
  Scope scope = inside(c, body, graph, c.scope);
  add_counter(c, graph);
  Names in, next, outer = {"", ""};
  for (uint32_t i = 0; i < c.n_in; i++) {
    in.push_back(c.in(i));
    if (i < carry)
      scope.input(body.params[i], c.scope.model().unique("carried"));
    else
      scope.set(body.params[i], in[i]);
  }
  export_nodes(scope);
  for (uint32_t i = 0; i < c.n_in; i++) next.push_back(i < carry ? scope.name(body.results[i]) : in[i]);
  add_condition(c, graph, inlined(c, c.number("test"), scope, next, 1)[0]);
  add_outputs(scope, body, carry);
  outer[1] = inlined(c, c.number("test"), c.scope, in, 1)[0];
  outer.insert(outer.end(), in.begin(), in.begin() + carry);
  NodeAttrs attrs = NodeAttrs().graph("body", graph.take(c.scope.model().unique("body")));
  for (const std::string& each : c.scope.add_many("Loop", outer, std::move(attrs), carry)) c.give(each);
}

// The stacked result i, of `count` entries, with zeros up to `length` of them. Of no entries, runtimes do not
// know the symbolic dims of one.
std::string filled_up(Call& c, uint32_t i, const std::string& x, const std::string& length,
                      const std::string& count) {
  Dims entry = c.out_dims(i);
  entry.erase(entry.begin());
  const std::string shape =
      entry.empty() ? count : c.add("Concat", {count, c.scope.shape(entry)}, NodeAttrs().i("axis", 0));
  const std::string stacked = c.add("Reshape", {x, shape}, NodeAttrs().i("allowzero", 1));
  const Ints zeros(entry.size(), 0);
  Names pads = {c.ints(Ints(entry.size() + 1, 0)), c.add("Sub", {length, count})};
  if (!zeros.empty()) pads.push_back(c.ints(zeros));
  return c.add("Pad",
               {stacked, c.add("Concat", pads, NodeAttrs().i("axis", 0)), c.scalar(c.out_dtype(i), 0)});
}

// A scan as a Loop that reads its entries by index. From last to first, its stacked results are turned; those
// of entries beyond the count are zeros. `first`: the first scanned operand.
// NOLINTNEXTLINE(misc-no-recursion)
void counted_loop(Call& c, uint32_t carry, uint32_t first) {
  const bool counted = c.flag("counted"), reverse = c.flag("reverse");
  const uint32_t end = c.n_in - counted;
  const std::string length = c.scope.size(first < end ? c.dims(first)[0] : c.number("length"));
  const std::string count = counted ? c.add("Reshape", {c.in(end), c.ints({1})}) : length;
  const Body body(c, c.number("body"));
  Graph graph;
  Scope scope = inside(c, body, graph, c.scope);
  const Counter counter = add_counter(c, graph);
  Names outer = {c.add("Squeeze", {count, c.ints({0})}), c.scalar(KEEL_BOOL, 1)};
  std::string entry = counter.iteration;
  if (reverse && first < end)
    entry = scope.add("Sub", {c.add("Sub", {outer[0], c.scalar(KEEL_I64, 1)}), counter.iteration});
  for (uint32_t i = 0; i < end; i++) {
    if (i >= first) {
      scope.set(body.params[i], scope.add("Gather", {c.in(i), entry}, NodeAttrs().i("axis", 0)));
    } else if (i >= carry) {
      scope.set(body.params[i], c.in(i));
    } else {
      outer.push_back(c.in(i));
      scope.input(body.params[i], c.scope.model().unique("carried"));
    }
  }
  export_nodes(scope);
  add_condition(c, graph, counter.go);
  add_outputs(scope, body, c.n_out);
  NodeAttrs attrs = NodeAttrs().graph("body", graph.take(c.scope.model().unique("body")));
  Names out = c.scope.add_many("Loop", outer, std::move(attrs), c.n_out);
  for (uint32_t i = carry; i < c.n_out; i++) {
    if (reverse)
      out[i] = c.add("Slice", {out[i], c.ints({-1}), c.ints({INT64_MIN}), c.ints({0}), c.ints({-1})});
    if (!counted) continue;
    out[i] = filled_up(c, i, out[i], length, count);
  }
  for (const std::string& each : out) c.give(each);
}

// NOLINTNEXTLINE(misc-no-recursion)
void scan(Call& c) {
  const auto carry = static_cast<uint32_t>(c.number("carry"));
  const uint32_t first = carry + static_cast<uint32_t>(c.number("invariants"));
  if (first >= c.n_in || c.flag("counted")) return counted_loop(c, carry, first);
  const Body body(c, c.number("body"));
  Graph graph;
  Scope scope = inside(c, body, graph, c.scope);
  Names outer;
  for (uint32_t i = 0; i < c.n_in; i++) {
    if (i >= carry && i < first) {
      scope.set(body.params[i], c.in(i));
      continue;
    }
    outer.push_back(c.in(i));
    scope.input(body.params[i], c.scope.model().unique(i < carry ? "carried" : "entry"));
  }
  export_nodes(scope);
  add_outputs(scope, body, c.n_out);
  NodeAttrs attrs = NodeAttrs()
                        .i("num_scan_inputs", c.n_in - first)
                        .ints("scan_input_directions", Ints(c.n_in - first, c.flag("reverse")))
                        .ints("scan_output_directions", Ints(c.n_out - carry, c.flag("reverse")))
                        .graph("body", graph.take(c.scope.model().unique("body")));
  for (const std::string& each : c.scope.add_many("Scan", outer, std::move(attrs), c.n_out)) c.give(each);
}

constexpr Row kRows[] = {{"cond", cond}, {"switch", choose}, {"while", loop}, {"scan", scan}};

}  // namespace

Rows control_rows() { return kRows; }

}  // namespace onnx_export
