// eval.cc: `keel eval`: statements of the text form, run one by one.
#include <fmt/core.h>

#include "bytes.h"
#include "evaluator.h"
#include "exit.h"
#include "interrupt.h"
#include "load.h"
#include "print.h"

namespace cli {

int eval_command(const Args& args) {
  if (args.file.empty() && args.statements.empty())
    throw Fail(kUsage, "nothing to evaluate: give statements, or -f FILE (- is stdin)",
               "keel eval 'print \"hello, {}\", matmul([[2.]], [[2.]])'");
  std::string text = (args.file.empty() ? "" : read_file(args.file) + "\n") + args.statements;
  keel::Context context = open_context(args);
  Evaluator evaluator(context, pick_device(context, args.device));
  Interruptible until_done(context);
  Json printed = Json::array();
  for (const Statement& statement : split_statements(text)) {
    std::optional<std::string> line = evaluator.run(statement);
    if (line && args.json)
      printed.push_back(*line);
    else if (line)
      fmt::print("{}\n", *line);
  }
  if (!args.json) return kOk;
  Json values = Json::object();
  for (const auto& [name, value] : evaluator.values()) values[name] = array_json(value.rows());
  print_json({{"schema", "keel.eval/1"}, {"printed", printed}, {"values", values}});
  return kOk;
}

}  // namespace cli
