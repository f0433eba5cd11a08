// regex_table.cc: an automaton that has one state for each set of places in the pattern that the bytes so far
// may have reached.
#include <algorithm>
#include <map>
#include <set>

#include "plugins/onnx/import/failure.h"
#include "plugins/onnx/ops/regex.h"

namespace onnx_import {
namespace {

constexpr size_t kMostSteps = 40000, kMostStates = 16384;

// One instruction of the pattern: go on at both, or at `to` if the place or the byte is right.
struct Step {
  enum Kind { kBoth, kAt, kByte, kEnd } kind;
  size_t to = 0, other = 0;
  Place place = {};
  uint8_t low = 0, high = 0;
};

// The neighbours of a place; kEdge: the text's start or end.
enum Neighbour { kEdge, kWordByte, kNewline, kOther };

Neighbour neighbour(int byte) {
  if (byte == '\n') return kNewline;
  const bool word = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
                    (byte >= 'a' && byte <= 'z');
  return word ? kWordByte : byte == 0 ? kEdge : kOther;
}

bool is_there(Place place, Neighbour before, Neighbour after) {
  const bool edge = (before == kWordByte) != (after == kWordByte);
  switch (place) {
    case Place::kTextStart:
      return before == kEdge;
    case Place::kTextEnd:
      return after == kEdge;
    case Place::kLineStart:
      return before == kEdge || before == kNewline;
    case Place::kLineEnd:
      return after == kEdge || after == kNewline;
    case Place::kWordEdge:
      return edge;
    default:
      return !edge;
  }
}

// The pattern from its end to its start: each part knows the step that follows it.
class Program {
 public:
  Program(const Regex& regex, std::string what) : what_(std::move(what)) {
    steps.push_back({.kind = Step::kEnd});
    start = before(regex, 0);
  }
  std::vector<Step> steps;
  size_t start = 0;

 private:
  // Repetitions of nothing count, too.
  void spend() {
    if (++spent_ > kMostSteps)
      refuse(KEEL_UNIMPLEMENTED, cat(what_, ": the pattern has more than ", kMostSteps,
                                     " steps when its "
                                     "repetitions are written out; expected shorter ones"));
  }
  size_t add(const Step& step) {
    spend();
    steps.push_back(step);
    return steps.size() - 1;
  }
  size_t both(size_t one, size_t other) { return add({.kind = Step::kBoth, .to = one, .other = other}); }

  size_t before(const Regex& r, size_t next) {
    spend();
    if (r.kind == Regex::kOneOf) return one_of(r.ranges, next);
    if (r.kind == Regex::kAt) return add({.kind = Step::kAt, .to = next, .other = 0, .place = r.place});
    if (r.kind == Regex::kRepeat) return repeat(r, next);
    if (r.kind == Regex::kChoice) {
      size_t made = before(r.parts.back(), next);
      for (size_t k = r.parts.size() - 1; k-- > 0;) made = both(before(r.parts[k], next), made);
      return made;
    }
    for (size_t k = r.parts.size(); k-- > 0;) next = before(r.parts[k], next);
    return next;
  }

  size_t repeat(const Regex& r, size_t next) {
    size_t made = next;
    if (r.most < 0) {
      const size_t loop = both(next, next);
      const size_t again = before(r.parts[0], loop);
      steps[loop].to = again;
      made = loop;
    }
    for (int k = r.least; k < r.most; k++) made = both(before(r.parts[0], made), next);
    for (int k = 0; k < r.least; k++) made = before(r.parts[0], made);
    return made;
  }

  size_t one_of(const Ranges& ranges, size_t next) {
    size_t made =
        add({.kind = Step::kByte, .to = next, .other = 0, .place = {}, .low = 1, .high = 0});  // none
    const auto also = [&](size_t way) { made = both(way, made); };
    for (const auto& [low, high] : ranges) split(low, high, next, also);
    return made;
  }

