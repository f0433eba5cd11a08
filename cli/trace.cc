// trace.cc: a profile as a file for Chrome's tracing and Perfetto: complete events on tracks. One track has
// what came before the runs, with the passes inside `prepare`; each device has one for every lane, and one
// that is not the device that was asked for is a fallback.
#include <algorithm>
#include <fstream>
#include <map>

#include "exit.h"
#include "load.h"
#include "print.h"
#include "profile.h"

namespace cli {
namespace {

class Trace {
 public:
  Trace(std::ostream& out, int64_t zero) : out_(out), zero_(zero) {
    out_ << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  }
  void process(const std::string& name) { named("process_name", 0, name); }
  void event(const std::string& track, const std::string& name, const std::string& category, int64_t begin_ns,
             int64_t end_ns, const Json& args) {
    const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1e3; };
    write({{"name", name},
           {"cat", category},
           {"ph", "X"},
           {"ts", us(begin_ns - zero_)},
           {"dur", us(end_ns - begin_ns)},
           {"pid", 1},
           {"tid", number(track)},
           {"args", args}});
  }
  void end() { out_ << "\n]}\n"; }

 private:
  size_t number(const std::string& track) {
    const auto [at, added] = tracks_.try_emplace(track, tracks_.size() + 1);
    if (added) named("thread_name", at->second, track);
    return at->second;
  }
  void named(const char* what, size_t track, const std::string& name) {
    write({{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", track}, {"args", {{"name", name}}}});
  }
  void write(const Json& json) {
    out_ << (first_ ? "\n" : ",\n") << json.dump(-1, ' ', false, Json::error_handler_t::replace);
    first_ = false;
  }

  std::ostream& out_;
  const int64_t zero_;
  std::map<std::string, size_t> tracks_;
  bool first_ = true;
};

// Passes follow each other; where in `prepare` they began is not known, so they stand at its beginning.
void write_phases(Trace& trace, const Profile& profile, const Json& report) {
  for (const Phase& s : profile.phases)
    trace.event("planning", s.name, "phase", s.begin_ns, s.end_ns, Json::object());
  const auto prepare = std::ranges::find(profile.phases, "prepare", &Phase::name);
  if (prepare == profile.phases.end()) return;
  int64_t at = prepare->begin_ns;
  for (const Json& p : report.value("passes", Json::array())) {
    const auto end = std::min(prepare->end_ns, at + static_cast<int64_t>(p.at("ms").get<double>() * 1e6));
    trace.event("planning", cell(p.at("name")), "pass", at, end, {{"edits", p.at("edits")}});
    at = end;
  }
}

// Of each launch, where it runs.
std::vector<std::string> tracks_of(const Profile& profile, const Json& report) {
  const std::string device = cell(report.at("device"));
  std::vector<std::string> tracks(profile.nodes.size(), device);
  const Json launches = report.value("launches", Json::array());
  for (size_t i = 0; i < std::min(tracks.size(), launches.size()); i++)
    if (const std::string on = cell(launches[i].at("device")); on != device) tracks[i] = on + " (fallback)";
  return tracks;
}

}  // namespace

void write_trace(const std::string& path, const Profile& profile, const std::string& file,
                 const Json& report) {
  std::ofstream out(path);
  if (!out) throw Fail(kBadFile, "cannot write " + path);
  const std::vector<std::string> tracks = tracks_of(profile, report);
  Trace trace(out, profile.phases.empty() ? 0 : profile.phases.front().begin_ns);
  trace.process("keel " + file);
  write_phases(trace, profile, report);
  for (const Span& span : profile.spans) {
    const Node& node = profile.nodes[span.node];
    const std::string lane = span.lane ? ", lane " + std::to_string(span.lane) : "";
    trace.event(tracks[span.node] + lane, node.name, node.op, span.begin_ns, span.end_ns,
                {{"op", node.op},
                 {"impl", node.impl},
                 {"run", span.run},
                 {"flops", node.work.flops},
                 {"bytes", node.work.bytes}});
  }
  trace.end();
  if (!out.flush()) throw Fail(kBadFile, "cannot write " + path);
}

}  // namespace cli
