// bisect.cc: `keel bisect`: finds the edit of a pass that changes the results of a graph.
//
// How to read it: passes edit in a fixed order, so fuel n gives the graph after the first n edits. Results
// without passes are the reference; a binary search between none and all edits finds the first bad one. A
// graph that no longer runs is bad, too.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/data/load.h"
#include "cli/exit.h"
#include "cli/show/diff.h"
#include "cli/show/lines.h"
#include "cli/show/print.h"

namespace cli {
namespace {

struct Attempt {
  Json passes;
  std::string text, why;  // the fault; "": none
  uint64_t edits = 0;
};

class Search {
 public:
  Search(const keel::Context& context, const Args& args)
      : context_(context), args_(args), device_(pick_device(context, args.device)) {
    Model model = open_model(context_, args_.file, args_, given_ = parse_inputs(context_, args_.inputs));
    entry_ = pick_entry(model, args_.entry);
    inputs_ = gather_inputs(context_, model, entry_, given_, args_, true);
    report_generated(args, inputs_);
    want_ = run(model);
  }

  Attempt attempt(std::optional<uint64_t> fuel) {
    Model model = open_model(context_, args_.file, args_, given_);
    keel::Options options = pass_options(args_);
    if (fuel) options.set("fuel", std::to_string(*fuel));
    Attempt made;
    made.passes = Json::parse(model.module.optimize(entry_.name, device_, options)).at("passes");
    for (const Json& pass : made.passes) made.edits += pass.at("edits").get<uint64_t>();
    made.text = model.module.outline();
    try {
      made.why = differs(run(model));
    } catch (const keel::Error& e) {
      made.why = fmt::format("the run failed: {}", e.what());
    }
    return made;
  }

 private:
  std::vector<keel::Array> run(const Model& model) const {
    Args as_written = args_;
    as_written.level = 0;
    as_written.passes.clear();
    keel::Options options = session_options(as_written, entry_.name);
    std::vector<keel::Array> out =
        keel::Session(model.module, device_, options).prepare().run(inputs_.arrays);
    for (keel::Array& a : out) a = packed(context_, a);
    return out;
  }

  std::string differs(const std::vector<keel::Array>& got) const {
    for (size_t i = 0; i < got.size(); i++) {
      Diff diff = diff_arrays(got[i], want_[i], tolerance_for(got[i].dtype(), args_.rtol, args_.atol));
      if (diff.ok()) continue;
      const std::string& name = entry_.results.at(i).name;
      if (!diff.same_type) return fmt::format("output \"{}\" has a different type", name);
      return fmt::format(
          "output \"{}\": {} elements outside, max|abs| {:.3g}; element {}: {}, without passes {}", name,
          diff.outside, diff.max_abs, diff.first, diff.got, diff.wanted);
    }
    return "";
  }

  const keel::Context& context_;
  const Args& args_;
  std::string device_;
  std::vector<InputSpec> given_;
  Entry entry_;
  Inputs inputs_;
  std::vector<keel::Array> want_;
};

// The pass of the last edit.
std::string last_editor(const Attempt& before, const Attempt& with) {
  for (const Json& pass : with.passes) {
    uint64_t had = 0;
    for (const Json& other : before.passes)
      if (other.at("name") == pass.at("name")) had = other.at("edits").get<uint64_t>();
    if (pass.at("edits").get<uint64_t>() > had) return cell(pass.at("name"));
  }
  return "";
}

void print_found(const Attempt& before, const Attempt& with, uint64_t all, bool json) {
  std::string pass = last_editor(before, with), diff = changed_lines(before.text, with.text);
  if (json)
    return print_json({{"schema", "keel.bisect/1"},
                       {"ok", false},
                       {"edits", all},
                       {"edit", with.edits},
                       {"pass", pass},
                       {"why", with.why},
                       {"diff", diff}});
  fmt::print("edit {} of {}, by pass \"{}\", changes the results\n  {}\n{}", with.edits, all, pass, with.why,
             diff);
}

int bisect_command(const Args& args) {
  keel::Context context = open_context(args);
  Search search(context, args);
  Attempt bad = search.attempt(std::nullopt);
  const uint64_t all = bad.edits;
  if (bad.why.empty()) {
    if (args.json)
      print_json({{"schema", "keel.bisect/1"}, {"ok", true}, {"edits", all}});
    else
      fmt::print("none of {} edits changes the results\n", all);
    return kOk;
  }
  Attempt good = search.attempt(0);
  if (!good.why.empty())
    throw Fail(kCheckFailed, "the results differ even without edits: " + good.why,
               "a graph with random results cannot be bisected");
  for (uint64_t low = 0, high = all; high - low > 1;) {
    uint64_t fuel = low + (high - low) / 2;
    Attempt middle = search.attempt(fuel);
    bool is_good = middle.why.empty();
    (is_good ? low : high) = fuel;
    (is_good ? good : bad) = std::move(middle);
  }
  print_found(good, bad, all, args.json);
  return kCheckFailed;
}

const Command kBisect("bisect", "Find the edit of a pass that changes the results of a graph",
                      {file_argument, input_flags, device_flag, entry_flag, pass_flags, tolerance_flags},
                      bisect_command);

}  // namespace
}  // namespace cli
