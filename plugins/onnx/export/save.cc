// save.cc: see save.h.
#include "plugins/onnx/export/save.h"

#include <unordered_map>

namespace onnx_export {
namespace {

const Row* find_row(const std::string& op) {
  static const auto* rows = [] {
    auto* all = new std::unordered_map<std::string, const Row*>;
    for (Rows family :
         {elementwise_rows(), cast_rows(), shape_rows(), reduce_rows(), index_rows(), linear_rows(),
          pool_rows(), tree_rows(), control_rows(), composite_rows(), quantised_rows()})
      for (const Row& row : family) all->emplace(row.op, &row);
    return all;
  }();
  auto found = rows->find(op);
  return found == rows->end() ? nullptr : found->second;
}

// A node that only returns its operand.
bool is_noop(Call& c, const keel_node* view) {
  if (!(c.scope.host()->node_traits(view) & KEEL_TRAIT_NOOP_IF_SAME) || !c.has(0)) return false;
  return c.dtype() == c.out_dtype() && c.dims() == c.out_dims();
}

const char* reason(const std::string& op) {
  if (op == "read" || op.starts_with("assign"))
    return "the graph writes variables; ONNX has none, so it must only read them";
  if (op == "random") return "ONNX has no generator with Keel's numbers";
  if (op == "print" || op == "assert") return "ONNX has no such effect";
  return "";
}

void convert(Call& c, const keel_node* view) {
  try {
    if (is_noop(c, view)) return c.give(c.in(0));
    c.row = find_row(c.op);
    if (!c.row) throw Refused{reason(c.op)};
    c.row->convert(c);
  } catch (const Refused& refused) {
    c.scope.model().refuse(c.op, refused.why);
    while (c.given() < c.n_out) c.give("missing");  // the survey goes on
  }
}

void write(const keel_sink* sink, const Message& model, const ExternalData& data) {
  if (model.size() > kMaxBytes)
    onnx_import::refuse(KEEL_OOM, cat("the ONNX file would have ", model.size(),
                                      " bytes without large "
                                      "weights; the limit of its format is ",
                                      kMaxBytes));
  data.write(sink);
  for (const Message::Piece& piece : model.pieces())
    check(sink->write(sink, piece.bytes().data(), piece.bytes().size()));
}

}  // namespace

const char* composites() {
  static const std::string all = [] {
    std::string list;
    for (Rows rows : {composite_rows(), quantised_rows()})
      for (const Row& row : rows) list += cat(list.empty() ? "" : " ", row.op);
    return list;
  }();
  return all.c_str();
}

bool keeps(const keel_host* host, const keel_node* node) {
  const Row* row = find_row(host->node_op(node));
  return !row || !row->fits || row->fits(host, node);
}

// NOLINTNEXTLINE(misc-no-recursion): graphs nest at most 32 deep
void export_nodes(Scope& scope) {
  const uint32_t* nodes = nullptr;
  const uint32_t n = scope.host()->edit_nodes(scope.edit(), &nodes);
  for (uint32_t i = 0; i < n; i++) {
    const keel_node* view = scope.host()->edit_node(scope.edit(), nodes[i]);
    if (!view) throw Failure{KEEL_OOM, ""};
    Call call(scope, nodes[i], view);
    convert(call, view);
  }
}

void save(const keel_host* host, keel_edit* edit, const keel_sink* sink) {
  Model model;
  Graph graph;
  Scope scope(host, edit, model, graph, nullptr);
  for (uint32_t i = 0; i < sink->n_params; i++)
    scope.input(sink->params[i], model.unique(sink->param_names[i]));
  Names results;
  for (uint32_t i = 0; i < sink->n_results; i++) {
    results.push_back(model.unique(sink->result_names[i]));
    scope.want(sink->results[i], results.back());
  }
  export_nodes(scope);
  for (uint32_t i = 0; i < sink->n_results; i++) scope.output(sink->results[i], results[i]);
  model.check_refused();
  ExternalData data(sink->path);
  const uint64_t most = KEEL_HAS(sink, keel_sink, write_data) ? most_bytes() : UINT64_MAX;
  const Message made = model.take(graph, "main", most, data);
  write(sink, made, data);
}

}  // namespace onnx_export
