// graph.cc: `keel graph`: draws a file's graphs as dot or, with Graphviz, as SVG.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/data/output.h"
#include "cli/exit.h"
#include "cli/show/drawing.h"
#include "cli/show/print.h"

namespace cli {
namespace {

void form_flags(Flags& flags, Args& a) {
  flags.add("--svg", a.svg, "SVG (needs Graphviz; also chosen by -o FILE.svg)")
      .add("--dot", a.dot, "dot (the default)");
}

int graph_command(const Args& args) {
  const bool svg = drawing_form(args, args.output) == Form::kSvg;
  refuse_overwrite(args, args.output);
  keel::Context context = open_context(args);
  std::vector<DrawnGraph> graphs = read_graphs(open_model(context, args.file, args).module.outline());
  std::string drawing = to_dot(graphs);
  if (svg) drawing = to_svg(drawing);
  if (!args.output.empty())
    write_output(args.output, drawing);
  else if (args.json)
    print_json({{"schema", "keel.graph/1"}, {"form", svg ? "svg" : "dot"}, {"drawing", drawing}});
  else
    fmt::print("{}", drawing);
  return kOk;
}

const Command kGraph("graph", "Draw a file's graphs for Graphviz (dot) or as SVG",
                     {file_argument, output_flag, form_flags}, graph_command);

}  // namespace
}  // namespace cli
