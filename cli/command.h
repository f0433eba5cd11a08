// command.h: a subcommand of `keel`. It registers itself: a new subcommand is one file in commands/.
#ifndef KEEL_CLI_COMMAND_H
#define KEEL_CLI_COMMAND_H
#include <vector>

#include "cli/args.h"
#include "cli/flags.h"

namespace cli {

// Define one at namespace scope in the file of the subcommand:
//   const Command kDevices("devices", "List the devices found", {}, run);
struct Command {
  Command(const char* name, const char* about, std::vector<DeclareFlags> flags, int (*run)(const Args&));

  const char* name;
  const char* about;                // one line of `keel --help`
  std::vector<DeclareFlags> flags;  // in the order of `keel NAME --help`
  int (*run)(const Args&);          // returns the exit code
};

// All subcommands, sorted by name.
const std::vector<const Command*>& commands();

}  // namespace cli
#endif
