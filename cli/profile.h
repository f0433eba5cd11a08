// profile.h: what `keel profile` gathered, and the trace that it writes of it (trace.cc).
#ifndef KEEL_CLI_PROFILE_H
#define KEEL_CLI_PROFILE_H
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "work.h"

namespace cli {

struct Node {
  std::string name, op, impl;
  Work work;
  std::vector<double> ms;  // by run that came to it: of all its launches together
  size_t launches = 0;
  size_t last = 0;  // the watched run that came to it last
};
struct Span {  // one launch; times by the steady clock
  uint32_t run, node, lane;
  int64_t begin_ns, end_ns;
};
struct Phase {  // before the runs
  std::string name;
  int64_t begin_ns = 0, end_ns = 0;
};
struct Profile {
  std::vector<Node> nodes;  // by launch
  std::vector<Span> spans;
  std::vector<Phase> phases;
  std::vector<double> plain_ms, watched_ms;
};

// `report`: of the plan.
void write_trace(const std::string& path, const Profile& profile, const std::string& file,
                 const nlohmann::ordered_json& report);

}  // namespace cli
#endif
