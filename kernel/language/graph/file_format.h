// file_format.h: constants shared by reader and writer, and the encoder. abi/FILE.md describes the format;
// abi/graph.fbs is its structure part.
#pragma once

#include <string>
#include <vector>

#include "kernel/language/graph/graph.h"

namespace keel {

inline constexpr uint32_t kFileFormat = 3;
inline constexpr uint64_t kSegmentAlign = 4096, kConstantAlign = 64;
inline constexpr uint64_t kMaxStructureBytes = uint64_t{256} << 20;

struct EncodedModule {
  std::string structure;               // size prefix and flatbuffer
  std::vector<uint64_t> data_offsets;  // of each constant, in the single segment
  uint64_t segment_offset = 0;         // in the file
  uint64_t segment_size = 0;           // 0: no segment
  std::vector<ArrayRef> variables;     // snapshots of their values
  std::vector<uint64_t> variable_offsets;
};
// The lowest format version whose readers support all features of the module.
uint32_t MinReader(const Module&);
// Everything except the bytes of constants and variables.
absl::StatusOr<EncodedModule> EncodeModule(const Module&);

}  // namespace keel
