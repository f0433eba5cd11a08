// dump.cc: `keel dump`: a file as text; `keel signatures`: what its entries take and give.
#include <fmt/core.h>

#include "exit.h"
#include "load.h"
#include "output.h"
#include "print.h"
#include "terminal.h"

namespace cli {

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
  std::string text =
      at(Stage::kFile, [&] { return args.weights ? model.module.text() : model.module.outline(); });
  if (args.json)
    print_json({{"schema", "keel.dump/1"}, {"text", text}});
  else
    print_text(text);
  return kOk;
}

int signatures_command(const Args& args) {
  keel::Context context = open_context(args);
  std::string text = open_model(context, args.file, args).module.signatures();
  if (args.json)
    print_json({{"schema", "keel.signatures/1"}, {"text", text}});
  else
    fmt::print("{}", text);
  return kOk;
}

}  // namespace cli
