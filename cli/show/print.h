// print.h: arrays and tables as text, arrays as JSON.
#ifndef KEEL_CLI_PRINT_H
#define KEEL_CLI_PRINT_H
#include <cstdio>
#include <keel/session.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cli {

using keel::type_text;  // "f32[2, 3]"
// "[[1, 2]\n [3, 4]]"; arrays of more elements than `whole` show the first and last three along each dim.
std::string array_text(const keel::Array& array, int64_t whole = 1000);
// {"dtype": "f32", "shape": [2], "data": [1, "nan"]}: row-major; NaN and infinities as strings.
nlohmann::ordered_json array_json(const keel::Array& array);
void print_json(const nlohmann::ordered_json& json);
// Columns padded to the widest cell, cut to the width of a terminal; the first row is the header.
void print_table(const std::vector<std::vector<std::string>>& rows, std::FILE* to = stdout);
// A JSON value as a cell: strings bare, lists joined.
std::string cell(const nlohmann::ordered_json& json);
// Without line breaks, and cut.
std::string one_line(const std::string& text, size_t longest);
std::string human_bytes(double bytes);

}  // namespace cli
#endif
