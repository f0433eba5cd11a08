// cpu_options.h: options of the device cpu. Its plugin reads them from the environment when it is loaded.
#ifndef KEEL_CLI_CPU_OPTIONS_H
#define KEEL_CLI_CPU_OPTIONS_H
#include <keel/context.hpp>

#include "cli/args.h"

namespace cli {

void set_cpu_options(const Args& args);                                  // before the context loads plugins
void check_cpu_options(const keel::Context& context, const Args& args);  // throws Fail

}  // namespace cli
#endif
