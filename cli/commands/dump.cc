// dump.cc: `keel dump`: a file as text.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/data/output.h"
#include "cli/exit.h"
#include "cli/show/print.h"
#include "cli/terminal.h"

namespace cli {
namespace {

struct {
  bool with_weights = false;
} dump_flags;

void weights_flag(Flags& flags, Args&) {
  flags.add("--weights", dump_flags.with_weights, "print long weights, too (the default with -o)");
}

int dump_command(const Args& args) {
  if (!args.output.empty()) {
    refuse_other_than_text(args.output);
    refuse_overwrite(args, args.output);
  }
  keel::Context context = open_context(args);
  const Model model = open_model(context, args.file, args);
  if (!args.output.empty()) {
    write_output(args.output, at(Stage::kFile, [&] { return model.module.text(); }));
    return kOk;
  }
  std::string text = at(
      Stage::kFile, [&] { return dump_flags.with_weights ? model.module.text() : model.module.outline(); });
  if (args.json)
    print_json({{"schema", "keel.dump/1"}, {"text", text}});
  else
    print_text(text);
  return kOk;
}

const Command kDump("dump", "Print a file as text, without long weights",
                    {file_argument, output_flag, weights_flag}, dump_command);

}  // namespace
}  // namespace cli
