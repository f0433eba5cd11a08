// eval.cc: `keel eval`: runs statements of the text form one by one.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/commands/evaluator.h"
#include "cli/data/bytes.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/show/print.h"

namespace cli {
namespace {

struct {
  std::string statements;
} eval_flags;

void statement_arguments(Flags& flags, Args& a) {
  flags.add("text", eval_flags.statements, "NAME = EXPRESSION, print \"{}\", VALUE, or EXPRESSION")
      .add("-f,--file", a.file, "a file of statements, run before TEXT; -: stdin");
}

int eval_command(const Args& args) {
  if (args.file.empty() && eval_flags.statements.empty())
    throw Fail(kUsage, "nothing to evaluate: give statements, or -f FILE (- is stdin)",
               "keel eval 'print \"hello, {}\", matmul([[2.]], [[2.]])'");
  std::string text = (args.file.empty() ? "" : read_file(args.file) + "\n") + eval_flags.statements;
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

const Command kEval("eval", "Run statements of the text form one by one: x = [1, 2]; print x + 1",
                    {statement_arguments, device_flag}, eval_command);

}  // namespace
}  // namespace cli
