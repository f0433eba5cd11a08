// external.h: weights of a model in a second file, ONNX's external data, where the model exceeds its format's
// limit.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "abi/keel_plugin.h"

namespace onnx_export {

constexpr uint64_t kMaxBytes = (uint64_t{1} << 31) - 1;  // of a protobuf message
// A larger model puts weights into the second file: kMaxBytes, or less as the user wishes.
uint64_t most_bytes();

class ExternalData {
 public:
  // path: of the model.
  explicit ExternalData(const std::string& path);
  // The place of bytes, which must outlive this.
  uint64_t add(std::string_view bytes);
  const std::string& location() const { return location_; }
  void write(const keel_sink* sink) const;

 private:
  struct Part {
    uint64_t offset;
    std::string_view bytes;
  };
  std::string location_;
  std::vector<Part> parts_;
  uint64_t end_ = 0;
};

}  // namespace onnx_export
