// letters.h: code points and UTF-8, and the simple case mappings of Unicode, from the C library.
#pragma once
#include <string>
#include <vector>

#include "plugins/onnx/model/model.h"

namespace onnx_import {

using CodePoint = uint32_t;
constexpr CodePoint kCased = 0x20000;  // no letter from here on has a case

void append_utf8(std::string& to, CodePoint c);
std::vector<CodePoint> code_points(Text utf8);  // of text that is UTF-8

enum class Case { kLower, kUpper };
// The case mapping of each code point below kCased; refuses a C library without the locale C.UTF-8.
const std::vector<CodePoint>& case_mapping(Case to);
std::string in_case(Text utf8, Case to);

}  // namespace onnx_import
