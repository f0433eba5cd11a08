// observe.h: runs observed node by node: --watch, --break and compare --nodes.
#ifndef KEEL_CLI_OBSERVE_H
#define KEEL_CLI_OBSERVE_H
#include <keel/session.hpp>
#include <string>
#include <vector>

#include "cli/data/load.h"
#include "cli/data/node_names.h"
#include "cli/data/npy.h"

namespace cli {

// An observed launch, with copies of its values.
struct Seen {
  uint32_t index = 0;
  std::string node, op, impl, in_model;  // in_model: the node's name in the imported model, or ""
  NamedArrays in, out;
};
// Names of a launch's values. Events do not name operands, and values inside an op's body have no name: they
// are named after their node and the number of earlier values of that name: "v19/matmul#2".
struct LaunchNames {
  std::vector<std::string> in, out;
};
std::vector<LaunchNames> launch_names(const keel::Plan& plan, std::span<const keel::Array> in);
Seen copy_event(const keel::Context& context, const keel_event& event, const std::vector<LaunchNames>& names);
std::string seen_title(const Seen& seen);  // "node 3 "h" (matmul, impl x)"
void print_values(const char* title, const NamedArrays& arrays);
Json seen_json(const Seen& seen);

// The condition of --watch and its nodes.
struct Watch {
  bool nan = false, inf = false;
  std::string nodes = "*";
};
// Whether the pattern matches the node, one of its results, or its name in the model.
bool is_called(const keel_event& event, const NodeNames& names, const std::string& pattern);
Watch parse_watch(const std::string& text);
// "2 NaN, 1 inf" if the array matches the condition, else "".
std::string watched(const keel::Array& array, Watch watch);

}  // namespace cli
#endif
