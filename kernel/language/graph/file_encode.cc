// file_encode.cc: a module's structure as columns (abi/graph.fbs).

#include <bit>
#include <numeric>

#include "graph_generated.h"
#include "kernel/base/align.h"
#include "kernel/base/hash.h"
#include "kernel/language/graph/file_format.h"

namespace keel {
namespace {

using Column = std::vector<uint32_t>;

uint32_t Size32(size_t n) { return static_cast<uint32_t>(n); }

class Encoder {
 public:
  explicit Encoder(const Module& m) : m_(m) { String(""); }
  absl::StatusOr<EncodedModule> Run();

 private:
  uint32_t String(std::string_view s);
  int64_t FileDim(Dim d);
  uint32_t Type(const TensorType& type);
  uint32_t Op(const OpDef* op);
  void Constants(EncodedModule* out);
  absl::Status Variables(EncodedModule* out);
  void AddGraph(const Graph& g);
  void AddNode(const Node& n);
  int64_t AttrNumber(const AttrValue& v);
  void AddCase(const Case& c);
  uint64_t ColumnBytes() const;
  void Build(std::string* out);

  const Module& m_;
  std::string text_;
  Column text_ends_, symbols_, expressions_, metadata_;
  std::vector<uint64_t> segment_sizes_, constant_offsets_;
  std::vector<uint8_t> type_dtypes_, value_kinds_, attr_kinds_;
  Column file_values_;  // value id -> index in the file, for the current graph
  Column file_graphs_;  // graph index -> index in the file, where callees come first
  Column type_ends_, constant_names_, constant_types_, op_names_, op_versions_;
  std::vector<int64_t> type_dims_, attr_values_, attr_integers_;
  Column graph_rule_ends_, graph_rules_, graph_names_, graph_value_ends_, graph_node_ends_,
      graph_result_ends_;
  Column value_sources_, value_names_, value_types_, node_ops_, node_operand_ends_, node_attr_ends_,
      operands_;
  Column attr_names_, result_values_, result_names_, entry_names_, entry_graphs_;
  Column case_names_, case_entries_, case_input_ends_, case_expected_ends_, case_inputs_, case_expected_;
  Column node_devices_, node_files_, node_lines_, node_names_, variable_names_, variable_types_;
  std::vector<uint64_t> variable_offsets_;
  bool named_nodes_ = false;
  std::vector<double> attr_floats_, case_rtols_, case_atols_;
  HashMap<std::string, uint32_t> string_ids_;
  HashMap<Dim, int64_t> dim_ids_;
  HashMap<std::pair<uint8_t, std::vector<int64_t>>, uint32_t> type_ids_;
  HashMap<const OpDef*, uint32_t> op_ids_;
};

uint32_t Encoder::String(std::string_view s) {
  auto [it, added] = string_ids_.emplace(std::string(s), Size32(text_ends_.size()));
  if (added) {
    text_ += s;
    text_ends_.push_back(Size32(text_.size()));
  }
  return it->second;
}

int64_t Encoder::FileDim(Dim d) {
  if (!IsSymbolic(d)) return d;
  auto [it, added] = dim_ids_.emplace(d, KEEL_DIM_HANDLES - 1 - static_cast<int64_t>(expressions_.size()));
  if (added) expressions_.push_back(String(m_.dims.Print(d)));
  return it->second;
}

uint32_t Encoder::Type(const TensorType& type) {
  std::vector<int64_t> dims;
  for (Dim d : type.dims) dims.push_back(FileDim(d));
  auto dtype = static_cast<uint8_t>(type.dtype);
  auto [it, added] = type_ids_.emplace(std::pair(dtype, dims), Size32(type_ends_.size()));
  if (added) {
    type_dtypes_.push_back(dtype);
    type_dims_.insert(type_dims_.end(), dims.begin(), dims.end());
    type_ends_.push_back(Size32(type_dims_.size()));
  }
  return it->second;
}

uint32_t Encoder::Op(const OpDef* op) {
  auto [it, added] = op_ids_.emplace(op, Size32(op_names_.size()));
  if (added) {
    op_names_.push_back(String(OpName(*op)));
    op_versions_.push_back(OpVersion(*op));
  }
  return it->second;
}

void Encoder::Constants(EncodedModule* out) {
  uint64_t end = 0;
  for (const Constant& c : m_.constants) {
    uint64_t begin = RoundUp(end, kConstantAlign);
    constant_names_.push_back(String(c.name));
    constant_types_.push_back(Type(c.type));
    constant_offsets_.push_back(begin);
    end = begin + c.bytes;
  }
  out->data_offsets = constant_offsets_;
  out->segment_size = end;
}

// After the constants, with their current values.
absl::Status Encoder::Variables(EncodedModule* out) {
  uint64_t end = out->segment_size;
  for (const ModuleVariable& v : m_.variables) {
    ASSIGN_OR_RETURN(out->variables.emplace_back(), v.storage->ReadOnHost());
    variable_names_.push_back(String(v.name));
    variable_types_.push_back(Type(v.type));
    variable_offsets_.push_back(RoundUp(end, kConstantAlign));
    end = variable_offsets_.back() + out->variables.back()->bytes();
  }
  if (!m_.constants.empty() || !m_.variables.empty()) segment_sizes_.push_back(end);
  out->variable_offsets = variable_offsets_;
  out->segment_size = end;
  return absl::OkStatus();
}

int64_t Encoder::AttrNumber(const AttrValue& v) {
  bool dims = v.kind == KEEL_ATTR_DIMS;
  if (v.kind == KEEL_ATTR_F64) return std::bit_cast<int64_t>(v.f);
  if (v.kind == KEEL_ATTR_STR) return String(v.s);
  if (v.kind == KEEL_ATTR_DIM) return FileDim(v.i);
  if (v.kind == KEEL_ATTR_GRAPH) return file_graphs_[static_cast<size_t>(v.i)];
  if (v.kind == KEEL_ATTR_GRAPHS) {
    for (int64_t i : v.list) attr_integers_.push_back(file_graphs_[static_cast<size_t>(i)]);
    return static_cast<int64_t>(attr_integers_.size());
  }
  if (dims || v.kind == KEEL_ATTR_I64S) {
    for (int64_t i : v.list) attr_integers_.push_back(dims ? FileDim(i) : i);
    return static_cast<int64_t>(attr_integers_.size());
  }
  if (v.kind != KEEL_ATTR_F64S) return v.i;
  attr_floats_.insert(attr_floats_.end(), v.floats.begin(), v.floats.end());
  return static_cast<int64_t>(attr_floats_.size());
}

// The values in the loader's order of creation. Results added to a node later have higher ids.
std::vector<ValueId> InOrder(const Graph& g) {
  std::vector<ValueId> order;
  NodeId last = 0;
  bool ordered = true;
  for (ValueId v = 0; v < g.values.size(); v++) {
    const Value& value = g.values[v];
    if (value.kind != ValueKind::kResult) {
      order.push_back(v);
      continue;
    }
    ordered = ordered && value.index >= last &&
              (!value.result || g.nodes[value.index].out[value.result - 1] + 1 == v);
    last = value.index;
  }
  for (const Node& n : g.nodes) order.insert(order.end(), n.out.begin(), n.out.end());
  if (ordered) std::iota(order.begin(), order.end(), 0u);
  return order;
}

void Encoder::AddNode(const Node& n) {
  node_ops_.push_back(Op(n.op));
  for (ValueId v : n.in) operands_.push_back(v == kNoValue ? v : file_values_[v]);
  node_operand_ends_.push_back(Size32(operands_.size()));
  for (const Attr& a : n.attrs) {
    attr_names_.push_back(String(a.name));
    attr_kinds_.push_back(static_cast<uint8_t>(a.value.kind));
    attr_values_.push_back(AttrNumber(a.value));
  }
  node_attr_ends_.push_back(Size32(attr_names_.size()));
  node_names_.push_back(n.name.empty() ? 0 : String(n.name));
  named_nodes_ = named_nodes_ || !n.name.empty();
  if (!m_.devices.empty())
    node_devices_.push_back(n.origin.device ? String(m_.devices[n.origin.device - 1]) : 0);
  if (m_.files.empty()) return;
  auto [file, line] = m_.SourceOf(n.origin);
  node_files_.push_back(String(file));
  node_lines_.push_back(line);
}

void Encoder::AddGraph(const Graph& g) {
  graph_names_.push_back(String(g.name));
  std::vector<ValueId> order = InOrder(g);
  file_values_.resize(order.size());
  for (uint32_t i = 0; i < order.size(); i++) file_values_[order[i]] = i;
  for (ValueId id : order) {
    const Value& v = g.values[id];
    bool constant = v.kind == ValueKind::kConstant;
    value_kinds_.push_back(static_cast<uint8_t>(v.kind));
    value_sources_.push_back(v.index);
    value_names_.push_back(constant ? 0 : String(v.name));
    value_types_.push_back(Type(v.type));
  }
  for (const Node& n : g.nodes) AddNode(n);
  for (size_t i = 0; i < g.results.size(); i++) {
    result_values_.push_back(file_values_[g.results[i]]);
    result_names_.push_back(String(g.result_names[i]));
  }
  for (const std::string& rule : g.rules) graph_rules_.push_back(String(rule));
  graph_rule_ends_.push_back(Size32(graph_rules_.size()));
  graph_value_ends_.push_back(Size32(value_kinds_.size()));
  graph_node_ends_.push_back(Size32(node_ops_.size()));
  graph_result_ends_.push_back(Size32(result_values_.size()));
}

void Encoder::AddCase(const Case& c) {
  case_names_.push_back(String(c.name));
  case_entries_.push_back(String(c.entry));
  case_inputs_.insert(case_inputs_.end(), c.inputs.begin(), c.inputs.end());
  case_expected_.insert(case_expected_.end(), c.expected.begin(), c.expected.end());
  case_input_ends_.push_back(Size32(case_inputs_.size()));
  case_expected_ends_.push_back(Size32(case_expected_.size()));
  case_rtols_.push_back(c.rtol);
  case_atols_.push_back(c.atol);
}

uint64_t Encoder::ColumnBytes() const {
  return text_.size() + 4 * text_ends_.size() + 13 * value_kinds_.size() + 12 * node_ops_.size() +
         4 * operands_.size() + 13 * attr_names_.size() +
         8 * (attr_integers_.size() + attr_floats_.size() + type_dims_.size()) + 16 * constant_names_.size() +
         8 * result_values_.size() + 4 * node_devices_.size() + 8 * node_files_.size() +
         4 * node_names_.size() + 20 * variable_names_.size();
}

void Encoder::Build(std::string* out) {
  flatbuffers::FlatBufferBuilder b(1 << 16);
  auto bytes = b.CreateVector(reinterpret_cast<const uint8_t*>(text_.data()), text_.size());
  if (!named_nodes_) node_names_.clear();
  if (graph_rules_.empty()) graph_rule_ends_.clear();
  Column segments(constant_names_.size(), 0), variable_segments(variable_names_.size(), 0);
  std::vector<uint64_t> segment_offsets(segment_sizes_.size(), 0);
  // Empty columns are omitted: an absent column reads as empty.
  auto column = [&b](const auto& v) { return v.empty() ? 0 : b.CreateVector(v); };
  auto file = fb::CreateFile(
      b, kFileFormat, MinReader(m_), bytes, column(text_ends_), column(symbols_), column(expressions_),
      column(metadata_), column(segment_offsets), column(segment_sizes_), column(type_dtypes_),
      column(type_ends_), column(type_dims_), column(constant_names_), column(constant_types_),
      column(segments), column(constant_offsets_), column(op_names_), column(op_versions_),
      column(graph_names_), column(graph_value_ends_), column(graph_node_ends_), column(graph_result_ends_),
      column(value_kinds_), column(value_sources_), column(value_names_), column(value_types_),
      column(node_ops_), column(node_operand_ends_), column(node_attr_ends_), column(operands_),
      column(attr_names_), column(attr_kinds_), column(attr_values_), column(attr_integers_),
      column(attr_floats_), column(result_values_), column(result_names_), column(entry_names_),
      column(entry_graphs_), column(case_names_), column(case_entries_), column(case_input_ends_),
      column(case_expected_ends_), column(case_inputs_), column(case_expected_), column(case_rtols_),
      column(case_atols_), column(node_devices_), column(variable_names_), column(variable_types_),
      column(variable_segments), column(variable_offsets_), column(node_names_), column(graph_rule_ends_),
      column(graph_rules_), column(node_files_), column(node_lines_));
  fb::FinishSizePrefixedFileBuffer(b, file);
  out->assign(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
}

absl::StatusOr<EncodedModule> Encoder::Run() {
  EncodedModule out;
  for (size_t i = 0; i < m_.dims.symbol_count(); i++) symbols_.push_back(String(m_.dims.symbol_name(i)));
  for (const auto& [key, value] : m_.metadata) {
    metadata_.push_back(String(key));
    metadata_.push_back(String(value));
  }
  Constants(&out);
  RETURN_IF_ERROR(Variables(&out));
  ASSIGN_OR_RETURN(std::vector<uint32_t> order, CallOrder(m_));
  file_graphs_.resize(order.size());
  for (uint32_t i = 0; i < order.size(); i++) file_graphs_[order[i]] = i;
  for (uint32_t g : order) {
    AddGraph(*m_.graphs[g]);
    if (ColumnBytes() > kMaxStructureBytes / 2)
      return Exhausted("the module's structure takes more than ", kMaxStructureBytes / 2,
                       " bytes, the limit of a file");
  }
  for (const Entry& e : m_.entries) {
    entry_names_.push_back(String(e.name));
    entry_graphs_.push_back(file_graphs_[e.graph]);
  }
  for (const Case& c : m_.cases) AddCase(c);
  if (ColumnBytes() > kMaxStructureBytes / 2)
    return Exhausted("the module's structure takes more than ", kMaxStructureBytes / 2,
                     " bytes, the limit of a file");
  Build(&out.structure);
  if (out.segment_size > 0) out.segment_offset = RoundUp(out.structure.size(), kSegmentAlign);
  return out;
}

}  // namespace

uint32_t MinReader(const Module& m) {
  bool first = m.variables.empty();
  for (const auto& g : m.graphs) first = first && g->nodes_by_name.empty();
  return first ? 1 : 2;
}

absl::StatusOr<EncodedModule> EncodeModule(const Module& m) { return Encoder(m).Run(); }

}  // namespace keel
