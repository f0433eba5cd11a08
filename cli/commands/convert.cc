// convert.cc: `keel convert IN OUT`: an importable file or text to a Keel file, or any of them to text or
// ONNX.
#include <fmt/core.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/data/bytes.h"
#include "cli/data/load.h"
#include "cli/data/output.h"
#include "cli/data/sizes.h"
#include "cli/exit.h"
#include "cli/show/contents.h"
#include "cli/show/diff.h"
#include "cli/show/print.h"
#include "cli/terminal.h"

namespace cli {
namespace {

struct {
  std::string out_file;
  std::vector<std::string> fixed;
  bool report = false;
  bool store_as_case = false;
  std::string case_name = "case";
} convert_flags;

void in_and_out(Flags& flags, Args& a) {
  flags.add("in", a.file, "the file to convert; -: stdin")
      .required()
      .add("out", convert_flags.out_file,
           "the file to write; .txt, .keelt: text; .onnx: an ONNX model of one entry; .dot, .svg: a drawing; "
           "-: stdout; with --report it may be omitted")
      .add("--fix", convert_flags.fixed, "the same as -i, for a parameter that becomes a constant: n=i64[]=4",
           "NAME=VALUE")
      .add("--report", convert_flags.report,
           "print the ops and weights of the model, and the devices that run it");
}

void case_flags(Flags& flags, Args&) {
  flags.add("--case", convert_flags.store_as_case, "store the inputs and the computed results as a test case")
      .add("--case-name", convert_flags.case_name, "its name (default: case)");
}

// Runs the entry on the given inputs and stores both as a test case.
void store_case(const keel::Context& context, Model& model, const std::vector<InputSpec>& given,
                const Args& args) {
  const Entry& entry = pick_entry(model, args.entry);
  keel::Case c;
  c.in = gather_inputs(context, model, entry, given, args, false).arrays;
  std::string device = pick_device(context, args.device);
  c.expected = keel::Session(model.module, device, session_options(args, entry.name)).prepare().run(c.in);
  Tolerance loosest{0, 0};
  for (const keel::Array& a : c.expected) {
    Tolerance t = tolerance_for(a.dtype(), args.rtol, args.atol);
    loosest = {std::max(loosest.rtol, t.rtol), std::max(loosest.atol, t.atol)};
  }
  model.module.add_case(convert_flags.case_name, entry.name, c, loosest.rtol, loosest.atol);
}

// An input that neither fixes a parameter nor is part of a case is an error.
void refuse_unused(const Model& model, const std::vector<InputSpec>& given) {
  std::vector<std::string> names = model.fixed;
  for (const Entry& e : model.entries)
    for (const Port& p : e.params) names.push_back(p.name);
  for (const InputSpec& in : given) {
    if (std::find(model.fixed.begin(), model.fixed.end(), in.name) != model.fixed.end()) continue;
    bool known = std::find(names.begin(), names.end(), in.name) != names.end();
    std::string near = closest(in.name, names);
    throw Fail(kUsage, "input \"" + in.name + "\" is not needed to convert this file",
               known ? "it decides no sizes, so it stays an input: omit it, or store it as a test case "
                       "with --case"
               : !near.empty() ? near
                               : "its inputs are " + (names.empty() ? "none" : join(names, ", ")));
  }
}

Json json_of_file(Form form, const Model& model, const std::vector<std::string>& files) {
  Json sizes = Json::object();
  for (const std::string& file : files) sizes[file] = file_size(file);
  return {{"out", convert_flags.out_file},
          {"form", form == Form::kKeel   ? "keel"
                   : form == Form::kText ? "text"
                   : form == Form::kOnnx ? "onnx"
                   : form == Form::kDot  ? "dot"
                                         : "svg"},
          {"bytes", file_size(files[0])},
          {"files", sizes},
          {"fixed", model.fixed}};
}

void print_files(Form form, const std::vector<std::string>& files) {
  const auto size = [](const std::string& file) { return human_bytes(static_cast<double>(file_size(file))); };
  fmt::print("wrote {} ({}, {})", files[0], form_name(form), size(files[0]));
  for (size_t i = 1; i < files.size(); i++) fmt::print(", {} (weights, {})", files[i], size(files[i]));
  fmt::print("\n");
}

// Returns the files: the weights of an ONNX model above the format's limit are in one of their own.
std::vector<std::string> write_model(const keel::Context& context, const Args& args, Form form,
                                     Model& model) {
  // A save replaces files, so weights that it writes get a new number.
  const std::string weights = convert_flags.out_file + ".data";
  const uint64_t before = file_number(weights);
  save_model(context, args, convert_flags.out_file, model);
  std::vector<std::string> files = {convert_flags.out_file};
  if (form == Form::kOnnx && file_number(weights) != before) files.push_back(weights);
  return files;
}

void check_output(const Args& args) {
  const std::string& out = convert_flags.out_file;
  if (out.empty() && !convert_flags.report)
    throw Fail(kUsage, "out is required", "name the file to write, or pass --report");
  const std::string printing = args.json ? "--json" : convert_flags.report ? "--report" : "";
  if (out == "-" && !printing.empty())
    throw Fail(kUsage, printing + " and the output - both write to stdout",
               "name a file, or omit " + printing);
  if (!out.empty()) refuse_overwrite(args, out);
}

int convert_command(const Args& args) {
  const std::string& out = convert_flags.out_file;
  const Form form = out.empty() ? Form::kKeel : model_form(args, out);
  check_output(args);
  Progress progress("convert");
  progress.say("reading " + args.file);
  keel::Context context = open_context(args);
  std::vector<std::string> inputs = args.inputs;
  inputs.insert(inputs.end(), convert_flags.fixed.begin(), convert_flags.fixed.end());
  std::vector<InputSpec> given = parse_inputs(context, inputs);
  Model model = open_model(context, args.file, args, given);
  specialise(context, model, args);
  if (convert_flags.store_as_case)
    store_case(context, model, given, args);
  else
    refuse_unused(model, given);
  const Json devices = convert_flags.report ? check_devices(context, model, args) : Json();
  std::vector<std::string> files;
  if (!out.empty()) {
    progress.say("writing " + out);
    files = write_model(context, args, form, model);
  }
  progress.done();
  if (args.json) {
    Json json = {{"schema", "keel.convert/1"}, {"in", args.file}};
    if (!files.empty()) json.update(json_of_file(form, model, files));
    if (convert_flags.report) json["report"] = model.info, json["report"]["devices"] = devices;
    print_json(json);
    return kOk;
  }
  if (convert_flags.report) print_contents(model, devices, args);
  if (!files.empty() && out != "-") print_files(form, files);
  return kOk;
}

const Command kConvert(
    "convert", "Turn an importable file (ONNX) or a text into a Keel file, or any of them into text or ONNX",
    {in_and_out, input_flags, device_flag, entry_flag, text_flag, case_flags, tolerance_flags},
    convert_command);

}  // namespace
}  // namespace cli
