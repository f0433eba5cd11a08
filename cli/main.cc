// main.cc: the command `keel`. Read parse.cc for parsing, then the file of a subcommand (commands/run.cc).
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "cli/command.h"
#include "cli/exit.h"
#include "cli/parse.h"
#include "cli/terminal.h"

namespace {

struct Main {
  int argc;
  char** argv;
  cli::Args args;
};

int parse_and_run(void* arg) {
  Main& m = *static_cast<Main*>(arg);
  if (std::optional<int> code = cli::parse_args(m.argc, m.argv, m.args)) return *code;
  return m.args.command->run(m.args);
}

int flush_stdout(void*) {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    throw cli::Fail(cli::kBadFile, std::string("cannot write to stdout: ") + std::strerror(errno));
  return cli::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  Main m{argc, argv, {}};
  std::string command = cli::command_of(argc, argv);
  if (std::none_of(argv, argv + argc, [](char* a) { return std::string_view(a) == "--json"; }))
    cli::fit_streams();
  int code = cli::guarded(command, m.args.json, parse_and_run, &m);
  // Flush stdout: a full disk must not look like success.
  if (code != cli::kOk && code != cli::kCheckFailed) return code;  // already reported
  int flushed = cli::guarded(command, m.args.json, flush_stdout, nullptr);
  return code == cli::kOk ? flushed : code;
}
