// wire.h: reads the protobuf wire format in place, without generated code or copies.
//
// A Wire iterates over one message: next() advances to the next field; its value is in `number` (varint,
// fixed 32 and 64 bits) or in `bytes` (strings, nested messages, packed lists). Malformed data throws
// Failure, so callers need no checks.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace onnx_import {

class Wire {
 public:
  explicit Wire(std::string_view message) : rest_(message) {}
  bool next();  // false at the end

  uint32_t field = 0;
  uint64_t number = 0;
  std::string_view bytes;

  int64_t integer() const;        // the field as an integer; throws for a list or a float
  float real() const;             // as a 32-bit float
  std::string_view text() const;  // as bytes
  // Repeated scalars are packed (one field) or not (a field each); both are appended.
  void append_to(std::vector<int64_t>& list) const;
  void append_to(std::vector<float>& list) const;
  void append_to(std::vector<double>& list) const;

 private:
  enum Type { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint64_t varint();
  uint64_t fixed(size_t width);
  template <class T>
  void append_fixed(std::vector<T>& list, int type) const;

  std::string_view rest_;
  int type_ = 0;
};

}  // namespace onnx_import
