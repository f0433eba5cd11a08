// plan_devices.h: `keel plan --devices A,B,...`: the device of each node, and its cost on each device.
#ifndef KEEL_CLI_PLAN_DEVICES_H
#define KEEL_CLI_PLAN_DEVICES_H
#include <string>
#include <vector>

#include "cli/args.h"

namespace keel {
class Context;
}

namespace cli {

// The devices of "A,B,...": at least two, all usable.
std::vector<std::string> pick_devices(const keel::Context& context, const char* flag,
                                      const std::string& list);

int plan_devices_command(const Args& args, const std::string& devices);

}  // namespace cli
#endif
