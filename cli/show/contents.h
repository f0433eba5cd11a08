// contents.h: what `keel inspect` and `keel convert --report` print of a model.
#pragma once

#include "cli/args.h"
#include "cli/data/load.h"

namespace cli {

// For each device (that of the arguments, else all) and entry: device, entry, runs, why not ("": it runs).
Json check_devices(const keel::Context& context, const Model& model, const Args& args);
void print_contents(const Model& model, const Json& devices, const Args& args);

}  // namespace cli
