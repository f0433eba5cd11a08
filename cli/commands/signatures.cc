// signatures.cc: `keel signatures`: arguments and results of the entries of a file.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/show/print.h"

namespace cli {
namespace {

int signatures_command(const Args& args) {
  keel::Context context = open_context(args);
  std::string text = open_model(context, args.file, args).module.signatures();
  if (args.json)
    print_json({{"schema", "keel.signatures/1"}, {"text", text}});
  else
    fmt::print("{}", text);
  return kOk;
}

const Command kSignatures("signatures", "Print the arguments and results of a file's entries",
                          {file_argument}, signatures_command);

}  // namespace
}  // namespace cli
