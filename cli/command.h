// command.h: a subcommand of `keel`. It registers itself, so that a new one is one file in commands/.
#ifndef KEEL_CLI_COMMAND_H
#define KEEL_CLI_COMMAND_H
#include <vector>

#include "cli/args.h"
#include "cli/flags.h"

namespace cli {

// To be defined at namespace scope in the file of the subcommand:
//   const Command kDevices("devices", "List the devices found", {}, run);
struct Command {
  Command(const char* name, const char* about, std::vector<DeclareFlags> flags, int (*run)(const Args&));

  const char* name;
  const char* about;                // one line of `keel --help`
  std::vector<DeclareFlags> flags;  // in the order of `keel NAME --help`
  int (*run)(const Args&);          // gives the exit code
};

// All of them by name.
const std::vector<const Command*>& commands();

}  // namespace cli
#endif
