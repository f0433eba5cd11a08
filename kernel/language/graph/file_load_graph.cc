// file_load_graph.cc: graphs of a file: values, nodes, attributes and results, in file order.

#include <bit>

#include "kernel/language/graph/file_load.h"

namespace keel {

absl::Status Loader::FillList(size_t row, size_t total, size_t* used, size_t* begin, size_t* end) const {
  *begin = *used;
  auto stated = static_cast<uint64_t>(c_.attr_values[row]);
  if (stated < *begin || stated > total)
    return Invalid("attr_values[", row, "] is ", c_.attr_values[row], "; expected ", *begin, " to ", total);
  *end = *used = stated;
  return absl::OkStatus();
}

absl::Status Loader::FillAttr(size_t row, AttrValue* v) {
  int64_t number = c_.attr_values[row];
  size_t begin = 0, end = 0;
  v->kind = c_.attr_kinds[row];
  if (v->kind < KEEL_ATTR_BOOL || v->kind > KEEL_ATTR_GRAPHS)
    return Invalid("attr_kinds[", row, "] is ", v->kind, ", which is not a kind of attribute");
  if (v->kind == KEEL_ATTR_F64) {
    v->f = std::bit_cast<double>(number);
  } else if (v->kind == KEEL_ATTR_STR) {
    ASSIGN_OR_RETURN(v->s, String("attr_values", row, static_cast<uint64_t>(number)));
  } else if (v->kind == KEEL_ATTR_DIM) {
    ASSIGN_OR_RETURN(v->i, FileDim(number));
  } else if (v->kind == KEEL_ATTR_F64S) {
    RETURN_IF_ERROR(FillList(row, c_.attr_floats.size(), &floats_used_, &begin, &end));
    v->floats.assign(c_.attr_floats.begin() + begin, c_.attr_floats.begin() + end);
  } else if (v->kind == KEEL_ATTR_I64S || v->kind == KEEL_ATTR_DIMS || v->kind == KEEL_ATTR_GRAPHS) {
    RETURN_IF_ERROR(FillList(row, c_.attr_integers.size(), &integers_used_, &begin, &end));
    v->list.assign(c_.attr_integers.begin() + begin, c_.attr_integers.begin() + end);
    for (int64_t& d : v->list)
      if (v->kind == KEEL_ATTR_DIMS) {
        ASSIGN_OR_RETURN(d, FileDim(d));
      }
  } else {
    v->i = number;
  }
  return absl::OkStatus();
}

absl::StatusOr<Attrs> Loader::NodeAttrs(size_t node) {
  Attrs attrs(c_.node_attr_ends[node] - Begin(c_.node_attr_ends, node));
  for (size_t i = 0; i < attrs.size(); i++) {
    size_t row = Begin(c_.node_attr_ends, node) + i;
    ASSIGN_OR_RETURN(attrs[i].name, String("attr_names", row, c_.attr_names[row]));
    RETURN_IF_ERROR(FillAttr(row, &attrs[i].value));
  }
  return attrs;
}

// A parameter or a constant.
absl::Status Loader::LoadLeaf(Graph& g, size_t row) {
  bool param = c_.value_kinds[row] == static_cast<uint8_t>(ValueKind::kParam);
  uint32_t source = c_.value_sources[row];
  ValueId id = kNoValue;
  if (param) {
    ASSIGN_OR_RETURN(std::string_view name, String("value_names", row, c_.value_names[row]));
    if (source != g.params.size())
      return Invalid("value_sources[", row, "] is ", source, "; the next parameter is ", g.params.size());
    ASSIGN_OR_RETURN(id, g.AddParam(name, types_[c_.value_types[row]]));
  } else {
    ASSIGN_OR_RETURN(id, g.AddConstant(source));
    if (!(g.values[id].type == types_[c_.value_types[row]]))
      return Invalid("value ", row, " does not have the type of its constant");
  }
  if (id + 1 != g.values.size() || id != row - value_begin_)
    return Invalid("value ", row, " repeats value ", id);
  return absl::OkStatus();
}

// The next node; its results are the values from row *value on.
absl::Status Loader::LoadNode(Graph& g, size_t* value) {
  size_t row = node_++;
  RETURN_IF_ERROR(CheckIndex("node_ops", row, c_.node_ops[row], ops_.size()));
  names_.clear();
  declared_.clear();
  auto number = static_cast<uint32_t>(row - node_begin_);
  size_t v = *value;
  for (; v < value_end_ && c_.value_kinds[v] == static_cast<uint8_t>(ValueKind::kResult) &&
         c_.value_sources[v] == number;
       v++) {
    ASSIGN_OR_RETURN(std::string_view name, String("value_names", v, c_.value_names[v]));
    RETURN_IF_ERROR(CheckIndex("value_types", v, c_.value_types[v], types_.size()));
    names_.emplace_back(name);
    declared_.push_back(types_[c_.value_types[v]]);
  }
  Col<uint32_t> in = c_.operands.subspan(Begin(c_.node_operand_ends, row),
                                         c_.node_operand_ends[row] - Begin(c_.node_operand_ends, row));
  ASSIGN_OR_RETURN(Attrs attrs, NodeAttrs(row));
  if (!c_.node_devices.empty()) {
    ASSIGN_OR_RETURN(std::string_view device, String("node_devices", row, c_.node_devices[row]));
    ASSIGN_OR_RETURN(g.scope.device, g.module->DeviceScope(device));
  }
  if (!c_.node_files.empty()) {
    ASSIGN_OR_RETURN(std::string_view file, String("node_files", row, c_.node_files[row]));
    g.scope.source = g.module->Source(file, c_.node_lines[row]);
  }
  size_t results = names_.size();
  if (!c_.node_names.empty() && c_.node_names[row]) {
    ASSIGN_OR_RETURN(std::string_view name, String("node_names", row, c_.node_names[row]));
    if (results) return Invalid("node_names[", row, "] names a node with results");
    names_.emplace_back(name);
  }
  ASSIGN_OR_RETURN(NodeId id, g.AddNode(ops_[c_.node_ops[row]], {in.begin(), in.end()}, std::move(attrs),
                                        names_, declared_));
  g.scope = {};
  if (g.nodes[id].out.size() != results)
    return Invalid("node ", number, " has ", g.nodes[id].out.size(), " results, the file lists ", results);
  *value = v;
  return absl::OkStatus();
}

absl::Status Loader::LoadValues(Graph& g) {
  for (size_t v = value_begin_; v < value_end_;) {
    RETURN_IF_ERROR(CheckIndex("value_types", v, c_.value_types[v], types_.size()));
    uint8_t kind = c_.value_kinds[v];
    if (kind > static_cast<uint8_t>(ValueKind::kResult))
      return Invalid("value_kinds[", v, "] is ", kind, ", which is not a kind of value");
    if (kind != static_cast<uint8_t>(ValueKind::kResult)) {
      RETURN_IF_ERROR(LoadLeaf(g, v++));
      continue;
    }
    size_t want = node_begin_ + c_.value_sources[v];
    if (want < node_ || want >= node_end_)
      return Invalid("value_sources[", v, "] is node ", c_.value_sources[v],
                     ", which is out of order or does not exist");
    while (node_ <= want) RETURN_IF_ERROR(LoadNode(g, &v));  // nodes without results precede it
  }
  size_t none = value_end_;
  while (node_ < node_end_) RETURN_IF_ERROR(LoadNode(g, &none));
  return absl::OkStatus();
}

absl::Status Loader::Results(Graph& g, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++) {
    ASSIGN_OR_RETURN(std::string_view name, String("result_names", i, c_.result_names[i]));
    RETURN_IF_ERROR(CheckIndex("result_values", i, c_.result_values[i], g.values.size()));
    RETURN_IF_ERROR(g.AddResult(name, c_.result_values[i]));
  }
  return absl::OkStatus();
}

