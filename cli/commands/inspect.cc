// inspect.cc: `keel inspect`: the contents of a file, and whether a device can run it.
#include "cli/command.h"
#include "cli/data/bytes.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/show/contents.h"
#include "cli/show/print.h"

namespace cli {
namespace {

int inspect_command(const Args& args) {
  keel::Context context = open_context(args);
  Model model = open_model(context, args.file, args);
  Json devices = check_devices(context, model, args);
  if (args.json) {
    Json json{{"schema", "keel.inspect/1"}, {"file", args.file}, {"bytes", file_size(args.file)}};
    json.update(model.info);
    json["devices"] = devices;
    print_json(json);
    return kOk;
  }
  print_contents(model, devices, args);
  return kOk;
}

const Command kInspect("inspect", "Show the contents of a file: entries, types, ops, weights, test cases",
                       {file_argument, device_flag}, inspect_command);

}  // namespace
}  // namespace cli
