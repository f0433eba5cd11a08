// message.cc: see message.h.
#include "plugins/onnx/export/message.h"

#include <iterator>
#include <utility>

namespace onnx_export {
namespace {

enum Type : uint32_t { kVarint = 0, kBytes = 2, kFixed32 = 5 };

}  // namespace

std::string& Message::own() {
  if (pieces_.empty() || pieces_.back().borrowed.data()) pieces_.emplace_back();
  return pieces_.back().own;
}

void Message::raw(const void* data, size_t size) {
  own().append(static_cast<const char*>(data), size);
  size_ += size;
}

void Message::varint(uint64_t v) {
  for (; v >= 0x80; v >>= 7) {
    const auto byte = static_cast<uint8_t>(v | 0x80);
    raw(&byte, 1);
  }
  raw(&v, 1);
}

void Message::integer(uint32_t field, int64_t v) {
  tag(field, kVarint);
  varint(static_cast<uint64_t>(v));
}

void Message::real(uint32_t field, float v) {
  tag(field, kFixed32);
  raw(&v, sizeof v);
}

void Message::text(uint32_t field, std::string_view v) {
  tag(field, kBytes);
  varint(v.size());
  raw(v.data(), v.size());
}

void Message::borrow(uint32_t field, std::string_view v) {
  if (v.size() < 256) return text(field, v);
  tag(field, kBytes);
  varint(v.size());
  pieces_.push_back({{}, v});
  size_ += v.size();
}

void Message::message(uint32_t field, Message&& m) {
  tag(field, kBytes);
  varint(m.size_);
  size_ += m.size_;
  for (Piece& piece : m.pieces_) {
    if (piece.borrowed.data())
      pieces_.push_back(std::move(piece));
    else
      own() += piece.own;
  }
  m = {};
}

void Message::integers(uint32_t field, const std::vector<int64_t>& v) {
  Message list;
  for (int64_t each : v) list.varint(static_cast<uint64_t>(each));
  tag(field, kBytes);
  varint(list.size_);
  if (list.size_) raw(list.own().data(), list.own().size());
}

}  // namespace onnx_export
