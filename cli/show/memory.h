// memory.h: prints the memory of a plan.
#ifndef KEEL_CLI_MEMORY_H
#define KEEL_CLI_MEMORY_H
#include <nlohmann/json.hpp>

namespace cli {

// From a plan's report: reuse, the launch with the peak and its largest arrays; optionally a map of the arena
// over the launches. Nothing if there is no arena.
void print_memory(const nlohmann::ordered_json& report, bool map);

}  // namespace cli
#endif
