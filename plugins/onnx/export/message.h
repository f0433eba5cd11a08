// message.h: writes the protobuf wire format; model/wire.h reads it.
//
// A Message is a list of pieces: its own bytes, and borrowed ones such as weights, which are not copied. A
// message inside another one moves its pieces there.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onnx_export {

class Message {
 public:
  struct Piece {
    std::string own;
    std::string_view borrowed;
    std::string_view bytes() const { return borrowed.data() ? borrowed : own; }
  };
  void integer(uint32_t field, int64_t v);
  void real(uint32_t field, float v);
  void text(uint32_t field, std::string_view v);
  void borrow(uint32_t field, std::string_view v);  // v must outlive the message
  void message(uint32_t field, Message&& m);
  void integers(uint32_t field, const std::vector<int64_t>& v);

  uint64_t size() const { return size_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::string& own();
  void varint(uint64_t v);
  void tag(uint32_t field, uint32_t type) { varint(uint64_t{field} << 3 | type); }
  void raw(const void* data, size_t size);

  std::vector<Piece> pieces_;
  uint64_t size_ = 0;
};

}  // namespace onnx_export
