// profile.h: times of the launches of a plan, and their export to a timeline (trace.cc).
#ifndef KEEL_CLI_PROFILE_H
#define KEEL_CLI_PROFILE_H
#include <keel/session.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/measure/regions.h"
#include "cli/measure/work.h"

namespace cli {

struct Node {
  std::string name, op, impl;
  Work work;
  const Region* region = nullptr;  // the fused nodes, if known
  std::vector<double> ms;          // per run: sum of its launches
  size_t launches = 0;
  size_t last = 0;  // the last observed run that reached it
};
struct Span {  // one launch; steady-clock times
  uint32_t run, node, lane;
  int64_t begin_ns, end_ns;
};
struct Profile {
  std::vector<Node> nodes;  // by launch
  std::vector<Span> spans;
  std::vector<double> plain_ms, watched_ms;
};

// Runs a plan made with the option "profile": once, `warmup` times, then `runs` pairs of a plain and an
// observed run. Ctrl-C ends it after the last complete pair.
Profile take_profile(const keel::Plan& plan, const std::vector<keel::Array>& in, int runs, int warmup);

// Writes to the current timeline. `report`: of the plan.
void show_launches(const Profile& profile, const nlohmann::ordered_json& report);

// `keel profile --program` (profile_program.cc).
int profile_program(const Args& args, const std::vector<std::string>& arguments);

}  // namespace cli
#endif
