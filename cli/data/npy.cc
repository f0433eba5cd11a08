// npy.cc: the .npy format (magic, version, a Python dict as text, data). See npy.h.
//
// How to read it: Header and its parser, then the copy that converts any byte and axis order to row-major,
// then write_npy.
#include "cli/data/npy.h"

#include <algorithm>
#include <charconv>

#include "cli/data/bytes.h"
#include "cli/data/npy_text.h"
#include "cli/exit.h"

namespace cli {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct Header {
  std::string descr;  // "<f4"
  bool fortran = false;
  std::vector<int64_t> shape;
  size_t data_at = 0;
};

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class Parser {
 public:
  Parser(std::string_view text, const std::string& where) : s_(text), where_(where) {}

  Header header() {
    Header h;
    bool seen[3] = {};
    want('{');
    while (!eat('}')) {
      std::string key = string();
      want(':');
      if (key == "descr" && !(skip(), !s_.empty() && s_.front() == '[')) {
        h.descr = string();
        seen[0] = true;
      } else if (key == "fortran_order") {
        h.fortran = boolean();
        seen[1] = true;
      } else if (key == "shape") {
        h.shape = tuple();
        seen[2] = true;
      } else {
        fail(key == "descr" ? "a structured dtype, expected a plain one" : "the unknown key '" + key + "'");
      }
      eat(',');
    }
    if (!seen[0] || !seen[1] || !seen[2]) fail("a header without descr, fortran_order or shape");
    return h;
  }

 private:
  [[noreturn]] void fail(const std::string& got) {
    throw Fail(kBadFile, where_ + ": bad .npy header: got " + got);
  }
  void skip() {
    while (!s_.empty() && (s_.front() == ' ' || s_.front() == '\n' || s_.front() == '\t'))
      s_.remove_prefix(1);
  }
  bool eat(char c) {
    skip();
    if (s_.empty() || s_.front() != c) return false;
    s_.remove_prefix(1);
    return true;
  }
  void want(char c) {
    if (!eat(c))
      fail(s_.empty() ? "its end" : "'" + std::string(s_.substr(0, 8)) + "', expected '" + c + "'");
  }
  std::string string() {
    skip();
    char quote = !s_.empty() && s_.front() == '"' ? '"' : '\'';
    want(quote);
    size_t end = s_.find(quote);
    if (end == std::string_view::npos) fail("an unterminated string");
    std::string out(s_.substr(0, end));
    s_.remove_prefix(end + 1);
    return out;
  }
  bool boolean() {
    skip();
    for (auto [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (!s_.starts_with(word)) continue;
      s_.remove_prefix(std::string_view(word).size());
      return value;
    }
    fail("'" + std::string(s_.substr(0, 8)) + "', expected True or False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> out;
    want('(');
    while (!eat(')')) {
      skip();
      int64_t v = 0;
      auto [end, error] = std::from_chars(s_.data(), s_.data() + s_.size(), v);
      if (error != std::errc() || v < 0)
        fail("'" + std::string(s_.substr(0, 24)) + "', expected a dim from 0 to 2^63-1");
      s_.remove_prefix(static_cast<size_t>(end - s_.data()));
      eat('L');  // Python 2 wrote 3L
      out.push_back(v);
      if (!eat(',') && (skip(), s_.empty() || s_.front() != ')')) fail("an unterminated shape");
      if (out.size() > KEEL_MAX_RANK) fail("more than " + std::to_string(KEEL_MAX_RANK) + " dims");
    }
    return out;
  }

  std::string_view s_;
  const std::string& where_;
};

Header parse_header(std::string_view bytes, const std::string& where) {
  if (!is_npy(bytes) || bytes.size() < 12) throw Fail(kBadFile, where + ": not a whole .npy file");
  bool short_form = bytes[6] == 1;
  if (bytes[6] < 1 || bytes[6] > 3)
    throw Fail(kBadFile, where + ": .npy version " + std::to_string(bytes[6]) + ", expected 1, 2 or 3");
  size_t start = short_form ? 10 : 12;
  size_t length = short_form ? number_at<uint16_t>(bytes, 8) : number_at<uint32_t>(bytes, 8);
  if (length > bytes.size() - start) throw Fail(kBadFile, where + ": the .npy header is truncated");
  Header h = Parser(bytes.substr(start, length), where).header();
  h.data_at = start + length;
  return h;
}

struct DescrRow {
  std::string_view descr;  // without the byte order
  keel_dt dtype;
};
constexpr DescrRow kDescrs[] = {
    {"b1", KEEL_BOOL}, {"i1", KEEL_I8},  {"i2", KEEL_I16},  {"i4", KEEL_I32}, {"i8", KEEL_I64},
    {"u1", KEEL_U8},   {"u2", KEEL_U16}, {"u4", KEEL_U32},  {"u8", KEEL_U64}, {"f2", KEEL_F16},
    {"f4", KEEL_F32},  {"f8", KEEL_F64}, {"V2", KEEL_BF16},
};

keel_dt dtype_of_descr(const std::string& descr, const std::string& where, keel_dt as) {
  std::string_view body = descr;
  if (!body.empty() && std::string_view("<>|=").find(body.front()) != std::string_view::npos)
    body.remove_prefix(1);
  if (as == KEEL_BF16 && body == "u2") return as;
  if (keel::is_storage(as) && (body == "V1" || body == "u1" || body == "i1")) return KEEL_U8;  // see pack()
  for (const DescrRow& row : kDescrs)
    if (row.descr == body) return row.dtype;
  throw Fail(
      kBadFile, where + ": dtype '" + descr + "' is not supported",
      body == "V1"
          ? "elements of one byte: add their dtype, as in x=@x.npy:f8e4m3fn"
          : "save it with numpy as bool, int8 to int64, uint8 to uint64, float16, float32, float64, S or U");
}

// Elements of `size` bytes from column-major to row-major.
void from_fortran(const char* in, char* out, std::span<const int64_t> shape, size_t size, size_t count) {
  std::vector<int64_t> index(shape.size());
  std::vector<size_t> step(shape.size(), size);
  for (size_t d = 1; d < shape.size(); d++) step[d] = step[d - 1] * static_cast<size_t>(shape[d - 1]);
  size_t at = 0;
  for (size_t i = 0; i < count; i++, out += size) {
    std::memcpy(out, in + at, size);
    for (size_t d = shape.size(); d-- > 0;) {
      at += step[d];
      if (++index[d] < shape[d]) break;
      at -= step[d] * static_cast<size_t>(shape[d]);
      index[d] = 0;
    }
  }
}

size_t checked_bytes(const Header& h, size_t element, const std::string& where) {
  size_t total = element;
  for (int64_t d : h.shape)
    if (__builtin_mul_overflow(total, static_cast<size_t>(d), &total))
      throw Fail(kBadFile, where + ": the shape in the .npy header is too large");
  return total;
}

// Storage dtypes are in .npy files as ml_dtypes writes them: "V1", one element a byte.
keel::Array pack(const keel::Context& context, const keel::Array& codes, keel_dt dtype) {
  keel::Array out = keel::Array::zeros(context, dtype, codes.shape());
  const auto* from = static_cast<const uint8_t*>(codes.data());
  for (int64_t i = 0; i < out.size(); i++) keel::store_code(dtype, out.data(), i, from[i]);
  return out;
}
std::string unpack(const keel::Array& array) {
  std::string bytes;
  for (int64_t i = 0; i < array.size(); i++)
    bytes += static_cast<char>(keel::load_code(array.dtype(), array.data(), i));
  return bytes;
}

// The bytes of all elements of `size` bytes, which the file has.
size_t bytes_of_elements(std::string_view bytes, const Header& h, size_t size, const std::string& where) {
  const size_t total = checked_bytes(h, size, where), have = bytes.size() - h.data_at;
  if (have < total)
    throw Fail(kBadFile, where + ": the .npy data is truncated: got " + std::to_string(have) +
                             " bytes, expected " + std::to_string(total));
  return total;
}

// All elements, in row-major order.
void copy_elements(std::string_view bytes, const Header& h, size_t size, size_t total, char* out) {
  const char* from = bytes.data() + h.data_at;
  if (total == 0) return;
  if (h.fortran && h.shape.size() > 1)
    from_fortran(from, out, h.shape, size, total / size);
  else
    std::memcpy(out, from, total);
}

keel::Array read_text(const keel::Context& context, std::string_view bytes, const Header& h,
                      const TextDtype& dtype, const std::string& where) {
  std::string data(bytes_of_elements(bytes, h, dtype.bytes(), where), '\0');
  copy_elements(bytes, h, dtype.bytes(), data.size(), data.data());
  const TextRows rows = text_rows(data, dtype, where);
  std::vector<int64_t> shape = h.shape;
  shape.push_back(static_cast<int64_t>(rows.width));
  keel::Array array = keel::Array::zeros(context, KEEL_U8, shape);
  if (!rows.bytes.empty()) std::memcpy(array.data(), rows.bytes.data(), rows.bytes.size());
  return array;
}

}  // namespace

bool is_npy(std::string_view bytes) { return bytes.starts_with(kMagic); }

keel::Array read_npy(const keel::Context& context, std::string_view bytes, const std::string& where,
                     keel_dt as) {
  Header h = parse_header(bytes, where);
  if (const auto text = text_dtype(h.descr)) return read_text(context, bytes, h, *text, where);
  keel_dt dtype = dtype_of_descr(h.descr, where, as);
  auto element = static_cast<size_t>(keel::dtype_size(dtype));
  const size_t total = bytes_of_elements(bytes, h, element, where);
  keel::Array array = keel::Array::zeros(context, dtype, h.shape);
  if (total == 0) return array;
  char* out = static_cast<char*>(array.data());
  copy_elements(bytes, h, element, total, out);
  if (h.descr.front() == '>' && element > 1)
    for (size_t i = 0; i < total; i += element) std::reverse(out + i, out + i + element);
  if (dtype == KEEL_BOOL)  // in NumPy any non-zero byte is true; Keel requires 0 or 1
    for (size_t i = 0; i < total; i++) out[i] = out[i] != 0;
  return keel::is_storage(as) && dtype == KEEL_U8 ? pack(context, array, as) : array;
}

std::string write_npy(const keel::Array& array) {
  std::string descr;
  for (const DescrRow& row : kDescrs)
    if (row.dtype == array.dtype())
      descr = (keel::dtype_size(row.dtype) == 1 ? "|" : "<") + std::string(row.descr);
  const bool storage = keel::is_storage(array.dtype());
  if (storage) descr = "|V1";
  std::string shape;
  for (int64_t d : array.shape()) shape += std::to_string(d) + ", ";
  if (shape.size() > 2 && array.shape().size() > 1) shape.resize(shape.size() - 2);
  if (array.shape().size() == 1) shape.pop_back();
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  dict.append(63 - (kMagic.size() + 4 + dict.size()) % 64, ' ');  // data starts at a multiple of 64
  dict += '\n';
  std::string out(kMagic);
  out += std::string_view("\x01\x00", 2);
  put_number(out, static_cast<uint16_t>(dict.size()));
  out += dict;
  if (storage)
    out += unpack(array);
  else if (array.bytes())
    out.append(static_cast<const char*>(array.data()), array.bytes());
  return out;
}

}  // namespace cli
