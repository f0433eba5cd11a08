// args.h: the parsed flags that several subcommands or shared code read. Flags of one subcommand are
// variables of its file.
#ifndef KEEL_CLI_ARGS_H
#define KEEL_CLI_ARGS_H
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cli {

struct Command;

struct Args {
  const Command* command = nullptr;  // null: not given
  // of every subcommand
  bool json = false, verbose = false, exact_convolution = false;
  int threads = 0;  // 0: chosen by libkeel
  std::string memory, plugins, lanes;
  // of some subcommands; declared in flags.h
  std::string file, device, entry, output;
  std::vector<std::string> inputs, dims, shapes, lengths, place;
  std::optional<std::string> cut;
  bool cast_inputs = false, exact_inputs = false;
  std::string fallback;
  std::string isa;    // class of processor of the device cpu
  bool tune = false;  // of the device cpu: measure products
  bool strict = false;
  std::string checkpoint;         // a file
  std::string trace;              // a file
  bool text = false;              // the text form
  bool svg = false, dot = false;  // drawings
  int runs = 100, warmup = 2;     // measured, and before
  uint32_t time_limit = 0;        // per run, in milliseconds; 0: none
  int level = -1;                 // of passes; -1: chosen by libkeel
  std::string passes;
  std::optional<double> rtol, atol;  // nullopt: by dtype
};

}  // namespace cli
#endif
