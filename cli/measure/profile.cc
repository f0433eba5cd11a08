// profile.cc: takes a profile.
//
// How to read it: plain and observed runs of one plan alternate; the plain ones measure the overhead of
// observation. Observation costs nothing during a launch, so launch times are accurate to about a
// microsecond.
#include "cli/measure/profile.h"

#include <keel/timeline.hpp>
#include <utility>

#include "cli/interrupt.h"
#include "cli/measure/timing.h"
#include "cli/terminal.h"

namespace cli {
namespace {

void watched_run(const keel::Plan& plan, const std::vector<keel::Array>& in, uint32_t run, Profile& profile) {
  Clock::time_point start = Clock::now();
  plan.run_observed(in, [&](const keel_event& event) {
    if (event.index >= profile.nodes.size()) profile.nodes.resize(event.index + 1);
    Node& node = profile.nodes[event.index];
    if (node.op.empty()) node = {event.node, event.op, event.impl, work_of(event), nullptr, {}};
    if (std::exchange(node.last, profile.watched_ms.size() + 1) != profile.watched_ms.size() + 1 ||
        node.ms.empty())
      node.ms.push_back(0);
    node.ms.back() += static_cast<double>(event.end_ns - event.begin_ns) / 1e6;
    node.launches++;
    profile.spans.push_back({run, event.index, event.lane, event.begin_ns, event.end_ns});
    return false;
  });
  profile.watched_ms.push_back(ms_since(start));
}

}  // namespace

Profile take_profile(const keel::Plan& plan, const std::vector<keel::Array>& in, int runs, int warmup) {
  Profile profile;
  Progress progress("profile");
  {
    keel::TimedBlock first("first run", "planning");
    watched_run(plan, in, 0, profile);
  }
  for (int i = 0; i < warmup && kept_going([&] { watched_run(plan, in, 0, profile); }); i++)
    progress.count("warm-up", i + 1, warmup);
  size_t launches = profile.nodes.size();
  profile.spans.clear();
  profile.watched_ms.clear();
  for (Node& node : profile.nodes) {
    node.ms.clear();
    node.launches = 0;
  }
  profile.spans.reserve(launches * static_cast<size_t>(runs));
  for (int i = 0; i < runs; i++) {
    Clock::time_point start = Clock::now();
    if (!kept_going([&] { plan.run(in); })) break;
    double ms = ms_since(start);
    if (!kept_going([&] { watched_run(plan, in, static_cast<uint32_t>(i), profile); })) break;
    profile.plain_ms.push_back(ms);
    progress.count("run", i + 1, runs);
  }
  profile.watched_ms.resize(profile.plain_ms.size());
  return profile;
}

}  // namespace cli
