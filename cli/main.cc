// main.cc: the command `keel`. Read args.cc for what can be said, then the file of a subcommand (run.cc,
// ...).
#include <cstdio>

#include "args.h"
#include "exit.h"

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

}  // namespace

int main(int argc, char** argv) {
  Main m{argc, argv, {}};
  std::string command = argc > 1 && argv[1][0] != '-' ? argv[1] : "";
  int code = cli::guarded(command, m.args.json, parse_and_run, &m);
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {  // a full disk must not look like success
    std::fprintf(stderr, "keel %s: cannot write to stdout\n", command.c_str());
    return code == cli::kOk ? cli::kBadFile : code;
  }
  return code;
}
