// grad.cc: `keel grad`: adds an entry that computes values of a graph and their gradients.
#include <fmt/core.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/data/output.h"
#include "cli/exit.h"
#include "cli/show/print.h"
#include "cli/terminal.h"

namespace cli {
namespace {

struct {
  std::vector<std::string> of, wrt;
  std::string entry_name = "grad";
  bool as_jacobian = false;
} grad_flags;

void gradient_flags(Flags& flags, Args&) {
  flags
      .add("--of", grad_flags.of, "value to differentiate; if repeated, their sum (default: the only result)",
           "NAME")
      .add("--wrt", grad_flags.wrt,
           "with respect to this parameter, constant or value; may be repeated (default: the float "
           "parameters)",
           "NAME")
      .add("--as", grad_flags.entry_name, "name of the new entry (default: grad)")
      .add("--jacobian", grad_flags.as_jacobian, "the Jacobian of one value, not the gradient of its sum");
}

// One x: its name, its value, the value that is its gradient.
struct Derivative {
  std::string name, result;
  keel_value x = KEEL_NO_VALUE, dx = KEEL_NO_VALUE;
  bool connected = true;
};

bool is_float(keel_dt dtype) {
  return dtype == KEEL_F16 || dtype == KEEL_BF16 || dtype == KEEL_F32 || dtype == KEEL_F64;
}

std::vector<std::string> values_of(const Entry& entry) {
  if (!grad_flags.of.empty()) return grad_flags.of;
  if (entry.results.size() == 1) return {entry.results[0].name};
  std::vector<std::string> names;
  for (const Port& p : entry.results) names.push_back(p.name);
  throw Fail(kUsage, "entry \"" + entry.name + "\" has several results: " + join(names, ", "),
             "select one: --of " + (names.empty() ? "NAME" : names[0]));
}

std::vector<std::string> names_of(const Entry& entry) {
  if (!grad_flags.wrt.empty()) return grad_flags.wrt;
  std::vector<std::string> names;
  for (const Port& p : entry.params)
    if (is_float(p.type.dtype)) names.push_back(p.name);
  return names;
}

// "d_w", or "d_d_w" where a value of that name is differentiated.
std::string result_for(const std::string& name, const std::vector<std::string>& of) {
  std::string result = "d_" + name;
  while (std::find(of.begin(), of.end(), result) != of.end()) result = "d_" + result;
  return result;
}

// Appends the Jacobians of the single y.
void differentiate_each(keel::Graph& graph, const std::vector<keel_value>& ys,
                        std::vector<Derivative>& wanted) {
  if (ys.size() != 1)
    throw Fail(kUsage, "--jacobian requires one value, got " + std::to_string(ys.size()),
               "select one with --of");
  for (Derivative& w : wanted) w.dx = graph.jacobian(ys[0], w.x);
}

// Appends the gradients; zeros for an x on which the values do not depend.
void differentiate(keel::Graph& graph, const std::vector<keel_value>& ys, std::vector<Derivative>& wanted) {
  std::vector<keel_value> xs;
  for (const Derivative& w : wanted) xs.push_back(w.x);
  std::vector<keel_value> found = graph.gradient(ys, xs);
  for (size_t i = 0; i < wanted.size(); i++) {
    wanted[i].connected = found[i] != KEEL_NO_VALUE;
    wanted[i].dx = wanted[i].connected ? found[i] : graph.gradient(ys, {&xs[i], 1}, {}, true)[0];
  }
}

void report(const Args& args, const std::vector<std::string>& of, const std::vector<Derivative>& wanted,
            const std::string& text) {
  if (!args.json) {
    for (const Derivative& w : wanted)
      if (!w.connected)
        fmt::print(stderr, "{} does not depend on \"{}\": its gradient is zeros\n", join(of, ", "), w.name);
    print_text(text);
    return;
  }
  Json json{
      {"schema", "keel.grad/1"}, {"entry", grad_flags.entry_name}, {"of", of}, {"gradients", Json::array()}};
  for (const Derivative& w : wanted)
    json["gradients"].push_back({{"wrt", w.name}, {"result", w.result}, {"connected", w.connected}});
  if (!text.empty()) json["text"] = text;
  print_json(json);
}

int grad_command(const Args& args) {
  if (!args.output.empty()) {
    model_form(args, args.output);
    refuse_overwrite(args, args.output);
  }
  keel::Context context = open_context(args);
  Model model = open_model(context, args.file, args);
  const Entry& entry = pick_entry(model, args.entry);
  std::vector<std::string> of = values_of(entry);
  std::vector<Derivative> wanted;
  at(Stage::kRun, [&] {
    const keel::Graph source = model.module.graph_of(entry.name);
    keel::Graph graph = source.copy(grad_flags.entry_name);
    std::vector<keel_value> ys;
    for (const std::string& name : of) ys.push_back(source.find(name));
    for (const std::string& name : names_of(entry))
      wanted.push_back({name, result_for(name, of), source.find(name)});
    (grad_flags.as_jacobian ? differentiate_each : differentiate)(graph, ys, wanted);
    for (size_t i = 0; i < of.size(); i++) graph.result(of[i], ys[i]);
    for (const Derivative& w : wanted) graph.result(w.result, w.dx);
    model.module.entry(grad_flags.entry_name, graph);
  });
  std::string text;
  if (args.output.empty())
    text = args.json ? model.module.text() : model.module.outline();
  else
    save_model(context, args, args.output, model);
  report(args, of, wanted, text);
  return kOk;
}

const Command kGrad("grad", "Add an entry that also computes gradients; save the file, or print it as text",
                    {file_argument, output_flag, entry_flag, text_flag, gradient_flags}, grad_command);

}  // namespace
}  // namespace cli
