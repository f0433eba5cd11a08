// file_save.cc: writes a module atomically.
#include "kernel/language/graph/file_format.h"
#include "kernel/language/graph/temp_file.h"

namespace keel {

absl::Status SaveFile(const Module& m, const std::string& path) {
  ASSIGN_OR_RETURN(EncodedModule encoded, EncodeModule(m));
  TempFile file(path);
  RETURN_IF_ERROR(file.Open());
  RETURN_IF_ERROR(file.Write(encoded.structure.data(), encoded.structure.size()));
  for (size_t i = 0; i < m.constants.size(); i++) {
    if (m.constants[i].bytes == 0) continue;
    RETURN_IF_ERROR(file.PadTo(encoded.segment_offset + encoded.data_offsets[i]));
    RETURN_IF_ERROR(file.Write(m.constants[i].data, m.constants[i].bytes));
  }
  for (size_t i = 0; i < encoded.variables.size(); i++) {
    if (encoded.variables[i]->bytes() == 0) continue;
    RETURN_IF_ERROR(file.PadTo(encoded.segment_offset + encoded.variable_offsets[i]));
    RETURN_IF_ERROR(file.Write(encoded.variables[i]->data(), encoded.variables[i]->bytes()));
  }
  return file.Commit();
}

}  // namespace keel
