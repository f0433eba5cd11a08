// file_encode.cc: a module's structure as columns (abi/graph.fbs).

#include <algorithm>
#include <bit>
#include <numeric>

#include "graph_generated.h"
#include "kernel/base/align.h"
#include "kernel/base/hash.h"
#include "kernel/language/graph/file_format.h"

namespace keel {
namespace {

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
  fb::FileT f_;
  std::vector<uint32_t> file_values_;  // value id -> index in the file, for the current graph
  std::vector<uint32_t> file_graphs_;  // graph index -> index in the file, where callees come first
  bool named_nodes_ = false;
  HashMap<std::string, uint32_t> string_ids_;
  HashMap<Dim, int64_t> dim_ids_;
  HashMap<std::pair<uint8_t, std::vector<int64_t>>, uint32_t> type_ids_;
  HashMap<const OpDef*, uint32_t> op_ids_;
};

uint32_t Encoder::String(std::string_view s) {
  auto [it, added] = string_ids_.emplace(std::string(s), Size32(f_.text_ends.size()));
  if (added) {
    f_.text.insert(f_.text.end(), s.begin(), s.end());
    f_.text_ends.push_back(Size32(f_.text.size()));
  }
  return it->second;
}

int64_t Encoder::FileDim(Dim d) {
  if (!IsSymbolic(d)) return d;
  auto [it, added] =
      dim_ids_.emplace(d, KEEL_DIM_HANDLES - 1 - static_cast<int64_t>(f_.dim_expressions.size()));
  if (added) f_.dim_expressions.push_back(String(m_.dims.Print(d)));
  return it->second;
}

uint32_t Encoder::Type(const TensorType& type) {
  std::vector<int64_t> dims;
  for (Dim d : type.dims) dims.push_back(FileDim(d));
  auto dtype = static_cast<uint8_t>(type.dtype);
  auto [it, added] = type_ids_.emplace(std::pair(dtype, dims), Size32(f_.type_ends.size()));
  if (added) {
    f_.type_dtypes.push_back(dtype);
    f_.type_dims.insert(f_.type_dims.end(), dims.begin(), dims.end());
    f_.type_ends.push_back(Size32(f_.type_dims.size()));
  }
  return it->second;
}

uint32_t Encoder::Op(const OpDef* op) {
  auto [it, added] = op_ids_.emplace(op, Size32(f_.op_names.size()));
  if (added) {
    f_.op_names.push_back(String(OpName(*op)));
    f_.op_versions.push_back(OpVersion(*op));
  }
  return it->second;
}

void Encoder::Constants(EncodedModule* out) {
  uint64_t end = 0;
  for (const Constant& c : m_.constants) {
    uint64_t begin = RoundUp(end, kConstantAlign);
    f_.constant_names.push_back(String(c.name));
    f_.constant_types.push_back(Type(c.type));
    f_.constant_offsets.push_back(begin);
    end = begin + c.bytes;
  }
  out->data_offsets = f_.constant_offsets;
  out->segment_size = end;
}

// After the constants, with their current values.
absl::Status Encoder::Variables(EncodedModule* out) {
  uint64_t end = out->segment_size;
  for (const ModuleVariable& v : m_.variables) {
    ASSIGN_OR_RETURN(out->variables.emplace_back(), v.storage->ReadOnHost());
    f_.variable_names.push_back(String(v.name));
    f_.variable_types.push_back(Type(v.type));
    f_.variable_offsets.push_back(RoundUp(end, kConstantAlign));
    end = f_.variable_offsets.back() + out->variables.back()->bytes();
  }
  if (!m_.constants.empty() || !m_.variables.empty()) f_.segment_sizes.push_back(end);
  out->variable_offsets = f_.variable_offsets;
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
    for (int64_t i : v.list) f_.attr_integers.push_back(file_graphs_[static_cast<size_t>(i)]);
    return static_cast<int64_t>(f_.attr_integers.size());
  }
  if (dims || v.kind == KEEL_ATTR_I64S) {
    for (int64_t i : v.list) f_.attr_integers.push_back(dims ? FileDim(i) : i);
    return static_cast<int64_t>(f_.attr_integers.size());
  }
  if (v.kind != KEEL_ATTR_F64S) return v.i;
  f_.attr_floats.insert(f_.attr_floats.end(), v.floats.begin(), v.floats.end());
  return static_cast<int64_t>(f_.attr_floats.size());
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
  f_.node_ops.push_back(Op(n.op));
  for (ValueId v : n.in) f_.operands.push_back(v == kNoValue ? v : file_values_[v]);
  f_.node_operand_ends.push_back(Size32(f_.operands.size()));
  for (const Attr& a : n.attrs) {
    f_.attr_names.push_back(String(a.name));
    f_.attr_kinds.push_back(static_cast<uint8_t>(a.value.kind));
    f_.attr_values.push_back(AttrNumber(a.value));
  }
  f_.node_attr_ends.push_back(Size32(f_.attr_names.size()));
  f_.node_names.push_back(n.name.empty() ? 0 : String(n.name));
  named_nodes_ = named_nodes_ || !n.name.empty();
  if (!m_.devices.empty())
    f_.node_devices.push_back(n.origin.device ? String(m_.devices[n.origin.device - 1]) : 0);
  if (m_.files.empty()) return;
  auto [file, line] = m_.SourceOf(n.origin);
  f_.node_files.push_back(String(file));
  f_.node_lines.push_back(line);
}

