// file_load.cc: builds a module from the columns of a file. The file is not trusted: every index is checked
// here, everything else by the Add* functions.

#include "kernel/language/graph/file_load.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernel/base/align.h"
#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/file_format.h"
#include "kernel/language/graph/names.h"
#include "kernel/language/graph/types.h"

namespace keel {
namespace {

constexpr uint64_t kMaxStringBytes = uint64_t{256} << 20;  // total of all strings read from the table

}  // namespace

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
    if (m_->dims.FindSymbol(name)) return Invalid("the symbol '", name, "' occurs twice");
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
      return Invalid("segment ", i, " begins at ", offset, ", which is not a multiple of ", kSegmentAlign);
    if (overflow || (size > 0 && end > bytes_.size))
      return Invalid("the file is truncated or damaged: segment ", i, " has ", size, " bytes from offset ",
                     base_, " + ", offset, ", but the file has ", bytes_.size, " bytes");
  }
  return absl::OkStatus();
}

// A constant, or the value of a variable: its type and the position of its bytes in the file.
absl::StatusOr<Constant> Loader::Data(std::string_view what, std::string_view name, uint32_t type,
                                      uint32_t segment, uint64_t offset) const {
  Constant k;
  std::string named = absl::StrCat(what, " '", name.substr(0, 80), "'");
  RETURN_IF_ERROR(CheckIndex(absl::StrCat(what, "_types of ", named), 0, type, types_.size()));
  RETURN_IF_ERROR(
      CheckIndex(absl::StrCat(what, "_segments of ", named), 0, segment, c_.segment_sizes.size()));
  k.name = name;
  k.type = types_[type];
  RETURN_IF_ERROR(CheckType(named, k.type, m_->dims));
  if (std::any_of(k.type.dims.begin(), k.type.dims.end(), IsSymbolic))
    return Invalid(named, " has a symbolic dim");
  ASSIGN_OR_RETURN(k.bytes, BytesOf(named, k.type));
  uint64_t room = c_.segment_sizes[segment];
  if (offset % kConstantAlign != 0)
    return Invalid(named, " begins at ", offset, ", which is not a multiple of ", kConstantAlign);
  if (k.bytes > 0 && (offset > room || k.bytes > room - offset))
    return Invalid(named, " takes ", k.bytes, " bytes from ", offset, " but its segment has ", room);
  if (k.bytes > 0) k.data = bytes_.data + base_ + c_.segment_offsets[segment] + offset;
  k.owner = bytes_.owner;
  return k;
}

absl::Status Loader::Constants() {
  m_->constants.reserve(c_.constant_names.size());
  for (size_t i = 0; i < c_.constant_names.size(); i++) {
    ASSIGN_OR_RETURN(std::string_view name, String("constant_names", i, c_.constant_names[i]));
    ASSIGN_OR_RETURN(Constant k, Data("constant", name, c_.constant_types[i], c_.constant_segments[i],
                                      c_.constant_offsets[i]));
    if (name.empty() && !k.type.dims.empty())
      return Invalid("constant ", i, " has no name and is not a scalar");
    ASSIGN_OR_RETURN(uint32_t number, m_->AddConstant(std::move(k)));
    if (number != i) return Invalid("constant ", i, " repeats the literal ", number);
  }
  return absl::OkStatus();
}

absl::Status Loader::Variables() {
  for (size_t i = 0; i < c_.variable_names.size(); i++) {
    ASSIGN_OR_RETURN(std::string_view name, String("variable_names", i, c_.variable_names[i]));
    ASSIGN_OR_RETURN(Constant k, Data("variable", name, c_.variable_types[i], c_.variable_segments[i],
                                      c_.variable_offsets[i]));
    ASSIGN_OR_RETURN(ArrayRef value, ArrayOf(k));
    RETURN_IF_ERROR(m_->AddVariable(name, std::make_shared<Variable>(std::move(value))).status());
  }
  return absl::OkStatus();
}

// Reports all unknown ops together.
absl::Status Loader::Ops() {
  std::string missing;
  size_t count = 0;
  absl::StatusCode code = absl::StatusCode::kOk;
  for (size_t i = 0; i < c_.op_names.size(); i++) {
    ASSIGN_OR_RETURN(std::string_view name, String("op_names", i, c_.op_names[i]));
    if (c_.op_versions[i] == 0) return Invalid("op ", i, " has version 0");
    auto op = CheckName("an op", name).ok() ? m_->catalogue->Find(name, c_.op_versions[i])
                                            : NotFound("not a valid name");
    ops_.push_back(op.ok() ? *op : nullptr);
    if (op.ok()) continue;
    code = op.status().code();
    if (++count <= 20)
      absl::StrAppend(&missing, count > 1 ? ", " : "", name.substr(0, 80), " version ", c_.op_versions[i],
                      " (", op.status().message(), ")");
  }
  if (count == 0) return absl::OkStatus();
  return Error(code, "it uses ", count, " unknown ops: ", missing,
               "; load the plugin that defines them, or use a newer Keel");
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
  RETURN_IF_ERROR(Variables());
  RETURN_IF_ERROR(Ops());
  for (size_t i = 0; i < c_.graph_names.size(); i++) RETURN_IF_ERROR(LoadGraph(i));
  if (integers_used_ != c_.attr_integers.size() || floats_used_ != c_.attr_floats.size())
    return Invalid("attr_integers or attr_floats has elements that no attribute uses");
  RETURN_IF_ERROR(Entries());
  RETURN_IF_ERROR(Cases());
  return std::move(m_);
}

namespace {

// Copies bytes at an unaligned address; mapped files are always aligned.
absl::StatusOr<Bytes> Aligned(Bytes b) {
  if (reinterpret_cast<uintptr_t>(b.data) % kConstantAlign == 0) return b;
  void* memory = std::aligned_alloc(kConstantAlign, RoundUp(b.size, kConstantAlign));
  if (!memory) return Exhausted("no memory for ", b.size, " bytes");
  std::memcpy(memory, b.data, b.size);
  return Bytes{static_cast<const uint8_t*>(memory), b.size, std::shared_ptr<const void>(memory, std::free)};
}

absl::StatusOr<uint64_t> StructureSize(const Bytes& b) {
  if (b.size >= 5 && std::memcmp(b.data, "keel ", 5) == 0)
    return Annotate(Invalid("this is the text form of a module, not a Keel file"), kErrorHint,
                    "parse the text (keel.parse in Python), or write a file with `keel convert`");
  if (b.size < 12 || std::memcmp(b.data + 8, "KEEL", 4) != 0)
    return Annotate(
        Invalid("this is not a Keel file: the mark 'KEEL' at offset 8 is missing"), kErrorHint,
        "import a file of another format: keel.import_file or keel.from_onnx in Python, `keel convert`");
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
  if (!data || size == 0) return Invalid("this is not a Keel file: it is empty");
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
  if (module.ok())
    for (Constant& c : (*module)->constants) c.mapped = c.owner == map.owner;
  if (module.ok()) return module;
  const absl::Status& s = module.status();
  return Reword(s, absl::StrCat("cannot load '", path, "': ", s.message()));
}

}  // namespace keel
