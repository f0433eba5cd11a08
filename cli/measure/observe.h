// observe.h: runs that are watched node by node: --watch, --break and compare --nodes.
#ifndef KEEL_CLI_OBSERVE_H
#define KEEL_CLI_OBSERVE_H
#include <keel/session.hpp>
#include <string>
#include <vector>

#include "cli/data/load.h"
#include "cli/data/node_names.h"
#include "cli/data/npy.h"

namespace cli {

// A launch as it was seen, with copies of its values.
struct Seen {
  uint32_t index = 0;
  std::string node, op, impl, in_model;  // in_model: what an imported model calls the node; "": nothing else
  NamedArrays in, out;
};
// Names of a launch's values. Events carry no names of operands, and values inside the body of an op have
// none at all: those are called after their node and how many of that name came before: "v19/matmul#2".
struct LaunchNames {
  std::vector<std::string> in, out;
};
std::vector<LaunchNames> launch_names(const keel::Plan& plan, std::span<const keel::Array> in);
Seen copy_event(const keel::Context& context, const keel_event& event, const std::vector<LaunchNames>& names);
std::string seen_title(const Seen& seen);  // "node 3 "h" (matmul, impl x)"
void print_values(const char* title, const NamedArrays& arrays);
Json seen_json(const Seen& seen);

// What --watch looks for, and in which nodes.
struct Watch {
  bool nan = false, inf = false;
  std::string nodes = "*";
};
// Does the pattern name the node, one of its results, or what the model calls it?
bool is_called(const keel_event& event, const NodeNames& names, const std::string& pattern);
Watch parse_watch(const std::string& text);
// "2 NaN, 1 inf" if the array has what is watched for, else "".
std::string watched(const keel::Array& array, Watch watch);

}  // namespace cli
#endif