void Encoder::AddGraph(const Graph& g) {
  f_.graph_names.push_back(String(g.name));
  std::vector<ValueId> order = InOrder(g);
  file_values_.resize(order.size());
  for (uint32_t i = 0; i < order.size(); i++) file_values_[order[i]] = i;
  for (ValueId id : order) {
    const Value& v = g.values[id];
    bool constant = v.kind == ValueKind::kConstant;
    f_.value_kinds.push_back(static_cast<uint8_t>(v.kind));
    f_.value_sources.push_back(v.index);
    f_.value_names.push_back(constant ? 0 : String(v.name));
    f_.value_types.push_back(Type(v.type));
  }
  for (const Node& n : g.nodes) AddNode(n);
  for (size_t i = 0; i < g.results.size(); i++) {
    f_.result_values.push_back(file_values_[g.results[i]]);
    f_.result_names.push_back(String(g.result_names[i]));
  }
  for (const std::string& rule : g.rules) f_.graph_rules.push_back(String(rule));
  f_.graph_rule_ends.push_back(Size32(f_.graph_rules.size()));
  f_.graph_value_ends.push_back(Size32(f_.value_kinds.size()));
  f_.graph_node_ends.push_back(Size32(f_.node_ops.size()));
  f_.graph_result_ends.push_back(Size32(f_.result_values.size()));
}

void Encoder::AddCase(const Case& c) {
  f_.case_names.push_back(String(c.name));
  f_.case_entries.push_back(String(c.entry));
  f_.case_inputs.insert(f_.case_inputs.end(), c.inputs.begin(), c.inputs.end());
  f_.case_expected.insert(f_.case_expected.end(), c.expected.begin(), c.expected.end());
  f_.case_input_ends.push_back(Size32(f_.case_inputs.size()));
  f_.case_expected_ends.push_back(Size32(f_.case_expected.size()));
  f_.case_rtols.push_back(c.rtol);
  f_.case_atols.push_back(c.atol);
}

uint64_t Encoder::ColumnBytes() const {
  return f_.text.size() + 4 * f_.text_ends.size() + 13 * f_.value_kinds.size() + 12 * f_.node_ops.size() +
         4 * f_.operands.size() + 13 * f_.attr_names.size() +
         8 * (f_.attr_integers.size() + f_.attr_floats.size() + f_.type_dims.size()) +
         16 * f_.constant_names.size() + 8 * f_.result_values.size() + 4 * f_.node_devices.size() +
         8 * f_.node_files.size() + 4 * f_.node_names.size() + 20 * f_.variable_names.size();
}

// Packing omits empty columns: an absent column reads as empty.
void Encoder::Build(std::string* out) {
  if (!named_nodes_) f_.node_names.clear();
  if (f_.graph_rules.empty()) f_.graph_rule_ends.clear();
  f_.constant_segments.resize(f_.constant_names.size());
  f_.variable_segments.resize(f_.variable_names.size());
  f_.segment_offsets.resize(f_.segment_sizes.size());
  f_.format = kFileFormat;
  f_.min_reader = MinReader(m_);
  flatbuffers::FlatBufferBuilder b(1 << 16);
  fb::FinishSizePrefixedFileBuffer(b, fb::File::Pack(b, &f_));
  out->assign(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
}

absl::StatusOr<EncodedModule> Encoder::Run() {
  EncodedModule out;
  for (size_t i = 0; i < m_.dims.symbol_count(); i++)
    f_.dim_symbols.push_back(String(m_.dims.symbol_name(i)));
  for (const auto& [key, value] : m_.metadata) {
    f_.metadata.push_back(String(key));
    f_.metadata.push_back(String(value));
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
    f_.entry_names.push_back(String(e.name));
    f_.entry_graphs.push_back(file_graphs_[e.graph]);
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

namespace {

bool HasStorageTypes(const Module& m) {
  const auto is_storage = [](const auto& thing) { return IsStorage(thing.type.dtype); };
  return std::ranges::any_of(m.constants, is_storage) || std::ranges::any_of(m.variables, is_storage) ||
         std::ranges::any_of(m.graphs,
                             [&](const auto& g) { return std::ranges::any_of(g->values, is_storage); });
}

}  // namespace

uint32_t MinReader(const Module& m) {
  if (HasStorageTypes(m)) return 3;
  bool first = m.variables.empty();
  for (const auto& g : m.graphs) first = first && g->nodes_by_name.empty();
  return first ? 1 : 2;
}

absl::StatusOr<EncodedModule> EncodeModule(const Module& m) { return Encoder(m).Run(); }

}  // namespace keel
