// parse.h: the command line becomes Args.
#ifndef KEEL_CLI_PARSE_H
#define KEEL_CLI_PARSE_H
#include <optional>
#include <string>

#include "cli/args.h"

namespace cli {

// The first argument that is a subcommand, else the first that is not a flag; "" if none.
std::string command_of(int argc, char** argv);
// Fills args; returns an exit code if the program must end immediately (--help, --version, usage error).
std::optional<int> parse_args(int argc, char** argv, Args& args);

}  // namespace cli
#endif