  // Ranges of code points whose bytes are independent ranges.
  template <class F>
  void split(CodePoint low, CodePoint high, size_t next, F&& also) {
    for (CodePoint last : {0x7fu, 0x7ffu, 0xffffu})
      if (low <= last && high > last) {
        split(low, last, next, also);
        return split(last + 1, high, next, also);
      }
    for (CodePoint tail = 0x3f; tail <= 0x3ffff && high >= 0x80; tail = tail << 6 | 0x3f) {
      if ((low & ~tail) == (high & ~tail)) continue;  // in one block
      if (low & tail) {
        split(low, low | tail, next, also);
        return split((low | tail) + 1, high, next, also);
      }
      if ((high & tail) != tail) {
        split(low, (high & ~tail) - 1, next, also);
        return split(high & ~tail, high, next, also);
      }
    }
    std::string first, last;
    append_utf8(first, low), append_utf8(last, high);
    size_t way = next;
    for (size_t k = first.size(); k-- > 0;)
      way = add({.kind = Step::kByte,
                 .to = way,
                 .other = 0,
                 .place = {},
                 .low = static_cast<uint8_t>(std::max(first[k] & 0xff, 1)),  // 0 ends strings
                 .high = static_cast<uint8_t>(last[k])});
    also(way);
  }

  size_t spent_ = 0;
  std::string what_;
};

class Builder {
 public:
  Builder(const Regex& regex, std::string what) : program_(regex, what), what_(std::move(what)) {}

  RegexTable built() {
    find_classes();
    state_of({{}, kOther}), state_of({{SIZE_MAX}, kOther});  // kNoMatch, kMatch
    state_of({{program_.start}, kEdge});
    for (size_t s = 0; s < states_.size(); s++)
      for (int byte : samples_) {
        const int64_t next = s < 2 ? static_cast<int64_t>(s) : after(State(*states_[s]), byte);
        table_.next.push_back(next);
      }
    return std::move(table_);
  }

 private:
  using State = std::pair<std::set<size_t>, Neighbour>;  // steps to go on at, and the byte before

  // Bytes that all steps treat alike are one class; samples_ has one of each.
  void find_classes() {
    std::vector<bool> cut(257);
    for (int b = 1; b < 256; b++) cut[static_cast<size_t>(b)] = neighbour(b) != neighbour(b - 1);
    for (const Step& step : program_.steps)
      if (step.kind == Step::kByte && step.low <= step.high) cut[step.low] = cut[step.high + 1u] = true;
    cut[1] = true;
    for (int b = 0; b < 256; b++) {
      if (b == 0 || cut[static_cast<size_t>(b)]) samples_.push_back(b);
      table_.class_of.push_back(std::ssize(samples_) - 1);
    }
    table_.classes = std::ssize(samples_);
  }

  int64_t state_of(State state) {
    const auto [at, added] = numbers_.emplace(std::move(state), std::ssize(states_));
    if (added) states_.push_back(&at->first);
    if (states_.size() > kMostStates)
      refuse(KEEL_UNIMPLEMENTED, cat(what_, ": the pattern needs more than ", kMostStates,
                                     " states; expected shorter repetitions"));
    return at->second;
  }

  int64_t after(const State& state, int byte) {
    std::set<size_t> seen, next;
    std::vector<size_t> todo(state.first.begin(), state.first.end());
    const Neighbour ahead = neighbour(byte);
    while (!todo.empty()) {
      const size_t at = todo.back();
      todo.pop_back();
      if (!seen.insert(at).second) continue;
      const Step& step = program_.steps[at];
      if (step.kind == Step::kEnd && byte == 0) return RegexTable::kMatch;
      if (step.kind == Step::kByte && step.low <= byte && byte <= step.high) next.insert(step.to);
      if (step.kind == Step::kBoth) todo.push_back(step.other), todo.push_back(step.to);
      if (step.kind == Step::kAt && is_there(step.place, state.second, ahead)) todo.push_back(step.to);
    }
    return next.empty() ? int64_t{RegexTable::kNoMatch} : state_of({std::move(next), ahead});
  }

  Program program_;
  std::string what_;
  std::vector<int> samples_;
  std::map<State, int64_t> numbers_;
  std::vector<const State*> states_;
  RegexTable table_;
};

}  // namespace

RegexTable table_of(const Regex& regex, const std::string& what) { return Builder(regex, what).built(); }

}  // namespace onnx_import