absl::Status Loader::Rules(Graph& g, size_t i) {
  if (c_.graph_rule_ends.empty()) return absl::OkStatus();
  for (size_t r = Begin(c_.graph_rule_ends, i); r < c_.graph_rule_ends[i]; r++) {
    ASSIGN_OR_RETURN(std::string_view text, String("graph_rules", r, c_.graph_rules[r]));
    RETURN_IF_ERROR(g.AddRule(text));
  }
  return absl::OkStatus();
}

absl::Status Loader::LoadGraph(size_t i) {
  ASSIGN_OR_RETURN(std::string_view name, String("graph_names", i, c_.graph_names[i]));
  ASSIGN_OR_RETURN(Graph * g, m_->AddGraph(name));
  node_ = node_begin_ = Begin(c_.graph_node_ends, i);
  node_end_ = c_.graph_node_ends[i];
  value_begin_ = Begin(c_.graph_value_ends, i);
  value_end_ = c_.graph_value_ends[i];
  if (node_end_ - node_begin_ > kMaxNodes)
    return Exhausted("graph '", name, "' has more than ", kMaxNodes, " nodes, the limit");
  g->Reserve(value_end_ - value_begin_, node_end_ - node_begin_);
  absl::Status s = LoadValues(*g);
  if (s.ok()) s = Rules(*g, i);
  if (s.ok()) s = Results(*g, Begin(c_.graph_result_ends, i), c_.graph_result_ends[i]);
  if (s.ok()) return s;
  return Reword(s, absl::StrCat("graph '", name.substr(0, 80), "': ", s.message()));
}

}  // namespace keel
