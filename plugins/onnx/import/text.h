// text.h: tensors of strings, which exist only while importing: indices of the rows of a table u8[k, width],
// whose rows are UTF-8 padded with zero bytes. Rules that move elements move the indices and hand the table
// on. Keel's parameters and results hold the bytes, u8[dims.., width], as NumPy's dtype S does.
#pragma once
#include "plugins/onnx/import/call.h"

namespace onnx_import {

using Words = std::vector<std::string>;

bool is_utf8(Text s);
std::string readable(Text s);  // with ? in place of bytes that are not UTF-8
// Refuses a string with a byte 0 or that is not UTF-8; `what` has it.
void expect_text(Text s, const std::string& what);

// A table of these rows, known while importing, of at least this width.
ValueP table_of(const Words& rows, const std::string& what, size_t width = 1);
// A tensor of strings with these elements; equal ones share a row.
ValueP words_value(const Words& elements, Ints dims, const std::string& what);
// The value of stored data, strings or numbers.
ValueP tensor_value(const Tensor& t, std::string name);
// Strings from their bytes u8[dims.., width], and back.
ValueP strings_value(Edit& e, keel_value bytes);
ValueP strings_value(const Data& bytes, const std::string& what);
keel_value bytes_of(Edit& e, Value& v);

// The bytes with zeros up to this width, which is not below theirs.
keel_value widened(Edit& e, keel_value bytes, keel_dim width);
// Refuses strings, unless the rule takes or moves them.
void refuse_strings(Call& c, const Rule& rule);
// The indices of these values in one table, which has the rows of all.
struct Joined {
  Ids indices;
  ValueP table;
};
Joined joined(Call& c, const std::vector<ValueP>& parts);

}  // namespace onnx_import
