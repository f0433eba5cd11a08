// file_load.cc: builds a module from the columns of a file. Nothing is trusted: every index is checked here,
// and everything else by the Add* functions that any builder of graphs goes through.

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "kernel/graph/file_columns.h"
#include "kernel/graph/file_format.h"
#include "kernel/graph/graph_index.h"

namespace keel {
namespace {

constexpr uint64_t kMaxStringBytes = uint64_t{256}
                                     << 20;  // of all names and values that are made from the table

struct Bytes {
  const uint8_t* data;
  uint64_t size;
  std::shared_ptr<const void> owner;
};

class Loader {
 public:
  Loader(const Columns& columns, const Bytes& bytes, uint64_t base, std::shared_ptr<Catalogue> catalogue)
      : c_(columns), bytes_(bytes), base_(base), m_(std::make_unique<Module>(std::move(catalogue))) {}
  absl::StatusOr<std::unique_ptr<Module>> Run();

 private:
  absl::StatusOr<std::string_view> String(std::string_view column, size_t row, uint64_t id);
  absl::StatusOr<Dim> FileDim(int64_t d) const;
  absl::Status Dims();
  absl::Status Types();
  absl::Status Metadata();
  absl::Status Segments() const;
  absl::Status Constants();
  absl::Status Ops();
  absl::Status LoadGraph(size_t i);
  absl::Status LoadValues(Graph& g);
  absl::Status LoadLeaf(Graph& g, size_t row);
  absl::Status LoadNode(Graph& g, size_t* value);
  absl::StatusOr<Attrs> NodeAttrs(size_t node);
  absl::Status FillAttr(size_t row, AttrValue* v);
  absl::Status FillList(size_t row, size_t total, size_t* used, size_t* begin, size_t* end) const;
  absl::Status Results(Graph& g, size_t begin, size_t end);
  absl::Status Entries();
  absl::Status Cases();

