// sizes.h: --dim b=4, --shape x=1,3,48,192 and --length x=3: sizes fixed by the user.
//
// How to read it: an importer applies them while it reads a model (import_options); dims that stay symbolic
// are bound for a run (bind_sizes) or replaced in a new module (specialise).
#ifndef KEEL_CLI_SIZES_H
#define KEEL_CLI_SIZES_H
#include <map>

#include "cli/args.h"
#include "cli/data/model.h"

namespace cli {

Sizes parse_sizes(const Args& args);
// "dim.b" = "4", "shape.x" = "1,?,48,192", "length.x" = "3".
void add_import_options(const Sizes& sizes, keel::Options& options);
// Removes sizes that the module has applied; only sizes of remaining symbols stay.
void drop_taken(Model& model);
// Sizes of symbols for this entry. Unknown names, and sizes that contradict the file or each other, are usage
// errors.
Dims bind_sizes(const Model& model, const Entry& entry);
// Whether each array has the fixed sizes.
void check_sizes(const Dims& fixed, const Entry& entry, const std::vector<keel::Array>& arrays);
// The module with symbols replaced by these sizes; entries without such symbols stay.
void specialise(const keel::Context& context, Model& model, const Args& args);

}  // namespace cli
#endif
