// memory.cc: see memory.h. The live range of a value in the arena is from the launch that writes it to the
// last one that reads it; both are in the report of the plan.
#include "cli/show/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cli/show/print.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

struct LiveRange {
  std::string name, type;
  uint64_t bytes = 0, offset = 0;
  size_t first = 0, last = 0;  // launches
  bool at(size_t launch) const { return first <= launch && launch <= last; }
};

// Launches of a body use memory inside that of the enclosing launch.
std::vector<const Json*> outer_launches(const Json& report) {
  std::vector<const Json*> launches;
  for (const Json& l : report.at("launches"))
    if (!l.contains("body_of")) launches.push_back(&l);
  return launches;
}

// By place and name: a value that reuses an operand's memory is a different value.
std::vector<LiveRange> live_ranges(const std::vector<const Json*>& launches) {
  std::vector<LiveRange> all;
  std::map<std::pair<std::string, uint64_t>, size_t> known;
  for (size_t i = 0; i < launches.size(); i++)
    for (const char* side : {"out", "in"})
      for (const Json& v : launches[i]->at(side)) {
        if (v.value("place", "") != "arena" || v.at("bytes") == 0) continue;
        const std::pair key{v.at("name").get<std::string>(), v.at("offset").get<uint64_t>()};
        const auto [found, fresh] = known.emplace(key, all.size());
        if (fresh || (*side == 'o' && all[found->second].first < i)) {
          found->second = all.size();
          all.push_back(
              {key.first, v.at("type").get<std::string>(), v.at("bytes").get<uint64_t>(), key.second, i, i});
        }
        all[found->second].last = i;
      }
  return all;
}

struct Peak {
  size_t launch = 0;
  uint64_t bytes = 0;
};
Peak peak_of(const std::vector<LiveRange>& values, size_t launches) {
  std::vector<uint64_t> born(launches), gone(launches + 1);
  std::map<std::pair<uint64_t, size_t>, uint64_t> taken_over;  // by place and launch: counted once
  for (const LiveRange& v : values) taken_over[{v.offset, v.last}] = v.bytes;
  for (const LiveRange& v : values) {
    born[v.first] += v.bytes;
    gone[v.last + 1] += v.bytes;
    const auto before = taken_over.find({v.offset, v.first});
    if (before == taken_over.end() || v.last == v.first) continue;
    born[v.first] -= std::min(before->second, v.bytes);
    gone[v.first + 1] -= std::min(before->second, v.bytes);
  }
  Peak peak;
  uint64_t alive = 0;
  for (size_t i = 0; i < launches; i++) {
    alive += born[i] - gone[i];
    if (alive > peak.bytes) peak = {i, alive};
  }
  return peak;
}

void print_causes(const std::vector<LiveRange>& values, const Peak& peak) {
  constexpr size_t kMost = 8;
  std::vector<const LiveRange*> causes;
  for (const LiveRange& v : values)
    if (v.at(peak.launch)) causes.push_back(&v);
  std::sort(causes.begin(), causes.end(),
            [](const LiveRange* a, const LiveRange* b) { return a->bytes > b->bytes; });
  std::vector<std::vector<std::string>> rows{{"array", "type", "bytes", "offset", "launches"}};
  for (const LiveRange* v : causes)
    if (rows.size() <= kMost)
      rows.push_back({v->name, v->type, std::to_string(v->bytes), std::to_string(v->offset),
                      fmt::format("{} to {}", v->first, v->last)});
  print_table(rows);
  if (causes.size() > kMost) fmt::print("and {} smaller ones\n", causes.size() - kMost);
}

// One line per group of launches (at most 32), one cell per part of the arena (at most 64).
void print_map(const std::vector<LiveRange>& values, size_t launches, uint64_t arena) {
  constexpr size_t kLines = 32, kCells = 64;
  const size_t step = (launches + kLines - 1) / kLines;
  const uint64_t cell = std::max<uint64_t>((arena + kCells - 1) / kCells, 1);
  const size_t cells = (arena + cell - 1) / cell;
  fmt::print("map: a cell is {} bytes of the arena; ':' in use, '#' written\n", cell);
  for (size_t from = 0; from < launches; from += step) {
    std::string line(cells, ' ');
    const size_t to = std::min(from + step, launches);
    for (const LiveRange& v : values) {
      if (v.last < from || v.first >= to) continue;
      const char mark = v.first >= from ? '#' : ':';
      for (uint64_t c = v.offset / cell; c < cells && c * cell < v.offset + v.bytes; c++)
        if (line[c] != '#') line[c] = mark;
    }
    fmt::print("{:>6} |{}|\n", from, line);
  }
}

}  // namespace

void print_memory(const nlohmann::ordered_json& report, bool map) {
  if (!report.contains("arena_bytes") || report.at("arena_bytes") == 0) return;
  const std::vector<const Json*> launches = outer_launches(report);
  const std::vector<LiveRange> values = live_ranges(launches);
  const Peak peak = peak_of(values, launches.size());
  const uint64_t arena = report.at("arena_bytes"), unshared = report.at("unshared_bytes");
  fmt::print("\nmemory: {} for values between launches, {} without reuse ({:.1f} times as much)\n",
             human_bytes(static_cast<double>(arena)), human_bytes(static_cast<double>(unshared)),
             static_cast<double>(unshared) / static_cast<double>(arena));
  if (values.empty()) return;
  fmt::print("peak: {} alive at launch {}, \"{}\"\n", human_bytes(static_cast<double>(peak.bytes)),
             peak.launch, cell(launches[peak.launch]->at("node")));
  print_causes(values, peak);
  if (map) print_map(values, launches.size(), arena);
}

}  // namespace cli
