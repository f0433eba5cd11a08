// file_columns.h: the columns of a file's structure part as spans.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/base/status.h"

namespace keel {

template <typename T>
using Col = std::span<const T>;

// The columns of abi/graph.fbs: X(element type, name).
// clang-format off
#define KEEL_FILE_COLUMNS(X) \
  X(uint8_t, text) X(uint32_t, text_ends) X(uint32_t, dim_symbols) X(uint32_t, dim_expressions) \
  X(uint32_t, metadata) X(uint64_t, segment_offsets) X(uint64_t, segment_sizes) X(uint8_t, type_dtypes) \
  X(uint32_t, type_ends) X(int64_t, type_dims) X(uint32_t, constant_names) X(uint32_t, constant_types) \
  X(uint32_t, constant_segments) X(uint64_t, constant_offsets) X(uint32_t, op_names) \
  X(uint32_t, op_versions) X(uint32_t, graph_names) X(uint32_t, graph_value_ends) \
  X(uint32_t, graph_node_ends) X(uint32_t, graph_result_ends) X(uint8_t, value_kinds) \
  X(uint32_t, value_sources) X(uint32_t, value_names) X(uint32_t, value_types) X(uint32_t, node_ops) \
  X(uint32_t, node_operand_ends) X(uint32_t, node_attr_ends) X(uint32_t, operands) X(uint32_t, attr_names) \
  X(uint8_t, attr_kinds) X(int64_t, attr_values) X(int64_t, attr_integers) X(double, attr_floats) \
  X(uint32_t, result_values) X(uint32_t, result_names) X(uint32_t, entry_names) X(uint32_t, entry_graphs) \
  X(uint32_t, case_names) X(uint32_t, case_entries) X(uint32_t, case_input_ends) \
  X(uint32_t, case_expected_ends) X(uint32_t, case_inputs) X(uint32_t, case_expected) \
  X(double, case_rtols) X(double, case_atols) X(uint32_t, node_devices) X(uint32_t, variable_names) \
  X(uint32_t, variable_types) X(uint32_t, variable_segments) X(uint64_t, variable_offsets) \
  X(uint32_t, node_names) X(uint32_t, graph_rule_ends) X(uint32_t, graph_rules) X(uint32_t, node_files) \
  X(uint32_t, node_lines)
// clang-format on
#define KEEL_COLUMN(T, column) Col<T> column;
struct Columns {
  uint32_t format = 0, min_reader = 0;
  KEEL_FILE_COLUMNS(KEEL_COLUMN)
};
#undef KEEL_COLUMN

// `data` (aligned to 8) begins with the size prefix; `size` includes it. Checks the flatbuffer, the alignment
// of columns, that columns of a family have the same length, and that *_ends ascend.
absl::StatusOr<Columns> ReadColumns(const uint8_t* data, uint64_t size);

// For each number in a column that is an index.
inline absl::Status CheckIndex(std::string_view column, size_t row, uint64_t index, size_t count) {
  if (index < count) return absl::OkStatus();
  return Invalid(column, "[", row, "] is ", index, " but there are only ", count);
}

}  // namespace keel
