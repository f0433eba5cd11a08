// file_columns.h: the columns of a file's structure part as spans.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/base/status.h"

namespace keel {

template <typename T>
using Col = std::span<const T>;

struct Columns {
  uint32_t format = 0, min_reader = 0;
  Col<uint8_t> text, type_dtypes, value_kinds, attr_kinds;
  Col<uint32_t> text_ends, dim_symbols, dim_expressions, metadata;
  Col<uint64_t> segment_offsets, segment_sizes, constant_offsets, variable_offsets;
  Col<uint32_t> type_ends, constant_names, constant_types, constant_segments, op_names, op_versions;
  Col<int64_t> type_dims, attr_values, attr_integers;
  Col<uint32_t> graph_names, graph_value_ends, graph_node_ends, graph_result_ends;
  Col<uint32_t> value_sources, value_names, value_types, node_ops, node_operand_ends, node_attr_ends,
      operands;
  Col<uint32_t> attr_names, result_values, result_names, entry_names, entry_graphs;
  Col<uint32_t> case_names, case_entries, case_input_ends, case_expected_ends, case_inputs, case_expected;
  Col<uint32_t> graph_rule_ends, graph_rules, node_devices, node_files, node_lines, node_names,
      variable_names, variable_types, variable_segments;
  Col<double> attr_floats, case_rtols, case_atols;
};

// `data` (aligned to 8) begins with the size prefix; `size` includes it. Checks the flatbuffer, the alignment
// of columns, that columns of a family have the same length, and that *_ends ascend.
absl::StatusOr<Columns> ReadColumns(const uint8_t* data, uint64_t size);

// For each number in a column that is an index.
inline absl::Status CheckIndex(std::string_view column, size_t row, uint64_t index, size_t count) {
  if (index < count) return absl::OkStatus();
  return Invalid(column, "[", row, "] is ", index, " but there are only ", count);
}

}  // namespace keel
