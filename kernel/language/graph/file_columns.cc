// file_columns.cc: bytes to columns, with all checks that are independent of the columns' meaning.

#include "kernel/language/graph/file_columns.h"

#include <bit>

#include "graph_generated.h"
#include "kernel/language/graph/file_format.h"

namespace keel {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are read in place");

// The flatbuffers verifier does not check the alignment of 8-byte elements.
template <typename T>
absl::Status ReadColumn(std::string_view name, const flatbuffers::Vector<T>* v, Col<T>* out) {
  if (!v) return absl::OkStatus();
  if (reinterpret_cast<uintptr_t>(v->Data()) % sizeof(T) != 0)
    return Invalid("column ", name, " is misaligned");
  *out = {reinterpret_cast<const T*>(v->Data()), v->size()};
  return absl::OkStatus();
}

absl::Status ReadAll(const fb::File& f, Columns* c) {
#define READ(T, column) RETURN_IF_ERROR(ReadColumn(#column, f.column(), &c->column));
  KEEL_FILE_COLUMNS(READ)
#undef READ
  return absl::OkStatus();
}

absl::Status SameLength(std::string_view family, std::initializer_list<size_t> sizes) {
  for (size_t n : sizes)
    if (n != *sizes.begin())
      return Invalid("the columns of ", family, " differ in length: ", *sizes.begin(), " and ", n);
  return absl::OkStatus();
}

absl::Status Ascending(std::string_view name, Col<uint32_t> ends, size_t total) {
  uint32_t before = 0;
  for (size_t i = 0; i < ends.size(); i++) {
    if (ends[i] < before || ends[i] > total)
      return Invalid(name, "[", i, "] is ", ends[i], "; expected ", before, " to ", total);
    before = ends[i];
  }
  if (before != total) return Invalid(name, " ends at ", before, "; expected ", total);
  return absl::OkStatus();
}

absl::Status CheckLengths(const Columns& c) {
  if (c.metadata.size() % 2) return Invalid("metadata has an odd number of strings: ", c.metadata.size());
  if (c.text_ends.empty() || c.text_ends[0] != 0) return Invalid("string 0 is not empty");
  RETURN_IF_ERROR(SameLength("segments", {c.segment_offsets.size(), c.segment_sizes.size()}));
  RETURN_IF_ERROR(SameLength("types", {c.type_dtypes.size(), c.type_ends.size()}));
  RETURN_IF_ERROR(SameLength("constants", {c.constant_names.size(), c.constant_types.size(),
                                           c.constant_segments.size(), c.constant_offsets.size()}));
  RETURN_IF_ERROR(SameLength("ops", {c.op_names.size(), c.op_versions.size()}));
  RETURN_IF_ERROR(SameLength("graphs", {c.graph_names.size(), c.graph_value_ends.size(),
                                        c.graph_node_ends.size(), c.graph_result_ends.size()}));
  if (!c.graph_rule_ends.empty())
    RETURN_IF_ERROR(SameLength("graphs", {c.graph_names.size(), c.graph_rule_ends.size()}));
  RETURN_IF_ERROR(SameLength(
      "values", {c.value_kinds.size(), c.value_sources.size(), c.value_names.size(), c.value_types.size()}));
  RETURN_IF_ERROR(
      SameLength("nodes", {c.node_ops.size(), c.node_operand_ends.size(), c.node_attr_ends.size()}));
  RETURN_IF_ERROR(SameLength("node_files and node_lines", {c.node_files.size(), c.node_lines.size()}));
  for (Col<uint32_t> optional : {c.node_devices, c.node_names, c.node_files})
    if (!optional.empty()) RETURN_IF_ERROR(SameLength("nodes", {c.node_ops.size(), optional.size()}));
  RETURN_IF_ERROR(SameLength("variables", {c.variable_names.size(), c.variable_types.size(),
                                           c.variable_segments.size(), c.variable_offsets.size()}));
  RETURN_IF_ERROR(SameLength("attributes", {c.attr_names.size(), c.attr_kinds.size(), c.attr_values.size()}));
  RETURN_IF_ERROR(SameLength("results", {c.result_values.size(), c.result_names.size()}));
  RETURN_IF_ERROR(SameLength("entries", {c.entry_names.size(), c.entry_graphs.size()}));
  return SameLength("cases", {c.case_names.size(), c.case_entries.size(), c.case_input_ends.size(),
                              c.case_expected_ends.size(), c.case_rtols.size(), c.case_atols.size()});
}

absl::Status CheckEnds(const Columns& c) {
  RETURN_IF_ERROR(Ascending("text_ends", c.text_ends, c.text.size()));
  RETURN_IF_ERROR(Ascending("type_ends", c.type_ends, c.type_dims.size()));
  RETURN_IF_ERROR(Ascending("graph_value_ends", c.graph_value_ends, c.value_kinds.size()));
  RETURN_IF_ERROR(Ascending("graph_node_ends", c.graph_node_ends, c.node_ops.size()));
  RETURN_IF_ERROR(Ascending("graph_result_ends", c.graph_result_ends, c.result_values.size()));
  RETURN_IF_ERROR(Ascending("graph_rule_ends", c.graph_rule_ends, c.graph_rules.size()));
  RETURN_IF_ERROR(Ascending("node_operand_ends", c.node_operand_ends, c.operands.size()));
  RETURN_IF_ERROR(Ascending("node_attr_ends", c.node_attr_ends, c.attr_names.size()));
  RETURN_IF_ERROR(Ascending("case_input_ends", c.case_input_ends, c.case_inputs.size()));
  return Ascending("case_expected_ends", c.case_expected_ends, c.case_expected.size());
}

}  // namespace

absl::StatusOr<Columns> ReadColumns(const uint8_t* data, uint64_t size) {
  // A file has one table, so depth and number of tables are fixed and verification is linear.
  flatbuffers::Verifier verifier(data, size, 8, static_cast<flatbuffers::uoffset_t>(size / 8 + 1));
  if (!fb::VerifySizePrefixedFileBuffer(verifier))
    return Invalid("its structure is not a valid flatbuffer: the file is damaged");
  const fb::File& file = *fb::GetSizePrefixedFile(data);
  Columns c;
  c.format = file.format();
  c.min_reader = file.min_reader();
  if (c.min_reader > kFileFormat)
    return Unimplemented("it needs a reader of file format ", c.min_reader,
                         " or newer; this one reads up to ", kFileFormat,
                         ": use a newer Keel, or save the file for an older one");
  if (c.format == 0 || c.min_reader == 0 || c.format < c.min_reader)
    return Invalid("its version numbers are damaged: format ", c.format, ", minimum reader ", c.min_reader);
  RETURN_IF_ERROR(ReadAll(file, &c));
  RETURN_IF_ERROR(CheckLengths(c));
  RETURN_IF_ERROR(CheckEnds(c));
  return c;
}

}  // namespace keel
