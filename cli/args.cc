// args.cc: the command line, declared in two tables.
//
// How to read it: kCommands lists the subcommands with the flags each takes as letters; flag_makers() says
// what each letter declares. Only this file knows the parsing library.
#include "args.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <sstream>

#include "exit.h"

namespace cli {
namespace {

// Letters: f FILE · F IN OUT · i inputs · o output · d device · D two devices · p placing · e entry · t
// tolerances · L time limit · O passes · U fuel, dumps, differences · G of what, with respect to what · R
// strict · M map of memory · Y fetches · x statements · H weights
constexpr Command kCommands[] = {
    {"run", "Run a graph on inputs; print or save the results", "fiodpeWBLORY", run_command},
    {"eval", "Run statements of the text form one by one: x = [1, 2]; print x + 1", "xd", eval_command},
    {"convert", "Turn an importable file (ONNX) or a text into a Keel file, or any of them into text",
     "FideTSt", convert_command},
    {"inspect", "Say what is in a file: entries, types, ops, weights, test cases", "fd", inspect_command},
    {"dump", "Print a file as text, without long weights", "foH", dump_command},
    {"signatures", "Print the arguments and results of a file's entries", "f", signatures_command},
    {"graph", "Draw a file's graphs for Graphviz (dot) or as SVG", "foV", graph_command},
    {"devices", "List the devices found", "", devices_command},
    {"doctor", "Explain this machine: every plugin tried and why it was taken or refused", "",
     doctor_command},
    {"ops", "List the ops, or how a device computes each of them", "d", ops_command},
    {"bench", "Measure load, first run and steady state of a graph", "fidpeNLO", bench_command},
    {"profile", "Tell where a run spends its time, node by node; write a trace", "fidepNPO", profile_command},
    {"compare", "Run a graph on several devices and compare the results", "fiDetnO", compare_command},
    {"plan", "Show how a device will run a graph: launches and memory", "fidpeOM", plan_command},
    {"verify", "Run the test cases stored in a file", "fdtO", verify_command},
    {"demo", "Run and train two small networks that come with Keel, on every device", "d", demo_command},
    {"optimize", "Let passes rewrite a graph; save it, or print it as text", "fodeTOU", optimize_command},
    {"bisect", "Find the edit of a pass that changes what a graph computes", "fideOt", bisect_command},
    {"grad", "Add an entry that also computes gradients; save the file, or print it as text", "foeTG",
     grad_command},
    {"passes", "List the passes in the order in which they run", "", passes_command},
};

using Maker = std::function<void(CLI::App&, Args&)>;

void add_inputs(CLI::App& app, Args& a) {
  app.add_option("-i,--input", a.inputs, "NAME=SPEC (x=@x.npy, x=f32[2,2]=1,2,3,4, x=randn(7)) or @FILE.npz")
      ->allow_extra_args(false)
      ->type_name("INPUT");
  app.add_option("--dim", a.dims, "size of a symbolic dim: b=4")
      ->allow_extra_args(false)
      ->type_name("NAME=N");
  app.add_option("--shape", a.shapes, "sizes of an input: x=1,3,48,192 (? leaves one as it is)")
      ->allow_extra_args(false)
      ->type_name("NAME=N,N,...");
  app.add_flag("--cast-inputs", a.cast_inputs,
               "convert inputs to the dtype that is wanted (default: those of its kind, as f64 to f32)");
  app.add_flag("--exact-inputs", a.exact_inputs, "convert nothing")->excludes("--cast-inputs");
}

void add_tolerances(CLI::App& app, Args& a) {
  app.add_option("--rtol", a.rtol, "relative tolerance (default: by dtype, or what the file says)");
  app.add_option("--atol", a.atol, "absolute tolerance (likewise)");
}

void add_placing(CLI::App& app, Args& a) {
  app.add_option("--place", a.place,
                 "PATTERN=DEVICE: run nodes of these names (with * and ?) there; may be repeated")
      ->allow_extra_args(false)
      ->type_name("PATTERN=DEVICE");
  app.add_option("--fallback", a.fallback, "device for nodes that theirs lacks (default: that is an error)");
}

void add_session(CLI::App& app, Args& a) {
  app.add_option("--fetch", a.fetch,
                 "value to compute (\"y\", \"split:1\"); may be repeated (default: the entry's results)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  app.add_flag("--eagerly", a.eagerly,
               "run node by node as written, all of them, on the reference device (or -d)");
  app.add_option("--checkpoint", a.checkpoint, "a checkpoint with the values of the file's variables");
}

void add_gradient(CLI::App& app, Args& a) {
  app.add_option("--of", a.of, "value to differentiate; several: their sum (default: the only result)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  app.add_option(
         "--wrt", a.wrt,
         "with respect to this parameter, constant or value; may be repeated (default: the float parameters)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  app.add_option("--as", a.as, "name of the new entry (default: grad)");
  app.add_flag("--jacobian", a.jacobian, "each element of one value by each element, not its sum");
}

void add_case(CLI::App& app, Args& a) {
  app.add_flag("--case", a.store, "store the inputs and what the device computes from them as a test case");
  app.add_option("--case-name", a.case_name, "its name (default: case)");
}

void add_passes(CLI::App& app, Args& a) {
  app.add_option("--level", a.level, "0: no passes, 1, 2 (default), 3: also those that may change results")
      ->check(CLI::Range(0, 3));
  app.add_option("--passes", a.passes, "--passes=A,B: only these; --passes=-A,+B: beside those of the level");
}

void add_edits(CLI::App& app, Args& a) {
  app.add_option("--fuel", a.fuel, "stop the passes after so many edits")->type_name("N");
  app.add_option("--dump-after", a.dump_after,
                 "print the text after each time that this pass edited, or all did")
      ->type_name("PASS|all");
  app.add_flag("--diff", a.diff, "print only nodes that go (-) and come (+)");
}

const std::map<char, Maker>& flag_makers() {
  static const std::map<char, Maker> makers = {
      {'f',
       [](auto& app, Args& a) {
         app.add_option("file", a.file, "a Keel file, its text form, or ONNX; -: stdin")->required();
       }},
      {'F',
       [](auto& app, Args& a) {
         app.add_option("in", a.file, "the file to convert; -: stdin")->required();
         app.add_option("out", a.out_file,
                        "the file to write; .txt, .keelt: text; .dot, .svg: a drawing; -: stdout")
             ->required();
       }},
      {'i', add_inputs},
      {'o',
       [](auto& app, Args& a) {
         app.add_option("-o,--output", a.output, "file to write (run: @FILE.npz); -: stdout");
       }},
      {'d', [](auto& app, Args& a) { app.add_option("-d,--device", a.device, "device (default: cpu)"); }},
      {'D', [](auto& app, Args& a) { app.add_option("-d,--device", a.device, "devices: A,B")->required(); }},
      {'p', add_placing},
      {'e', [](auto& app, Args& a) { app.add_option("--entry", a.entry, "entry (default: the only one)"); }},
      {'t', add_tolerances},
      {'W',
       [](auto& app, Args& a) {
         app.add_option("--watch", a.watch,
                        "stop at the first node whose result has one: nan, inf or 'nan|inf'; 'conv*=nan': "
                        "of the nodes of these names");
       }},
      {'B',
       [](auto& app, Args& a) {
         app.add_option("--break", a.break_at, "stop after this node and show its values");
       }},
      {'R',
       [](auto& app, Args& a) {
         app.add_flag("--strict", a.strict, "run all nodes, so that those nobody needs can fail");
       }},
      {'Y', add_session},
      {'H', [](auto& app, Args& a) { app.add_flag("--weights", a.weights, "print all of them (-o does)"); }},
      {'T', [](auto& app, Args& a) { app.add_flag("--text", a.text, "write the text form"); }},
      {'S', add_case},
      {'V',
       [](auto& app, Args& a) {
         app.add_flag("--svg", a.svg, "SVG (needs Graphviz; also chosen by -o FILE.svg)");
         app.add_flag("--dot", a.dot, "dot (the default)");
       }},
      {'N',
       [](auto& app, Args& a) {
         app.add_option("-n,--runs", a.runs, "runs to measure (default 100)")
             ->check(CLI::Range(1, 100000000));
         app.add_option("--warmup", a.warmup, "runs before, beside the first")->check(CLI::Range(0, 1000000));
       }},
      {'L',
       [](auto& app, Args& a) {
         app.add_option("--time-limit", a.time_limit, "stop a run that takes longer (exit code 6)")
             ->check(CLI::Range(1u, 4000000000u))
             ->type_name("MS");
       }},
      {'P',
       [](auto& app, Args& a) {
         app.add_option("--trace", a.trace, "file for a trace of all launches (Chrome, Perfetto)");
         app.add_flag("--program", a.program,
                      "FILE is a program that uses Keel: say what it traced, planned and ran");
         app.add_option("arguments", a.rest, "of the program, after --");
       }},
      {'O', add_passes},
      {'U', add_edits},
      {'G', add_gradient},
      {'x',
       [](auto& app, Args& a) {
         app.add_option("text", a.statements, "NAME = EXPRESSION, print \"{}\", VALUE, or EXPRESSION");
         app.add_option("-f,--file", a.file, "a file of statements, run before TEXT; -: stdin");
       }},
      {'M', [](auto& app, Args& a) { app.add_flag("--map", a.map, "draw what lies where in memory"); }},
      {'n', [](auto& app, Args& a) { app.add_flag("--nodes", a.nodes, "find the first node that differs"); }},
  };
  return makers;
}

void add_global(CLI::App& app, Args& a, bool& version) {
  app.add_flag("--json", a.json, "print one JSON object");
  app.add_flag("-v,--verbose", a.verbose, "say more, on stderr");
  app.add_option("--threads", a.threads, "threads of a run")->check(CLI::Range(1, 4096));
  app.add_option("--memory", a.memory, "limit of a run: BYTES, 512M, 4G");
  app.add_option("--lanes", a.lanes, "launches of a run side by side: auto, off, all")
      ->check(CLI::IsMember({"auto", "off", "all"}));
  app.add_flag("--exact-convolution", a.exact_convolution, "no convolution by Winograd's way");
  app.add_option("--plugins", a.plugins, "folder of plugins, in place of the one beside libkeel");
  app.add_flag("--version", version, "print versions");
}

std::string version_text() {
  uint32_t abi = keel_abi_version();
  return fmt::format("keel {} (C ABI {}.{} draft {}) · no telemetry", keel_version(), abi >> 16, abi & 0xffff,
                     KEEL_ABI_DRAFT);
}

// "did you mean --level" for the first flag that is not known.
std::string flag_hint(int argc, char** argv, const CLI::App& app, const std::string& command) {
  std::vector<std::string> names;
  auto add = [&](const CLI::App& of) {
    for (const CLI::Option* option : of.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    }
  };
  add(app);
  if (!command.empty()) add(*app.get_subcommand(command));
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; i++) {
    std::string flag = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (!flag.starts_with("--")) continue;
    if (std::find(names.begin(), names.end(), flag) == names.end())
      if (std::string hint = closest(flag, names); !hint.empty()) return hint;
  }
  return "";
}

// CLI11 says "The following argument was not expected: rnu"; a wrong command or flag deserves better.
std::string usage_hint(int argc, char** argv, const CLI::App& app) {
  std::vector<std::string> names;
  for (const Command& c : kCommands) names.push_back(c.name);
  std::string command = command_of(argc, argv), hint;
  if (std::find(names.begin(), names.end(), command) == names.end()) {
    if (!command.empty()) hint = closest(command, names);
    command.clear();
  }
  if (hint.empty()) hint = flag_hint(argc, argv, app, command);
  return hint.empty() ? fmt::format("keel {}--help", command.empty() ? "" : command + " ") : hint;
}

}  // namespace

std::string command_of(int argc, char** argv) {
  for (int i = 1; i < argc; i++)
    for (const Command& c : kCommands)
      if (c.name == std::string_view(argv[i])) return c.name;
  return argc > 1 && argv[1][0] != '-' ? argv[1] : "";
}

std::optional<int> parse_args(int argc, char** argv, Args& args) {
  CLI::App app("keel runs tensor programs: load a graph, pick a device, run it.", "keel");
  const std::map<char, Maker>& makers = flag_makers();
  bool version = false;
  app.fallthrough();
  add_global(app, args, version);
  for (const Command& c : kCommands) {
    CLI::App* sub = app.add_subcommand(c.name, c.about);
    for (char flag : std::string_view(c.flags)) makers.at(flag)(*sub, args);
    sub->callback([&args, &c] { args.command = &c; });
  }
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    std::ostringstream help;
    app.exit(e, help, help);
    fmt::print("{}", help.str());
    return kOk;
  } catch (const CLI::ParseError& e) {
    args.json =
        args.json || std::any_of(argv, argv + argc, [](char* s) { return std::string_view(s) == "--json"; });
    throw Fail(kUsage, e.what(), usage_hint(argc, argv, app));
  }
  if (version) {
    fmt::print("{}\n", version_text());
    return kOk;
  }
  if (!args.command) {
    fmt::print("{}\n\n{}", version_text(), app.help());
    return kOk;
  }
  return std::nullopt;
}

}  // namespace cli
