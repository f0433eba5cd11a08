// profile.h: what `keel profile` gathered, and what it leaves on a timeline (trace.cc).
#ifndef KEEL_CLI_PROFILE_H
#define KEEL_CLI_PROFILE_H
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
  const Region* region = nullptr;  // what was fused into it, where that is known
  std::vector<double> ms;          // by run that came to it: of all its launches together
  size_t launches = 0;
  size_t last = 0;  // the watched run that came to it last
};
struct Span {  // one launch; times by the steady clock
  uint32_t run, node, lane;
  int64_t begin_ns, end_ns;
};
struct Profile {
  std::vector<Node> nodes;  // by launch
  std::vector<Span> spans;
  std::vector<double> plain_ms, watched_ms;
};

// On the timeline that was begun. `report`: of the plan.
void show_launches(const Profile& profile, const nlohmann::ordered_json& report);

// `keel profile --program` (profile_program.cc).
int profile_program(const Args& args, const std::vector<std::string>& arguments);

}  // namespace cli
#endif
