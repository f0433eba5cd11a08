// npy_text.cc: see npy_text.h.
#include "cli/data/npy_text.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "cli/exit.h"

namespace cli {
namespace {

void append_utf8(std::string& to, uint32_t c) {
  if (c < 0x80) return void(to += static_cast<char>(c));
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  to += static_cast<char>(kLead[more] | c >> (6 * more));
  for (int k = more - 1; k >= 0; k--) to += static_cast<char>(0x80 | (c >> (6 * k) & 0x3f));
}

bool is_utf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto lead = static_cast<uint8_t>(s[i++]);
    const int more = lead < 0x80   ? 0
                     : lead < 0xc2 ? -1
                     : lead < 0xe0 ? 1
                     : lead < 0xf0 ? 2
                     : lead < 0xf5 ? 3
                                   : -1;
    uint32_t c = more > 0 ? lead & (0x3f >> more) : lead;
    if (more < 0) return false;
    for (int k = 0; k < more; k++, i++) {
      if (i >= s.size() || (s[i] & 0xc0) != 0x80) return false;
      c = c << 6 | (static_cast<uint8_t>(s[i]) & 0x3f);
    }
    if ((more == 2 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
        (more == 3 && (c < 0x10000 || c > 0x10ffff)))
      return false;
  }
  return true;
}

[[noreturn]] void refuse(const std::string& where, size_t k, const char* why) {
  throw Fail(kBadFile, where + ": string " + std::to_string(k) + " " + why);
}

std::string row_of(std::string_view data, const TextDtype& dtype, const std::string& where, size_t k) {
  std::string row;
  if (!dtype.code_points) row = data;
  for (size_t i = 0; dtype.code_points && i < data.size(); i += 4) {
    uint32_t c = 0;
    for (size_t b = 0; b < 4; b++)
      c |= static_cast<uint32_t>(static_cast<uint8_t>(data[i + b])) << 8 * (dtype.big_endian ? 3 - b : b);
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) refuse(where, k, "has a code point that is none");
    append_utf8(row, c);
  }
  row.resize(row.find_last_not_of('\0') + 1);
  if (row.find('\0') != std::string::npos) refuse(where, k, "has a zero byte, which ends strings");
  if (!is_utf8(row)) refuse(where, k, "is not UTF-8");
  return row;
}

}  // namespace

std::optional<TextDtype> text_dtype(std::string_view descr) {
  bool big = false;
  if (!descr.empty() && std::string_view("<>|=").find(descr.front()) != std::string_view::npos) {
    big = descr.front() == '>';
    descr.remove_prefix(1);
  }
  if (descr.empty() || (descr.front() != 'S' && descr.front() != 'U')) return std::nullopt;
  size_t length = 0;
  const auto [end, error] = std::from_chars(descr.data() + 1, descr.data() + descr.size(), length);
  if (error != std::errc() || end != descr.data() + descr.size() || length > (size_t{1} << 30))
    return std::nullopt;
  return TextDtype{descr.front() == 'U', big, length};
}

TextRows text_rows(std::string_view data, const TextDtype& dtype, const std::string& where) {
  std::vector<std::string> rows;
  size_t width = 1;
  const size_t count = dtype.bytes() ? data.size() / dtype.bytes() : 0;
  for (size_t k = 0; k < count; k++) {
    rows.push_back(row_of(data.substr(k * dtype.bytes(), dtype.bytes()), dtype, where, k));
    width = std::max(width, rows.back().size());
  }
  std::string bytes;
  for (std::string& row : rows) {
    row.resize(width);
    bytes += row;
  }
  return {bytes, width};
}

}  // namespace cli