  const Columns& c_;
  Bytes bytes_;
  uint64_t base_;
  std::unique_ptr<Module> m_;
  uint64_t string_bytes_ = 0;
  std::vector<Dim> expressions_;
  std::vector<TensorType> types_;
  std::vector<const OpDef*> ops_;
  size_t node_ = 0, node_begin_ = 0, node_end_ = 0, value_begin_ = 0,
         value_end_ = 0;  // of the graph being loaded
  size_t integers_used_ = 0, floats_used_ = 0;
  std::vector<std::string> names_;  // used again for each node
  std::vector<TensorType> declared_;
};

uint32_t Begin(Col<uint32_t> ends, size_t i) { return i == 0 ? 0 : ends[i - 1]; }

absl::StatusOr<std::string_view> Loader::String(std::string_view column, size_t row, uint64_t id) {
  if (id >= c_.text_ends.size()) return CheckIndex(column, row, id, c_.text_ends.size());
  uint32_t begin = Begin(c_.text_ends, id), end = c_.text_ends[id];
  string_bytes_ += end - begin;
  if (string_bytes_ > kMaxStringBytes)
    return Exhausted("names take more than ", kMaxStringBytes, " bytes, the limit");
  return std::string_view(reinterpret_cast<const char*>(c_.text.data()) + begin, end - begin);
}

absl::StatusOr<Dim> Loader::FileDim(int64_t d) const {
  if (!IsSymbolic(d)) return d;
  auto index = static_cast<uint64_t>(KEEL_DIM_HANDLES - 1) - static_cast<uint64_t>(d);
  if (index >= expressions_.size())
    return Invalid("a dim is expression ", index, " but there are only ", expressions_.size());
  return expressions_[index];
}

absl::Status Loader::Dims() {
  for (size_t i = 0; i < c_.dim_symbols.size(); i++) {
    ASSIGN_OR_RETURN(std::string_view name, String("dim_symbols", i, c_.dim_symbols[i]));
    if (m_->dims.FindSymbol(name)) return Invalid("the symbol '", name, "' is there twice");
    RETURN_IF_ERROR(m_->dims.Symbol(name).status());
  }
  size_t known = m_->dims.symbol_count();
  for (size_t i = 0; i < c_.dim_expressions.size(); i++) {
    ASSIGN_OR_RETURN(std::string_view text, String("dim_expressions", i, c_.dim_expressions[i]));
    ASSIGN_OR_RETURN(Dim d, m_->dims.Parse(text));
    if (m_->dims.symbol_count() != known)
      return Invalid("the dim '", text, "' has a symbol that is not in dim_symbols");
    expressions_.push_back(d);
  }
  return absl::OkStatus();
}

absl::Status Loader::Types() {
  types_.reserve(c_.type_ends.size());
  for (size_t i = 0; i < c_.type_ends.size(); i++) {
    TensorType type;
    if (c_.type_dtypes[i] == 0) return Invalid("type ", i, " has no dtype");
    RETURN_IF_ERROR(CheckIndex("type_dtypes", i, c_.type_dtypes[i], static_cast<size_t>(DType::kCount)));
    type.dtype = static_cast<DType>(c_.type_dtypes[i]);
    uint32_t begin = Begin(c_.type_ends, i), end = c_.type_ends[i];
    if (end - begin > kMaxRank)
      return Invalid("type ", i, " has rank ", end - begin, "; the limit is ", kMaxRank);
    for (uint32_t d = begin; d < end; d++) {
      ASSIGN_OR_RETURN(Dim dim, FileDim(c_.type_dims[d]));
      type.dims.push_back(dim);
    }
    types_.push_back(std::move(type));
  }
  return absl::OkStatus();
}

absl::Status Loader::Metadata() {
  std::string_view before;
  for (size_t i = 0; i < c_.metadata.size(); i += 2) {
    ASSIGN_OR_RETURN(std::string_view key, String("metadata", i, c_.metadata[i]));
    ASSIGN_OR_RETURN(std::string_view value, String("metadata", i + 1, c_.metadata[i + 1]));
    if (i > 0 && key <= before) return Invalid("metadata is not sorted at '", key.substr(0, 80), "'");
    RETURN_IF_ERROR(m_->SetMetadata(key, value));
    before = key;
  }
  return absl::OkStatus();
}

absl::Status Loader::Segments() const {
  for (size_t i = 0; i < c_.segment_offsets.size(); i++) {
    uint64_t begin = 0, end = 0, offset = c_.segment_offsets[i], size = c_.segment_sizes[i];
    bool overflow =
        __builtin_add_overflow(base_, offset, &begin) || __builtin_add_overflow(begin, size, &end);
    if (offset % kSegmentAlign != 0)
      return Invalid("segment ", i, " begins at ", offset, ", which is no multiple of ", kSegmentAlign);
    if (overflow || (size > 0 && end > bytes_.size))
      return Invalid("the file is truncated or damaged: segment ", i, " has ", size, " bytes from offset ",
                     base_, " + ", offset, ", but the file has ", bytes_.size, " bytes");
  }
  return absl::OkStatus();
}

absl::Status Loader::Constants() {
  m_->constants.reserve(c_.constant_names.size());
  for (size_t i = 0; i < c_.constant_names.size(); i++) {
    Constant k;
    ASSIGN_OR_RETURN(std::string_view name, String("constant_names", i, c_.constant_names[i]));
    RETURN_IF_ERROR(CheckIndex("constant_types", i, c_.constant_types[i], types_.size()));
    RETURN_IF_ERROR(CheckIndex("constant_segments", i, c_.constant_segments[i], c_.segment_offsets.size()));
    k.name = name;
    k.type = types_[c_.constant_types[i]];
    if (name.empty() && !k.type.dims.empty()) return Invalid("constant ", i, " has no name and is no scalar");
    RETURN_IF_ERROR(CheckType(absl::StrCat("constant '", name, "'"), k.type, m_->dims));
    if (std::any_of(k.type.dims.begin(), k.type.dims.end(), IsSymbolic))
      return Invalid("constant '", name, "' has a symbolic dim");
    ASSIGN_OR_RETURN(k.bytes, BytesOf(absl::StrCat("constant '", name, "'"), k.type));
    uint64_t offset = c_.constant_offsets[i], room = c_.segment_sizes[c_.constant_segments[i]];
    if (offset % kConstantAlign != 0)
      return Invalid("constant '", name, "' begins at ", offset, ", which is no multiple of ",
                     kConstantAlign);
    if (k.bytes > 0 && (offset > room || k.bytes > room - offset))
      return Invalid("constant '", name, "' takes ", k.bytes, " bytes from ", offset, " but its segment has ",
                     room);
    if (k.bytes > 0) k.data = bytes_.data + base_ + c_.segment_offsets[c_.constant_segments[i]] + offset;
    k.owner = bytes_.owner;
    ASSIGN_OR_RETURN(uint32_t number, m_->AddConstant(std::move(k)));
    if (number != i) return Invalid("constant ", i, " repeats the literal ", number);
  }
  return absl::OkStatus();
}

// Names all ops that are missing, not only the first.
absl::Status Loader::Ops() {
  std::string missing;
  size_t count = 0;
  absl::StatusCode code = absl::StatusCode::kOk;
  for (size_t i = 0; i < c_.op_names.size(); i++) {
    ASSIGN_OR_RETURN(std::string_view name, String("op_names", i, c_.op_names[i]));
    if (c_.op_versions[i] == 0) return Invalid("op ", i, " has version 0");
    auto op = CheckName("an op", name).ok() ? m_->catalogue->Find(name, c_.op_versions[i])
                                            : NotFound("no valid name");
    ops_.push_back(op.ok() ? *op : nullptr);
    if (op.ok()) continue;
    code = op.status().code();
    if (++count <= 20)
      absl::StrAppend(&missing, count > 1 ? ", " : "", name.substr(0, 80), " version ", c_.op_versions[i],
                      " (", op.status().message(), ")");
  }
  if (count == 0) return absl::OkStatus();
  return Error(code, "it uses ", count, " ops that are not known here: ", missing,
               "; load the plugin that brings them, or use a newer Keel");
}

absl::Status Loader::FillList(size_t row, size_t total, size_t* used, size_t* begin, size_t* end) const {
  *begin = *used;
  auto stated = static_cast<uint64_t>(c_.attr_values[row]);
  if (stated < *begin || stated > total)
    return Invalid("attr_values[", row, "] is ", c_.attr_values[row], "; wanted ", *begin, " to ", total);
  *end = *used = stated;
  return absl::OkStatus();
}

absl::Status Loader::FillAttr(size_t row, AttrValue* v) {
  int64_t number = c_.attr_values[row];
  size_t begin = 0, end = 0;
  v->kind = c_.attr_kinds[row];
  if (v->kind < KEEL_ATTR_BOOL || v->kind > KEEL_ATTR_DIMS)
    return Invalid("attr_kinds[", row, "] is ", v->kind, ", no kind of attribute");
  if (v->kind == KEEL_ATTR_F64) {
    v->f = std::bit_cast<double>(number);
  } else if (v->kind == KEEL_ATTR_STR) {
    ASSIGN_OR_RETURN(v->s, String("attr_values", row, static_cast<uint64_t>(number)));
  } else if (v->kind == KEEL_ATTR_DIM) {
    ASSIGN_OR_RETURN(v->i, FileDim(number));
  } else if (v->kind == KEEL_ATTR_F64S) {
    RETURN_IF_ERROR(FillList(row, c_.attr_floats.size(), &floats_used_, &begin, &end));
    v->floats.assign(c_.attr_floats.begin() + begin, c_.attr_floats.begin() + end);
  } else if (v->kind == KEEL_ATTR_I64S || v->kind == KEEL_ATTR_DIMS) {
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

// The next node, whose results are the values from row *value on.
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
  ASSIGN_OR_RETURN(NodeId id, g.AddNode(ops_[c_.node_ops[row]], {in.begin(), in.end()}, std::move(attrs),
                                        names_, declared_));
  if (g.nodes[id].out.size() != names_.size())
    return Invalid("node ", number, " has ", g.nodes[id].out.size(), " results, the file lists ",
                   names_.size());
  *value = v;
  return absl::OkStatus();
}

absl::Status Loader::LoadValues(Graph& g) {
  for (size_t v = value_begin_; v < value_end_;) {
    RETURN_IF_ERROR(CheckIndex("value_types", v, c_.value_types[v], types_.size()));
    uint8_t kind = c_.value_kinds[v];
    if (kind > static_cast<uint8_t>(ValueKind::kResult))
      return Invalid("value_kinds[", v, "] is ", kind, ", no kind of value");
    if (kind != static_cast<uint8_t>(ValueKind::kResult)) {
      RETURN_IF_ERROR(LoadLeaf(g, v++));
      continue;
    }
    size_t want = node_begin_ + c_.value_sources[v];
    if (want < node_ || want >= node_end_)
      return Invalid("value_sources[", v, "] is node ", c_.value_sources[v],
                     ", which is out of order or does not exist");
    while (node_ <= want) RETURN_IF_ERROR(LoadNode(g, &v));  // nodes before it have no results
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
  if (s.ok()) s = Results(*g, Begin(c_.graph_result_ends, i), c_.graph_result_ends[i]);
  if (s.ok()) return s;
  absl::Status full(s.code(), absl::StrCat("graph '", name.substr(0, 80), "': ", s.message()));
  s.ForEachPayload([&](absl::string_view url, const absl::Cord& value) { full.SetPayload(url, value); });
  return full;
}

absl::Status Loader::Entries() {
  for (size_t i = 0; i < c_.entry_names.size(); i++) {
    ASSIGN_OR_RETURN(std::string_view name, String("entry_names", i, c_.entry_names[i]));
    RETURN_IF_ERROR(CheckIndex("entry_graphs", i, c_.entry_graphs[i], m_->graphs.size()));
    RETURN_IF_ERROR(m_->AddEntry(name, m_->graphs[c_.entry_graphs[i]].get()));
  }
  return absl::OkStatus();
}

absl::Status Loader::Cases() {
  for (size_t i = 0; i < c_.case_names.size(); i++) {
    Case k;
    ASSIGN_OR_RETURN(k.name, String("case_names", i, c_.case_names[i]));
    ASSIGN_OR_RETURN(k.entry, String("case_entries", i, c_.case_entries[i]));
    k.inputs.assign(c_.case_inputs.begin() + Begin(c_.case_input_ends, i),
                    c_.case_inputs.begin() + c_.case_input_ends[i]);
    k.expected.assign(c_.case_expected.begin() + Begin(c_.case_expected_ends, i),
                      c_.case_expected.begin() + c_.case_expected_ends[i]);
    k.rtol = c_.case_rtols[i];
    k.atol = c_.case_atols[i];
    RETURN_IF_ERROR(m_->AddCase(std::move(k)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Module>> Loader::Run() {
  RETURN_IF_ERROR(Dims());
  RETURN_IF_ERROR(Types());
  RETURN_IF_ERROR(Metadata());
  RETURN_IF_ERROR(Segments());
  RETURN_IF_ERROR(Constants());
  RETURN_IF_ERROR(Ops());
  for (size_t i = 0; i < c_.graph_names.size(); i++) RETURN_IF_ERROR(LoadGraph(i));
  if (integers_used_ != c_.attr_integers.size() || floats_used_ != c_.attr_floats.size())
    return Invalid("attr_integers or attr_floats has elements that belong to no attribute");
  RETURN_IF_ERROR(Entries());
  RETURN_IF_ERROR(Cases());
  return std::move(m_);
}

// Bytes that somebody put at an odd address are copied once; mapped files never are.
absl::StatusOr<Bytes> Aligned(Bytes b) {
  if (reinterpret_cast<uintptr_t>(b.data) % kConstantAlign == 0) return b;
  void* memory = std::aligned_alloc(kConstantAlign, RoundUp(b.size, kConstantAlign));
  if (!memory) return Exhausted("no memory for ", b.size, " bytes");
  std::memcpy(memory, b.data, b.size);
  return Bytes{static_cast<const uint8_t*>(memory), b.size, std::shared_ptr<const void>(memory, std::free)};
}

absl::StatusOr<uint64_t> StructureSize(const Bytes& b) {
  if (b.size < 12 || std::memcmp(b.data + 8, "KEEL", 4) != 0)
    return Invalid("this is no Keel file: it does not have the mark 'KEEL' at offset 8");
  uint32_t stated = 0;
  std::memcpy(&stated, b.data, 4);
  uint64_t size = uint64_t{stated} + 4;
  if (size > b.size)
    return Invalid("the file is truncated or damaged: its structure has ", size, " bytes, but the file has ",
                   b.size);
  if (size > kMaxStructureBytes)
    return Exhausted("its structure has ", size, " bytes; the limit is ", kMaxStructureBytes);
  return size;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> LoadBytes(const uint8_t* data, uint64_t size,
                                                  std::shared_ptr<const void> owner,
                                                  std::shared_ptr<Catalogue> catalogue) {
  if (!data || size == 0) return Invalid("this is no Keel file: it is empty");
  Bytes bytes{data, size, std::move(owner)};
  RETURN_IF_ERROR(StructureSize(bytes).status());
  ASSIGN_OR_RETURN(bytes, Aligned(std::move(bytes)));
  ASSIGN_OR_RETURN(uint64_t structure, StructureSize(bytes));
  ASSIGN_OR_RETURN(Columns columns, ReadColumns(bytes.data, structure));
  return Loader(columns, bytes, RoundUp(structure, kSegmentAlign), std::move(catalogue)).Run();
}

absl::StatusOr<std::unique_ptr<Module>> LoadFile(const std::string& path,
                                                 std::shared_ptr<Catalogue> catalogue) {
  ASSIGN_OR_RETURN(FileMap map, MapFile(path));
  auto module = LoadBytes(map.data, map.size, map.owner, std::move(catalogue));
  if (module.ok()) return module;
  const absl::Status& s = module.status();
  absl::Status full(s.code(), absl::StrCat("cannot load '", path, "': ", s.message()));
  s.ForEachPayload([&](absl::string_view url, const absl::Cord& value) { full.SetPayload(url, value); });
  return full;
}

}  // namespace keel
