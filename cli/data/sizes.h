// sizes.h: --dim b=4 and --shape x=1,3,48,192: sizes that the user fixes.
//
// How to read it: an importer takes them while it reads a model (import_options); what a file leaves symbolic
// is bound for a run (bind_sizes) or written into a new module (specialise).
#ifndef KEEL_CLI_SIZES_H
#define KEEL_CLI_SIZES_H
#include <map>

#include "cli/data/load.h"

namespace cli {

Sizes parse_sizes(const Args& args);
// "dim.b" = "4", "shape.x" = "1,?,48,192".
void add_import_options(const Sizes& sizes, keel::Options& options);
// Sizes that the module has taken; only what it still has as symbols stays.
void drop_taken(Model& model);
// Sizes of symbols for this entry. Names that the file does not have, and sizes that contradict it or each
// other, are usage errors.
Dims bind_sizes(const Model& model, const Entry& entry);
// Does each array have the sizes that were fixed?
void check_sizes(const Dims& fixed, const Entry& entry, const std::vector<keel::Array>& arrays);
// The module with these sizes in place of symbols; entries without such symbols stay.
void specialise(const keel::Context& context, Model& model, const Args& args);

}  // namespace cli
#endif
