// plan_devices.h: `keel plan --devices A,B,...`: the device of each node, and its cost on each device.
#ifndef KEEL_CLI_PLAN_DEVICES_H
#define KEEL_CLI_PLAN_DEVICES_H
#include <string>

#include "cli/args.h"

namespace cli {

int plan_devices_command(const Args& args, const std::string& devices);

}  // namespace cli
#endif
