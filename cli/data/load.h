// load.h: the steps from flags to a runnable entry: context, module, entry, device, inputs.
//
// How to read it: each command calls the first few of these functions, in this order.
#ifndef KEEL_CLI_LOAD_H
#define KEEL_CLI_LOAD_H
#include <keel/session.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/data/model.h"
#include "cli/data/spec.h"

namespace cli {

keel::Context open_context(const Args& args);  // with the plugins found
// With -v, on stderr: "keel run: opened m.keel in 3.1 ms".
void log_verbose(const Args& args, const std::string& what);
// The report `what` of libkeel, parsed.
Json facts(const keel::Context& context, const std::string& what);
// Opens by content: a Keel file, its text form, or a format of an importer. An import that requires values of
// parameters takes them from `inputs`.
Model open_model(const keel::Context& context, const std::string& path, const Args& args,
                 const std::vector<InputSpec>& inputs = {});
void read_info(Model& model);  // refreshes entries and cases after a change of the module
const Entry& pick_entry(const Model& model, const std::string& name);
// One device; "" selects cpu if present, else the only one.
std::string pick_device(const keel::Context& context, const std::string& name);
// The devices of "A,B,...": at least two, all usable. `flag`: for messages.
std::vector<std::string> pick_devices(const keel::Context& context, const char* flag,
                                      const std::string& list);
// The device of a plan of a session on a picked device: the one that "auto" stands for.
std::string device_of(const std::string& picked, const keel::Plan& plan);
keel::Options pass_options(const Args& args);  // the options of keel_module_optimize
// The value of --passes for a plan in which each node has launches of its own; the same if it lists passes.
std::string without_fusion(const std::string& passes);
// `model`: the model whose nodes --place names; null: none.
keel::Options session_options(const Args& args, const std::string& entry, Model* model = nullptr);

// The entry with the given inputs (any values of its graph) as parameters and `fetch` (empty: its own) as
// results; `cut`: parameters or results differ from the entry's.
Entry choose_ports(Model& model, const Entry& entry, const std::vector<InputSpec>& given,
                   const std::vector<std::string>& fetch, bool* cut);
// Arrays for an entry's parameters, in order. `generate`: missing inputs get random numbers (integers and
// booleans: zeros) and unknown dims size 1; `generated` lists them. Otherwise a missing input is an error.
struct Inputs {
  std::vector<keel::Array> arrays;
  std::vector<std::string> generated;
};
Inputs gather_inputs(const keel::Context& context, const Model& model, const Entry& entry,
                     const std::vector<InputSpec>& given, const Args& args, bool generate);
void report_generated(const Args& args, const Inputs& inputs);  // on stderr, if there are any
// The array, or a copy of it without gaps.
keel::Array packed(const keel::Context& context, const keel::Array& array);

}  // namespace cli
#endif
