// external.cc: see external.h.
#include "plugins/onnx/export/external.h"

#include <algorithm>

#include "plugins/onnx/import/failure.h"
#include "plugins/onnx/import/number.h"
#include "sdk/plugin/choice.h"

namespace onnx_export {
namespace {

constexpr char kVariable[] = "KEEL_ONNX_FILE_BYTES";

// Readers map tensors: pages of 4 KiB, and large ones in the units of Windows.
uint64_t alignment(uint64_t size) { return size < (1 << 20) ? 4096 : 65536; }

}  // namespace

uint64_t most_bytes() {
  const std::string given = keel::plugin::variable(kVariable);
  if (given.empty()) return kMaxBytes;
  const auto bytes = onnx_import::number_in<uint64_t>(given);
  if (!bytes)
    onnx_import::refuse(KEEL_INVALID,
                        onnx_import::cat(kVariable, " is '", given, "'; expected a number of bytes"));
  return std::min(*bytes, kMaxBytes);
}

ExternalData::ExternalData(const std::string& path) : location_(path.substr(path.rfind('/') + 1) + ".data") {}

uint64_t ExternalData::add(std::string_view bytes) {
  const uint64_t unit = alignment(bytes.size()), offset = (end_ + unit - 1) / unit * unit;
  parts_.push_back({offset, bytes});
  end_ = offset + bytes.size();
  return offset;
}

void ExternalData::write(const keel_sink* sink) const {
  const std::string zeros(alignment(end_), 0);
  uint64_t at = 0;
  for (const Part& part : parts_) {
    if (part.offset > at) onnx_import::check(sink->write_data(sink, zeros.data(), part.offset - at));
    onnx_import::check(sink->write_data(sink, part.bytes.data(), part.bytes.size()));
    at = part.offset + part.bytes.size();
  }
}

}  // namespace onnx_export
