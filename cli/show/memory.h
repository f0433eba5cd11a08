// memory.h: the memory of a plan, for people to read.
#ifndef KEEL_CLI_MEMORY_H
#define KEEL_CLI_MEMORY_H
#include <nlohmann/json.hpp>

namespace cli {

// From a plan's report: reuse, the launch at which most is alive, the arrays that are to blame; where asked
// for, what lies where from launch to launch. Nothing where there is no arena.
void print_memory(const nlohmann::ordered_json& report, bool map);

}  // namespace cli
#endif
