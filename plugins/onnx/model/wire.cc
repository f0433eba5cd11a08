// wire.cc: the protobuf wire format: tags, varints of at most 10 bytes, 64-bit lengths checked against the
// remaining bytes. Groups (wire types 3 and 4) are refused; unknown fields are skipped.
#include "plugins/onnx/model/wire.h"

#include <cstring>

#include "plugins/onnx/import/failure.h"

namespace onnx_import {
namespace {

[[noreturn]] void damaged(const char* what) {
  refuse(KEEL_INVALID, cat("the ONNX file is damaged or truncated: ", what));
}

}  // namespace

uint64_t Wire::varint() {
  uint64_t value = 0;
  for (int i = 0; i < 10; i++) {
    if (rest_.empty()) damaged("a number runs past the end");
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return value;
  }
  damaged("a number has more than 10 bytes");
}

uint64_t Wire::fixed(size_t width) {
  if (rest_.size() < width) damaged("a fixed-size number runs past the end");
  uint64_t value = 0;
  std::memcpy(&value, rest_.data(), width);
  rest_.remove_prefix(width);
  return value;
}

bool Wire::next() {
  if (rest_.empty()) return false;
  const uint64_t tag = varint();
  type_ = static_cast<int>(tag & 7);
  if (tag >> 32) damaged("a field number is too large");
  field = static_cast<uint32_t>(tag >> 3);
  if (field == 0) damaged("a field has number 0");
  number = 0;
  bytes = {};
  if (type_ == kVarint) {
    number = varint();
  } else if (type_ == kFixed64 || type_ == kFixed32) {
    number = fixed(type_ == kFixed64 ? 8 : 4);
  } else if (type_ == kBytes) {
    const uint64_t size = varint();
    if (size > rest_.size()) damaged("a field is longer than the rest of the file");
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
  } else {
    damaged("a field has a wire type that ONNX does not use");
  }
  return true;
}

int64_t Wire::integer() const {
  if (type_ != kVarint) damaged("expected an integer");
  return static_cast<int64_t>(number);
}

float Wire::real() const {
  if (type_ != kFixed32) damaged("expected a float");
  float value;
  std::memcpy(&value, &number, sizeof value);
  return value;
}

std::string_view Wire::text() const {
  if (type_ != kBytes) damaged("expected a string or a message");
  return bytes;
}

void Wire::append_to(std::vector<int64_t>& list) const {
  if (type_ != kBytes) return list.push_back(integer());
  Wire packed(bytes);
  while (!packed.rest_.empty()) list.push_back(static_cast<int64_t>(packed.varint()));
}

template <class T>
void Wire::append_fixed(std::vector<T>& list, int type) const {
  if (type_ != kBytes && type_ != type) damaged("expected a floating-point number");
  std::string_view from =
      type_ == kBytes ? bytes : std::string_view(reinterpret_cast<const char*>(&number), sizeof(T));
  if (from.size() % sizeof(T)) damaged("a list of floating-point numbers ends within a number");
  const size_t old = list.size();
  list.resize(old + from.size() / sizeof(T));
  if (!from.empty()) std::memcpy(list.data() + old, from.data(), from.size());
}

void Wire::append_to(std::vector<float>& list) const { append_fixed(list, kFixed32); }
void Wire::append_to(std::vector<double>& list) const { append_fixed(list, kFixed64); }

}  // namespace onnx_import
