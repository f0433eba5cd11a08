// convert.cc: `keel convert IN OUT`: importable file or text to a Keel file, or any of them to text.
#include <fmt/core.h>

#include <algorithm>

#include "bytes.h"
#include "diff.h"
#include "exit.h"
#include "load.h"
#include "output.h"
#include "print.h"
#include "sizes.h"
#include "terminal.h"

namespace cli {
namespace {

// Runs the entry on the inputs given and keeps both as a test vector.
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
  model.module.add_case(args.case_name.empty() ? "case" : args.case_name, entry.name, c, loosest.rtol,
                        loosest.atol);
}

// Inputs that neither fixed a parameter nor went into a case were given for nothing.
void refuse_unused(const Model& model, const std::vector<InputSpec>& given) {
  std::vector<std::string> names = model.fixed;
  for (const Entry& e : model.entries)
    for (const Port& p : e.params) names.push_back(p.name);
  for (const InputSpec& in : given) {
    if (std::find(model.fixed.begin(), model.fixed.end(), in.name) != model.fixed.end()) continue;
    bool known = std::find(names.begin(), names.end(), in.name) != names.end();
    throw Fail(kUsage, "input \"" + in.name + "\" is not needed to convert this file",
               known ? "leave it out, or say --case to store it as a test case" : closest(in.name, names));
  }
}

}  // namespace

int convert_command(const Args& args) {
  const Form form = model_form(args, args.out_file);
  if (args.json && args.out_file == "-")
    throw Fail(kUsage, "--json and the output - both write to stdout", "name a file, or leave out --json");
  refuse_overwrite(args, args.out_file);
  Progress progress("convert");
  progress.say("reading " + args.file);
  keel::Context context = open_context(args);
  std::vector<InputSpec> given = parse_inputs(context, args.inputs);
  Model model = open_model(context, args.file, args, given);
  specialise(context, model, args);
  if (args.store)
    store_case(context, model, given, args);
  else
    refuse_unused(model, given);
  progress.say("writing " + args.out_file);
  save_model(args, args.out_file, model);
  progress.done();
  if (args.out_file == "-") return kOk;
  uint64_t bytes = file_size(args.out_file);
  if (args.json)
    print_json({{"schema", "keel.convert/1"},
                {"in", args.file},
                {"out", args.out_file},
                {"form", form == Form::kKeel   ? "keel"
                         : form == Form::kText ? "text"
                         : form == Form::kDot  ? "dot"
                                               : "svg"},
                {"bytes", bytes},
                {"fixed", model.fixed}});
  else
    fmt::print("wrote {} ({}, {})\n", args.out_file, form_name(form),
               human_bytes(static_cast<double>(bytes)));
  return kOk;
}

}  // namespace cli
