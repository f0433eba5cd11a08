// regex.h: regular expressions in RE2's syntax, as a table that reads a string's bytes.
//
// regex_parse.cc makes a tree of the pattern, regex_table.cc an automaton without choices of the tree.
#pragma once
#include <memory>
#include <utility>

#include "plugins/onnx/ops/letters.h"

namespace onnx_import {

using Range = std::pair<CodePoint, CodePoint>;  // both ends are in it
using Ranges = std::vector<Range>;              // sorted, apart from each other
constexpr CodePoint kLastPoint = 0x10ffff;

enum class Place { kTextStart, kTextEnd, kLineStart, kLineEnd, kWordEdge, kNoWordEdge };

struct Regex {
  enum Kind { kEmpty, kOneOf, kAt, kSequence, kChoice, kRepeat } kind = kEmpty;
  Ranges ranges = {};             // kOneOf: one character
  Place place = {};               // kAt: nothing, but only there
  std::vector<Regex> parts = {};  // kSequence, kChoice; kRepeat: one
  int least = 0, most = 0;        // kRepeat; most -1: no limit
};

Regex parse_regex(Text pattern, const std::string& what);

// Steps: state = next[state * classes + class_of[byte]], from kStart; the byte 0 ends a string, after which
// the state is kMatch or kNoMatch and stays.
struct RegexTable {
  enum : int64_t { kNoMatch, kMatch, kStart };
  int64_t classes = 0;
  std::vector<int64_t> class_of, next;
};
RegexTable table_of(const Regex& regex, const std::string& what);

}  // namespace onnx_import
