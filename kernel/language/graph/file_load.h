// file_load.h: converts a file's columns into a module. file_load.cc: tables, constants and entries.
// file_load_graph.cc: graphs and their nodes. Private to these two files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/language/graph/file_columns.h"
#include "kernel/language/graph/graph.h"

namespace keel {

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
  absl::StatusOr<Constant> Data(std::string_view what, std::string_view name, uint32_t type, uint32_t segment,
                                uint64_t offset) const;
  absl::Status Constants();
  absl::Status Variables();
  absl::Status Ops();
  absl::Status LoadGraph(size_t i);
  absl::Status LoadValues(Graph& g);
  absl::Status LoadLeaf(Graph& g, size_t row);
  absl::Status LoadNode(Graph& g, size_t* value);
  absl::StatusOr<Attrs> NodeAttrs(size_t node);
  absl::Status FillAttr(size_t row, AttrValue* v);
  absl::Status FillList(size_t row, size_t total, size_t* used, size_t* begin, size_t* end) const;
  absl::Status Rules(Graph& g, size_t i);
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
  std::vector<std::string> names_;  // reused for each node
  std::vector<TensorType> declared_;
};

inline uint32_t Begin(Col<uint32_t> ends, size_t i) { return i == 0 ? 0 : ends[i - 1]; }

}  // namespace keel
