// verify.cc: `keel verify`: runs the test cases of a file on a device.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/commands/verify.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/show/diff.h"
#include "cli/show/print.h"

namespace cli {
namespace {

struct Verdict {
  bool ok = true;
  std::string text;  // "y: 3 elements outside, ..."
  Json outputs = Json::array();
};

Verdict verify_case(const keel::Context& context, const Model& model, uint32_t index,
                    const std::string& device, const Args& args) {
  const StoredCase& stored = model.cases[index];
  const Entry& entry = pick_entry(model, stored.entry);
  keel::Case c = at(Stage::kFile, [&] {
    return model.module.get_case(index, static_cast<uint32_t>(entry.params.size()),
                                 static_cast<uint32_t>(entry.results.size()));
  });
  keel::Plan plan = keel::Session(model.module, device, session_options(args, entry.name)).prepare();
  std::vector<keel::Array> got = plan.run(c.in);
  Verdict verdict;
  for (size_t i = 0; i < got.size(); i++) {
    std::optional<double> rtol = args.rtol ? args.rtol : stored.rtol,
                          atol = args.atol ? args.atol : stored.atol;
    Diff diff = diff_arrays(packed(context, got[i]), packed(context, c.expected.at(i)),
                            tolerance_for(got[i].dtype(), rtol, atol));
    Json one = diff.json();
    one["output"] = entry.results[i].name;
    verdict.outputs.push_back(std::move(one));
    if (diff.ok()) continue;
    verdict.ok = false;
    verdict.text += fmt::format("\n    {}: ", entry.results[i].name);
    verdict.text +=
        diff.same_type
            ? fmt::format("{} of {} elements outside, max|abs| {:.3g}; element {}: got {}, expected {}",
                          diff.outside, got[i].size(), diff.max_abs, diff.first, diff.got, diff.wanted)
            : fmt::format("got {}, expected {}", type_text(got[i].tensor()),
                          type_text(c.expected[i].tensor()));
  }
  return verdict;
}

}  // namespace

std::vector<std::string> devices_named(const keel::Context& context, const std::string& name) {
  return name == "all" ? context.devices() : std::vector{pick_device(context, name)};
}

Verified verify_cases(const keel::Context& context, const Model& model,
                      const std::vector<std::string>& devices, const Args& args) {
  Verified all;
  for (const std::string& device : devices) {
    for (uint32_t i = 0; i < model.cases.size(); i++) {
      Verdict v = verify_case(context, model, i, device, args);
      all.ok = all.ok && v.ok;
      all.cases.push_back(
          {{"case", model.cases[i].name}, {"device", device}, {"ok", v.ok}, {"outputs", v.outputs}});
      if (!args.json)
        fmt::print("{} {} on {}{}\n", v.ok ? "ok  " : "FAIL", model.cases[i].name, device, v.text);
    }
  }
  return all;
}

namespace {

int verify_command(const Args& args) {
  keel::Context context = open_context(args);
  Model model = open_model(context, args.file, args);
  if (model.cases.empty())
    throw Fail(kUsage, args.file + " has no test cases",
               "store one with keel convert IN OUT --case -i NAME=SPEC");
  Verified all = verify_cases(context, model, devices_named(context, args.device), args);
  if (args.json) print_json({{"schema", "keel.verify/1"}, {"ok", all.ok}, {"cases", all.cases}});
  return all.ok ? kOk : kCheckFailed;
}

const Command kVerify("verify", "Run the test cases stored in a file",
                      {file_argument, device_flag, tolerance_flags, pass_flags}, verify_command);

}  // namespace
}  // namespace cli
