// file_format.h: numbers of the file format that reader and writer share, and the writer's first half.
// The format is told in abi/FILE.md; its structure part is abi/graph.fbs.
#pragma once

#include <string>
#include <vector>

#include "kernel/graph/graph.h"

namespace keel {

inline constexpr uint32_t kFileFormat = 2;
inline constexpr uint64_t kSegmentAlign = 4096, kConstantAlign = 64;
inline constexpr uint64_t kMaxStructureBytes = uint64_t{256} << 20;

struct EncodedModule {
  std::string structure;               // size prefix and flatbuffer
  std::vector<uint64_t> data_offsets;  // of each constant, in the one segment
  uint64_t segment_offset = 0;         // in the file
  uint64_t segment_size = 0;           // 0: the file ends with the structure
  std::vector<ArrayRef> variables;     // their values, as they were when this was made
  std::vector<uint64_t> variable_offsets;
};
// The lowest format whose readers understand what is in the module.
uint32_t MinReader(const Module&);
// Everything but the bytes of constants and variables.
absl::StatusOr<EncodedModule> EncodeModule(const Module&);

}  // namespace keel
