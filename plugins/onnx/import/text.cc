// text.cc: see text.h.
#include "plugins/onnx/import/text.h"

#include <cstring>
#include <unordered_map>

namespace onnx_import {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 28;  // of a table: one long string widens all rows

std::shared_ptr<Data> stored(Ints dims, std::vector<uint8_t> bytes) {
  auto d = std::make_shared<Data>();
  d->dtype = KEEL_U8;
  d->dims = std::move(dims);
  d->own = std::move(bytes);
  d->bytes = d->own.data();
  d->size = d->own.size();
  return d;
}

// The length of the character at the start of s; 0: not UTF-8.
size_t character(Text s) {
  const auto byte = [&](size_t k) { return k < s.size() ? static_cast<uint8_t>(s[k]) : 0u; };
  const uint32_t lead = byte(0);
  const size_t n = lead < 0x80   ? 1
                   : lead < 0xc2 ? 0
                   : lead < 0xe0 ? 2
                   : lead < 0xf0 ? 3
                   : lead < 0xf5 ? 4
                                 : 0;
  for (size_t k = 1; k < n; k++)
    if ((byte(k) & 0xc0) != 0x80) return 0;
  const uint32_t second = byte(1);  // no longer forms than needed, no surrogates, at most U+10FFFF
  const bool wrong = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ||
                     (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90);
  return wrong ? 0 : n;
}

}  // namespace

bool is_utf8(Text s) {
  while (!s.empty()) {
    const size_t n = character(s);
    if (n == 0) return false;
    s.remove_prefix(n);
  }
  return true;
}

std::string readable(Text s) {
  std::string made;
  while (!s.empty()) {
    const size_t n = character(s);
    made += n ? s.substr(0, n) : "?";
    s.remove_prefix(std::max<size_t>(n, 1));
  }
  return made;
}

void expect_text(Text s, const std::string& what) {
  if (s.find('\0') != Text::npos)
    refuse(KEEL_UNIMPLEMENTED, cat(what, " has a string with a zero byte, which ends strings in Keel"));
  if (!is_utf8(s)) refuse(KEEL_INVALID, cat(what, " has a string that is not UTF-8"));
}

ValueP table_of(const Words& rows, const std::string& what, size_t width) {
  for (const std::string& row : rows) {
    expect_text(row, what);
    width = std::max(width, row.size());
  }
  if (width > kMostBytes / std::max<size_t>(rows.size(), 1))
    refuse(KEEL_UNIMPLEMENTED, cat(what, " has ", rows.size(), " strings of up to ", width,
                                   " bytes; at most ", kMostBytes, " bytes in all"));
  std::vector<uint8_t> bytes(rows.size() * width);
  for (size_t k = 0; k < rows.size(); k++)
    if (!rows[k].empty()) std::memcpy(bytes.data() + k * width, rows[k].data(), rows[k].size());
  auto table = std::make_shared<Value>();
  table->data = stored({std::ssize(rows), static_cast<int64_t>(width)}, std::move(bytes));
  return table;
}

ValueP words_value(const Words& elements, Ints dims, const std::string& what) {
  std::unordered_map<Text, int64_t> places;
  Words rows;
  Ints indices;
  for (const std::string& word : elements) {
    const auto [at, added] = places.emplace(word, std::ssize(rows));
    if (added) rows.push_back(word);
    indices.push_back(at->second);
  }
  auto value = std::make_shared<Value>();
  value->data = store(std::move(dims), indices);
  value->table = table_of(rows, what);
  return value;
}

ValueP tensor_value(const Tensor& t, std::string name) {
  if (t.type == kString) {
    ValueP value = words_value(words_in(t), t.dims, cat("tensor '", t.name, "'"));
    value->name = std::move(name);
    return value;
  }
  auto value = std::make_shared<Value>();
  value->name = std::move(name);
  value->tensor = &t;
  return value;
}

ValueP strings_value(Edit& e, keel_value bytes) {
  Dims dims = e.dims(bytes);
  const keel_dim width = dims.back();
  dims.pop_back();
  const keel_dim count = e.product(dims);
  auto value = std::make_shared<Value>(), table = std::make_shared<Value>();
  table->id = e.reshape(bytes, {count, width});
  value->id = e.reshape(e.iota(count, KEEL_I64), dims);
  value->table = table;
  value->bytes = bytes;
  value->rows_in_order = true;
  return value;
}

// A value that the caller fixed.
ValueP strings_value(const Data& bytes, const std::string& what) {
  if (bytes.dtype != KEEL_U8 || bytes.dims.empty())
    refuse(KEEL_INVALID, cat(what, " holds strings: got ", dtype_name(bytes.dtype), " with ",
                             bytes.dims.size(), " dims; expected u8[dims.., bytes] padded with zeros"));
  Ints dims = bytes.dims;
  const auto width = static_cast<size_t>(dims.back());
  dims.pop_back();
  Words words;
  for (int64_t k = 0; k < checked_count(dims, what); k++) {
    const Text row(reinterpret_cast<const char*>(bytes.bytes) + static_cast<size_t>(k) * width, width);
    words.emplace_back(row.substr(0, row.find_last_not_of('\0') + 1));
  }
  return words_value(words, dims, what);
}

keel_value bytes_of(Edit& e, Value& v) {
  if (v.bytes == KEEL_NO_VALUE) v.bytes = e.op("gather", {e.id(*v.table), e.id(v)}, Attrs().i("axis", 0));
  return v.bytes;
}

keel_value widened(Edit& e, keel_value bytes, keel_dim width) {
  const Dims dims = e.dims(bytes);
  if (e.is(dims.back(), width)) return bytes;
  Dims more(dims.size(), 0);
  more.back() = e.sub(width, dims.back());
  return e.op("pad", {bytes, e.scalar(KEEL_U8, 0)}, Attrs().dims("hi", more));
}

void refuse_strings(Call& c, const Rule& rule) {
  for (size_t i = 0; i < c.n_in(); i++)
    if (c.has(i) && c.value(i).table && !rule.strings && !(rule.moves && i == 0))
      c.unsupported(cat("operand ", i, " ('", c.value(i).name,
                        "') is a tensor of strings, which this operator does not take in Keel"));
}

Joined joined(Call& c, const std::vector<ValueP>& parts) {
  Joined made = {{}, std::make_shared<Value>()};
  keel_dim width = 1, rows = 0;
  for (const ValueP& part : parts) {
    if (!part->table) c.invalid(cat("'", part->name, "' is no tensor of strings, but another operand is"));
    width = c.e.max(width, c.e.dims(*part->table)[1]);
  }
  Ids tables;
  for (const ValueP& part : parts) {
    const keel_value index = c.e.cast(c.e.id(*part), KEEL_I64);
    made.indices.push_back(rows == 0 ? index : c.e.op("add", {index, c.e.number(rows, KEEL_I64)}));
    tables.push_back(widened(c.e, c.e.id(*part->table), width));
    rows = c.e.add(rows, c.e.dims(*part->table)[0]);
  }
  made.table->id = tables.size() == 1 ? tables[0] : c.e.op("concat", tables, Attrs().i("axis", 0));
  return made;
}

}  // namespace onnx_import
