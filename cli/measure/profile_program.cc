// profile_program.cc: `keel profile --program`: runs any program that uses Keel and summarises its timeline:
// functions with the reason of each retrace, passes, launches per device.
//
// How to read it: libkeel writes a timeline if KEEL_TRACE is set; this file reads it back.
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/measure/profile.h"
#include "cli/measure/timing.h"
#include "cli/show/print.h"

namespace cli {
namespace {

struct Finished {
  int status = 0;
  double ms = 0;
};

Finished run_program(const Args& args, const std::vector<std::string>& arguments, const std::string& trace) {
  std::vector<char*> words{const_cast<char*>(args.file.c_str())};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  setenv("KEEL_TRACE", trace.c_str(), 1);
  const Clock::time_point start = Clock::now();
  pid_t child = 0;
  if (int error = posix_spawnp(&child, words[0], nullptr, nullptr, words.data(), environ))
    throw Fail(kBadFile, fmt::format("cannot run {}: {}", args.file, std::strerror(error)),
               "name a program, with its folder if it is not on PATH");
  Finished done;
  while (waitpid(child, &done.status, 0) < 0 && errno == EINTR) {
  }
  done.ms = ms_since(start);
  return done;
}

Json read_trace(const std::string& path, const std::string& program) {
  std::ifstream in(path);
  if (in) {
    Json events = Json::parse(in, nullptr, false);
    if (events.is_array()) return events;
  }
  throw Fail(kBadFile, program + " did not write a complete timeline",
             "it must open a Keel context, and exit normally: not by a signal or _exit");
}

std::map<int64_t, std::string> tracks_of(const Json& events) {
  std::map<int64_t, std::string> tracks;
  for (const Json& e : events)
    if (e.at("ph") == "M") tracks[e.at("tid")] = cell(e.at("args").at("name"));
  return tracks;
}

// Merges spans of the same kind and name (and track, if given), in order of first occurrence.
class Sums {
 public:
  void add(const Json& keys, double us, uint64_t edits = 0) {
    auto [at, added] = index_.try_emplace(keys.dump(), rows_.size());
    if (added) {
      rows_.push_back(keys);
      rows_.back().update({{"count", 0}, {"ms", 0.0}, {"edits", 0}});
    }
    Json& row = rows_[at->second];
    row["count"] = row.at("count").get<uint64_t>() + 1;
    row["ms"] = row.at("ms").get<double>() + us / 1e3;
    row["edits"] = row.at("edits").get<uint64_t>() + edits;
  }
  const Json& rows() const { return rows_; }

 private:
  std::map<std::string, size_t> index_;
  Json rows_ = Json::array();
};

Json summary(const Json& events) {
  const std::map<int64_t, std::string> tracks = tracks_of(events);
  Json traces = Json::array();
  Sums planned, ran;
  for (const Json& e : events) {
    if (e.at("ph") != "X") continue;
    const std::string kind = cell(e.at("cat")), name = cell(e.at("name"));
    const std::string& track = tracks.at(e.at("tid"));
    const double us = e.at("dur");
    const Json& args = e.at("args");
    if (kind == "trace" || kind == "retrace")
      traces.push_back(
          {{"call", name}, {"again", kind == "retrace"}, {"ms", us / 1e3}, {"reason", args.at("reason")}});
    else if (track.starts_with("planning"))
      planned.add({{"kind", kind}, {"name", name}}, us, args.value("edits", uint64_t{0}));
    else
      ran.add({{"track", track},
               {"kind", kind},
               {"name", kind == "run" || kind == "program" || kind == "eager" ? name : ""}},
              us);
  }
  return {{"traces", traces}, {"planned", planned.rows()}, {"ran", ran.rows()}};
}

std::string ms_text(const Json& row) { return fmt::format("{:.3f}", row.at("ms").get<double>()); }

void print_summary(const Json& json) {
  fmt::print("{} ended with {} after {:.1f} ms\n", cell(json.at("program")), cell(json.at("exit")),
             json.at("ms").get<double>());
  std::vector<std::vector<std::string>> table{{"ms", "traced", "why"}};
  for (const Json& t : json.at("traces"))
    table.push_back({ms_text(t), cell(t.at("call")), cell(t.at("reason"))});
  if (table.size() > 1) fmt::print("\n"), print_table(table);
  table = {{"ms", "planned", "name", "times", "edits"}};
  for (const Json& p : json.at("planned"))
    table.push_back(
        {ms_text(p), cell(p.at("kind")), cell(p.at("name")), cell(p.at("count")), cell(p.at("edits"))});
  if (table.size() > 1) fmt::print("\n"), print_table(table);
  table = {{"ms", "ran on", "what", "name", "times"}};
  for (const Json& r : json.at("ran"))
    table.push_back(
        {ms_text(r), cell(r.at("track")), cell(r.at("kind")), cell(r.at("name")), cell(r.at("count"))});
  if (table.size() > 1) fmt::print("\n"), print_table(table);
}

}  // namespace

int profile_program(const Args& args, const std::vector<std::string>& arguments) {
  const bool keep = !args.trace.empty();
  const std::string path =
      keep ? args.trace
           : (std::filesystem::temp_directory_path() / fmt::format("keel-trace-{}.json", getpid())).string();
  std::filesystem::remove(path);
  const Finished done = run_program(args, arguments, path);
  const bool ended = WIFEXITED(done.status);
  Json json{{"schema", "keel.profile_program/1"},
            {"program", args.file},
            {"exit", ended ? std::to_string(WEXITSTATUS(done.status))
                           : "signal " + std::to_string(WTERMSIG(done.status))},
            {"ms", done.ms}};
  json.update(summary(read_trace(path, args.file)));
  if (!keep) std::filesystem::remove(path);
  args.json ? print_json(json) : print_summary(json);
  return ended ? WEXITSTATUS(done.status) : kCheckFailed;
}

}  // namespace cli
