// crashing.h: plugins that end the process which loads them, for `keel doctor`.
#ifndef KEEL_CLI_CRASHING_H
#define KEEL_CLI_CRASHING_H
#include <map>
#include <string>

#include "cli/args.h"

namespace cli {

// {name: how it ends a child process that loads it and lists its devices}. From then on this process does not
// load these plugins.
std::map<std::string, std::string> skip_crashing_plugins(const Args& args);
// The name of a plugin by its file.
std::string plugin_name(const std::string& path);

}  // namespace cli
#endif
