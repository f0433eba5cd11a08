// pass.cc: see pass.h.
#include "kernel/pass/pass.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace keel {
namespace {

bool Lists(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool Wanted(const keel_pass& pass, const PassChoice& choice) {
  if (!choice.only.empty()) return Lists(choice.only, pass.name);
  if (Lists(choice.off, pass.name)) return false;
  if (Lists(choice.on, pass.name)) return true;
  return choice.level >= (pass.exactness == KEEL_FAST ? 3 : pass.level);
}

absl::Status CheckNames(const std::vector<Pass>& passes, const PassChoice& choice) {
  std::vector<std::string> known;
  for (const Pass& p : passes) known.emplace_back(p.table.name);
  for (const auto* list : {&choice.only, &choice.on, &choice.off})
    for (const std::string& name : *list)
      if (!Lists(known, name))
        return Annotate(
            NotFound("there is no pass \"", name, "\"; there ",
                     known.empty() ? "are none" : absl::StrCat("are ", absl::StrJoin(known, ", "))),
            kErrorHint, "`keel passes` lists them with the plugins that bring them");
  return absl::OkStatus();
}

// One pass. The graph is replaced where it went well and edited something.
absl::Status RunOne(const Pass& pass, const PassTarget& target, std::unique_ptr<Rewrite>* work,
                    PassGraph* graph, PassRun* run) {
  if (!*work) *work = std::make_unique<Rewrite>(*graph, target);
  HostCall call;
  absl::Status status =
      call.Finish(pass.table.run(&HostTable(), (*work)->edit()), *pass.plugin, "ran a pass");
  run->edits = (*work)->edits();
  if (!status.ok()) return status;
  if (!run->edits) return status;
  absl::StatusOr<PassGraph> result = (*work)->Finish();
  if (!result.ok()) return result.status();
  *graph = *std::move(result);
  work->reset();
  return absl::OkStatus();
}

}  // namespace

void PassReport::Add(PassRun run) {
  auto sum = std::find_if(runs.begin(), runs.end(), [&](const PassRun& r) { return r.name == run.name; });
  if (sum == runs.end()) return runs.push_back(std::move(run));
  sum->ms += run.ms;
  sum->edits += run.edits;
  for (auto text : {&PassRun::error, &PassRun::diff, &PassRun::skipped})
    if ((*sum.*text).empty()) *sum.*text = std::move(run.*text);
}

void PassReport::Add(const PassReport& more) {
  level = more.level;
  for (const PassRun& run : more.runs) Add(run);
}

absl::Status ParsePasses(const std::string& text, PassChoice* choice) {
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    std::string name(part);
    bool sign = name[0] == '+' || name[0] == '-';
    if (sign && name.size() == 1) return Invalid("option \"passes\": \"", text, "\": a sign without a name");
    (name[0] == '+' ? choice->on : name[0] == '-' ? choice->off : choice->only).push_back(name.substr(sign));
  }
  if (!choice->only.empty() && !(choice->on.empty() && choice->off.empty()))
    return Annotate(Invalid("option \"passes\": got \"", text, "\", which mixes names with and without sign"),
                    kErrorHint,
                    "either \"fold,map\" (only these) or \"+fast,-map\" (beside those of the level)");
  return absl::OkStatus();
}

std::string Passes::Disabled(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto found = disabled_.find(name);
  return found == disabled_.end() ? "" : found->second;
}

absl::StatusOr<PassGraph> Passes::Run(PassGraph graph, const PassTarget& target, const PassChoice& choice,
                                      PassReport* report) {
  std::vector<Pass> passes = registry_.Passes();
  RETURN_IF_ERROR(CheckNames(passes, choice));
  report->level = choice.level;
  std::unique_ptr<Rewrite> work;  // stays for the next pass if this one edits nothing
  for (const Pass& pass : passes) {
    if (!Wanted(pass.table, choice)) continue;
    PassRun run;
    run.name = pass.table.name;
    run.plugin = pass.plugin->name;
    run.skipped = Disabled(run.name);
    if (run.skipped.empty()) {
      auto start = std::chrono::steady_clock::now();
      absl::Status status = RunOne(pass, target, &work, &graph, &run);
      run.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      if (!status.ok()) {
        run.error = std::string(status.message());
        run.diff = work ? work->Diff() : "";
        work.reset();
        HostTable().log(KEEL_LOG_WARNING, absl::StrCat("pass \"", run.name, "\" of plugin \"", run.plugin,
                                                       "\" failed and is switched off: ", run.error)
                                              .c_str());
        std::lock_guard lock(mutex_);
        disabled_.emplace(run.name, absl::StrCat("it failed before: ", run.error));
      }
    }
    report->runs.push_back(std::move(run));
  }
  return graph;
}

}  // namespace keel
