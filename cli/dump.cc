// dump.cc: `keel dump`: a file as text; `keel signatures`: what its entries take and give.
#include <fmt/core.h>

#include "bytes.h"
#include "exit.h"
#include "load.h"
#include "print.h"

namespace cli {

int dump_command(const Args& args) {
  keel::Context context = open_context(args);
  std::string text = open_model(context, args.file, args).module.text();
  if (!args.output.empty())
    write_file(args.output, text);
  else if (args.json)
    print_json({{"schema", "keel.dump/1"}, {"text", text}});
  else
    fmt::print("{}", text);
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
