// pass_order.cc: the order of passes: by phase; within a phase according to `after` and `before`, otherwise
// in load order. An unsatisfiable order is an error when the plugin is loaded.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernel/runtime/plugin/registry.h"

namespace keel {
namespace {

std::vector<std::string> Words(const char* text) {
  return text ? absl::StrSplit(text, ' ', absl::SkipEmpty()) : std::vector<std::string>();
}

bool Contains(const char* text, const char* name) {
  std::vector<std::string> words = Words(text);
  return std::find(words.begin(), words.end(), name) != words.end();
}

// Whether a must run before b. Only passes of the same phase are ordered.
bool Precedes(const Pass& a, const Pass& b) {
  if (a.table.phase != b.table.phase) return false;
  return Contains(b.table.after, a.table.name) || Contains(a.table.before, b.table.name);
}

// A cycle of passes. Every remaining pass of the first phase depends on another one.
std::string Cycle(const std::vector<Pass>& left) {
  auto first = std::min_element(left.begin(), left.end(),
                                [](const Pass& a, const Pass& b) { return a.table.phase < b.table.phase; });
  std::vector<size_t> path{static_cast<size_t>(first - left.begin())};
  for (;;) {
    size_t previous = 0;
    while (!Precedes(left[previous], left[path.back()])) previous++;
    auto seen = std::find(path.begin(), path.end(), previous);
    if (seen != path.end()) {
      std::vector<std::string> names{left[previous].table.name};
      for (auto it = path.end(); it != seen;) names.emplace_back(left[*--it].table.name);
      return absl::StrJoin(names, " before ");
    }
    path.push_back(previous);
  }
}

}  // namespace

absl::Status CheckPass(const keel_pass& p, size_t i) {
  std::string_view name = p.name ? p.name : "";
  bool word = !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!word) return Invalid("pass ", i, ": name \"", name, "\": expected lower case letters, digits and '_'");
  if (p.level < 1 || p.level > 3) return Invalid("pass \"", name, "\": level ", p.level, ", expected 1 to 3");
  if (p.exactness < KEEL_EXACT || p.exactness > KEEL_FAST)
    return Invalid("pass \"", name, "\": exactness ", p.exactness, ", expected 0 to 2");
  constexpr int32_t kPhases[] = {KEEL_PHASE_CANON, KEEL_PHASE_PLACED, KEEL_PHASE_LOWER};
  if (std::find(std::begin(kPhases), std::end(kPhases), p.phase) == std::end(kPhases))
    return Invalid("pass \"", name, "\": phase ", p.phase, ", expected 100, 200 or 300");
  return absl::OkStatus();
}

absl::Status ReadPasses(const keel_plugin& t, Plugin* plugin) {
  RETURN_IF_ERROR(CheckRows("passes", t.passes, t.n_passes, t.pass_stride, KEEL_END(keel_pass, run)));
  for (uint32_t i = 0; i < t.n_passes; i++) {
    const char* row = reinterpret_cast<const char*>(t.passes) + uint64_t{i} * t.pass_stride;
    const auto* table = reinterpret_cast<const keel_pass*>(row);
    RETURN_IF_ERROR(CheckPass(*table, i));
    if (!table->run) return Invalid("pass \"", table->name, "\" has no run");
    plugin->passes.push_back({*table, plugin});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Pass>> OrderPasses(const std::vector<Pass>& all) {
  std::vector<Pass> left, more;
  for (const Pass& p : all) (p.extends ? more : left).push_back(p);
  for (size_t i = 0; i < left.size(); i++)
    for (size_t j = 0; j < i; j++)
      if (std::string_view(left[i].table.name) == left[j].table.name)
        return Error(absl::StatusCode::kAlreadyExists, "pass \"", left[i].table.name,
                     "\" is already defined by plugin \"", left[j].plugin->name, "\"");
  std::vector<Pass> out;
  while (!left.empty()) {
    auto ready = std::find_if(left.begin(), left.end(), [&](const Pass& p) {
      return std::none_of(left.begin(), left.end(), [&](const Pass& other) {
        return other.table.phase < p.table.phase || Precedes(other, p);
      });
    });
    if (ready == left.end()) return Invalid("its passes cannot be ordered: ", Cycle(left));
    out.push_back(*ready);
    left.erase(ready);
  }
  for (Pass& p : more) {  // an extension without its pass waits until a plugin defines the pass
    auto same = [&](const Pass& other) { return std::string_view(p.table.name) == other.table.name; };
    auto last = std::find_if(out.rbegin(), out.rend(), same);
    if (last == out.rend()) continue;
    p.table.phase = last->table.phase;
    p.table.level = last->table.level;
    p.table.exactness = last->table.exactness;
    out.insert(last.base(), p);
  }
  return out;
}

}  // namespace keel
