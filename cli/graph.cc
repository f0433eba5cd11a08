// graph.cc: `keel graph`: a drawing of a file's graphs, as dot or, through Graphviz, as SVG.
#include <fmt/core.h>

#include "drawing.h"
#include "exit.h"
#include "load.h"
#include "output.h"
#include "print.h"

namespace cli {

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

}  // namespace cli
