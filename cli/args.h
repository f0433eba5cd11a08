// args.h: everything the command line can say, parsed. The flags themselves are declared in args.cc.
#ifndef KEEL_CLI_ARGS_H
#define KEEL_CLI_ARGS_H
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cli {

struct Command;

struct Args {
  const Command* command = nullptr;  // null: none was given
  // everywhere
  bool json = false, verbose = false, exact_convolution = false;
  int threads = 0;  // 0: libkeel decides
  std::string memory, plugins, lanes;
  // where they apply
  std::string file, out_file, statements, device, entry, output;
  std::vector<std::string> inputs, dims, shapes, place;
  std::string fallback;
  bool strict = false, eagerly = false;  // run
  std::vector<std::string> fetch;        // run
  std::string checkpoint;                // run
  bool cast_inputs = false, exact_inputs = false;
  std::string watch, break_at;       // run
  bool text = false, store = false;  // convert; text: optimize, grad too
  bool weights = false;              // dump
  std::string case_name;             // convert
  bool svg = false, dot = false;     // graph
  int runs = 100, warmup = 2;        // bench, profile
  uint32_t time_limit = 0;           // run, bench: milliseconds of a run; 0: none
  std::string trace;                 // profile
  bool program = false;              // profile
  std::vector<std::string> rest;     // profile: arguments of the program
  std::vector<std::string> of, wrt;  // grad
  std::string as = "grad";           // grad
  bool jacobian = false;             // grad
  bool nodes = false;                // compare
  bool map = false;                  // plan
  int level = -1;                    // passes; -1: libkeel decides
  std::string passes;
  std::string fuel, dump_after;      // optimize
  bool diff = false;                 // optimize
  std::optional<double> rtol, atol;  // compare, verify, convert
};

// One subcommand: its name, what it does, the flags it takes (letters of the table in args.cc) and its code.
struct Command {
  const char* name;
  const char* about;
  const char* flags;
  int (*run)(const Args&);
};

int run_command(const Args&);
int eval_command(const Args&);
int convert_command(const Args&);
int inspect_command(const Args&);
int dump_command(const Args&);
int signatures_command(const Args&);
int graph_command(const Args&);
int devices_command(const Args&);
int doctor_command(const Args&);
int ops_command(const Args&);
int bench_command(const Args&);
int profile_command(const Args&);
int compare_command(const Args&);
int plan_command(const Args&);
int verify_command(const Args&);
int demo_command(const Args&);
int optimize_command(const Args&);
int passes_command(const Args&);
int bisect_command(const Args&);
int grad_command(const Args&);

// The first argument that is a subcommand, else the first if it is no flag; "": there is none.
std::string command_of(int argc, char** argv);
// Fills args; returns an exit code where the program is to end at once (--help, --version, usage error).
std::optional<int> parse_args(int argc, char** argv, Args& args);

}  // namespace cli
#endif
