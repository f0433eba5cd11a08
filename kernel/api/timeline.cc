// timeline.cc: the timeline (keel.h). Spans of the program are checked, so that the file stays valid JSON.
#include "kernel/base/timeline.h"

#include <algorithm>
#include <cctype>

#include "kernel/api/handles.h"
#include "kernel/language/graph/names.h"

using namespace keel;

namespace {

// Recognises JSON (RFC 8259).
class JsonChecker {
 public:
  explicit JsonChecker(std::string_view text) : rest_(text) {}
  bool IsObject() {
    Blanks();
    return Next() == '{' && Value(0) && rest_.empty();
  }

 private:
  static constexpr int kMaxDepth = 64;

  char Next() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool Skip(std::string_view text) {
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void Blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  // A value with the blanks around it.
  bool Value(int depth) {
    if (depth > kMaxDepth) return false;
    Blanks();
    const char c = Next();
    const bool is_value = c == '{'   ? Members(depth, '}')
                          : c == '[' ? Members(depth, ']')
                          : c == '"' ? String()
                                     : Skip("true") || Skip("false") || Skip("null") || Number();
    Blanks();
    return is_value;
  }
  // A list or an object.
  bool Members(int depth, char end) {
    rest_.remove_prefix(1);
    Blanks();
    if (Next() == end) return Skip({&end, 1});
    for (;;) {
      Blanks();
      if (end == '}' && !(String() && (Blanks(), Skip(":")))) return false;
      if (!Value(depth + 1)) return false;
      if (!Skip(",")) return Skip({&end, 1});
    }
  }
  bool String() {
    if (!Skip("\"")) return false;
    for (;;) {
      const size_t end = rest_.find_first_of("\"\\");
      if (end == rest_.npos || HasControl(rest_.substr(0, end))) return false;
      rest_.remove_prefix(end);
      if (Skip("\"")) return true;
      if (!Escape()) return false;
    }
  }
  static bool HasControl(std::string_view text) {
    return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < ' '; });
  }
  bool Escape() {
    rest_.remove_prefix(1);
    if (Skip("u")) {
      const std::string_view digits = rest_.substr(0, 4);
      rest_.remove_prefix(digits.size());
      return digits.size() == 4 &&
             std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c) != 0; });
    }
    return Next() && std::string_view("\"\\/bfnrt").find(Next()) != std::string_view::npos && Any();
  }
  bool Any() {
    rest_.remove_prefix(1);
    return true;
  }
  bool Digits() {
    const size_t count = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    rest_.remove_prefix(count);
    return count > 0;
  }
  bool Number() {
    Skip("-");
    if (!Skip("0") && !Digits()) return false;
    if (Skip(".") && !Digits()) return false;
    if (!Skip("e") && !Skip("E")) return true;
    if (!Skip("+")) Skip("-");
    return Digits();
  }

  std::string_view rest_;
};

}  // namespace

keel_rc keel_timeline_begin(const char* path, int32_t runs, keel_error** err) {
  return Guard(err, "path", {path}, [&]() -> absl::Status {
    return Timeline::Begin(path, runs ? Timeline::kRuns : Timeline::kPlanning);
  });
}

keel_rc keel_timeline_end(keel_error** err) {
  return Guard(err, [] { return Timeline::End(); });
}

int64_t keel_timeline_now(void) { return Now(); }

void keel_timeline_span(const char* track, const char* name, const char* kind, int64_t begin_ns,
                        int64_t end_ns, const char* args) {
  if (!Timeline::On() || !track || !name || !kind) return;
  (void)Guard(nullptr, [&] {
    const int64_t begin = std::max(begin_ns, int64_t{0}), end = std::max(begin, end_ns);
    const bool usable = args && IsUtf8(args) && JsonChecker(args).IsObject();
    Timeline::Add(track, {name, kind, begin, end, usable ? args : "{}"});
    return absl::OkStatus();
  });
}
