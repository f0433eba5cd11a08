#include "kernel/runtime/pass/pass.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernel/base/timeline.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/rules/rules.h"

namespace keel {
namespace {

constexpr int kMaxRounds = 4;  // of the canon passes

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsSelected(const keel_pass& pass, const PassChoice& choice) {
  if (!choice.only.empty()) return Contains(choice.only, pass.name);
  if (Contains(choice.off, pass.name)) return false;
  if (Contains(choice.on, pass.name)) return true;
  return choice.level >= (pass.exactness == KEEL_FAST ? 3 : pass.level);
}

absl::Status CheckNames(const std::vector<Pass>& passes, const PassChoice& choice) {
  std::vector<std::string> known, dumped;
  for (const Pass& p : passes)  // several plugins may extend a pass
    if (!Contains(known, p.table.name)) known.emplace_back(p.table.name);
  if (!choice.dump.empty() && choice.dump != "all") dumped.push_back(choice.dump);
  for (const auto* list : {&choice.only, &choice.on, &choice.off, &std::as_const(dumped)})
    for (const std::string& name : *list)
      if (!Contains(known, name))
        return Annotate(NotFound("no pass is named \"", name, "\"; ",
                                 known.empty() ? "no passes are loaded"
                                               : absl::StrCat("the passes are ", absl::StrJoin(known, ", "))),
                        kErrorHint, "`keel passes` lists them with their plugins");
  return absl::OkStatus();
}

// Runs one pass. Replaces the graph if the pass succeeded and edited it.
absl::Status RunPass(const Pass& pass, const PassTarget& target, uint64_t fuel,
                     std::unique_ptr<Rewrite>* work, PassGraph* graph, PassRun* run) {
  if (!*work) *work = std::make_unique<Rewrite>(*graph, target);
  (*work)->Allow(fuel);
  HostCall call;
  absl::Status status =
      pass.rules ? rules::Run(*pass.rules, (*work)->edit())
                 : call.Finish(pass.table.run(&HostTable(), (*work)->edit()), *pass.plugin, "ran a pass");
  if ((*work)->exhausted()) return Exhausted("no memory for pass \"", run->name, "\"");
  run->edits = (*work)->edits();
  if (!status.ok() && !(*work)->stopped()) return status;
  if (!run->edits) {
    if ((*work)->touched()) work->reset();
    return absl::OkStatus();
  }
  absl::StatusOr<PassGraph> result = (*work)->Finish();
  if (!result.ok()) return result.status();
  *graph = *std::move(result);
  work->reset();
  return absl::OkStatus();
}

// Appends the bodies of calls that the device does not support whole, if they are open, and closes them.
// Graphs outlined by passes are for the device; bodies of loops created by passes are open.
void AddBodies(const PassGraph& graph, const PassTarget& target, std::vector<uint8_t>* open,
               std::vector<uint32_t>* bodies) {
  if (graph.graph->module->graphs.size() == 1) return;
  Rewrite reader(graph, target);
  for (NodeId n : reader.Nodes()) {
    std::vector<uint32_t> of_node = BodiesOf(reader.Find(n)->attrs);
    if (of_node.empty() || reader.Supported(n)) continue;
    for (uint32_t body : of_node) {
      if (body >= open->size() && !IsTypedByGraph(*reader.Find(n)->op)) open->resize(body + 1, 1);
      if (body >= open->size() || !(*open)[body]) continue;
      (*open)[body] = 0;
      bodies->push_back(body);
    }
  }
}

PassGraph BodyGraph(const PassGraph& whole, uint32_t number) {
  const Graph* body = whole.graph->module->graphs[number].get();
  return {whole.owner,         body,       body->params, body->results, body->result_names,
          MustRunNodes(*body), whole.plan, whole.graph};
}

// Runs `passes` on each open body, bodies in bodies too, and updates the graph.
absl::Status ForBodies(const PassTarget& target, std::vector<uint8_t> open, PassGraph* graph,
                       absl::FunctionRef<absl::Status(PassGraph*)> passes) {
  const uint32_t main = *graph->graph->module->GraphNumber(graph->graph->name);
  std::vector<uint32_t> bodies;
  AddBodies(*graph, target, &open, &bodies);
  for (size_t i = 0; i < bodies.size(); i++) {
    PassGraph body = BodyGraph(*graph, bodies[i]);
    RETURN_IF_ERROR(passes(&body));
    AddBodies(body, target, &open, &bodies);
    if (!body.owner) continue;
    graph->owner = body.owner;
    graph->graph = graph->owner->graphs[main].get();
  }
  return absl::OkStatus();
}

}  // namespace

struct Passes::Job {
  std::vector<Pass> passes;
  const PassTarget& target;
  const PassChoice& choice;
  PassReport* report;
  std::span<const Pass> canon = {}, later = {};  // parts of `passes`
};

uint64_t PassReport::Edits() const {
  uint64_t edits = 0;
  for (const PassRun& run : runs) edits += run.edits;
  return edits;
}

void PassReport::Add(PassRun run) {
  auto sum = std::find_if(runs.begin(), runs.end(), [&](const PassRun& r) { return r.name == run.name; });
  if (sum == runs.end()) return runs.push_back(std::move(run));
  sum->ms += run.ms;
  sum->edits += run.edits;
  if (!sum->error.empty()) return;  // it failed in this run of all passes and is skipped since
  for (auto text : {&PassRun::error, &PassRun::diff, &PassRun::skipped})
    if ((*sum.*text).empty()) *sum.*text = std::move(run.*text);
}

void PassReport::Add(const PassReport& more) {
  level = more.level;
  for (const PassRun& run : more.runs) Add(run);
  dumps.insert(dumps.end(), more.dumps.begin(), more.dumps.end());
}

absl::Status ParsePasses(const std::string& text, PassChoice* choice) {
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    std::string name(part);
    bool sign = name[0] == '+' || name[0] == '-';
    if (sign && name.size() == 1) return Invalid("option \"passes\": \"", text, "\": a sign without a name");
    (name[0] == '+' ? choice->on : name[0] == '-' ? choice->off : choice->only).push_back(name.substr(sign));
  }
  if (!choice->only.empty() && !(choice->on.empty() && choice->off.empty()))
    return Annotate(
        Invalid("option \"passes\": got \"", text, "\", which mixes names with and without sign"), kErrorHint,
        "either \"fold,map\" (only these) or \"+fast,-map\" (changes to the passes of the level)");
  return absl::OkStatus();
}

std::string Passes::Disabled(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto found = disabled_.find(name);
  return found == disabled_.end() ? "" : found->second;
}

absl::StatusOr<PassGraph> Passes::Run(PassGraph graph, const PassTarget& target, const PassChoice& choice,
                                      PassReport* report) {
  Job job{registry_.Passes(), target, choice, report};
  RETURN_IF_ERROR(CheckNames(job.passes, choice));
  report->level = choice.level;
  std::erase_if(job.passes, [&](const Pass& p) { return !IsSelected(p.table, choice); });
  if (job.passes.empty()) return graph;
  const auto split = std::find_if(job.passes.begin(), job.passes.end(),
                                  [](const Pass& p) { return p.table.phase != KEEL_PHASE_CANON; });
  job.canon = {job.passes.begin(), split};
  job.later = {split, job.passes.end()};
  // Graphs outlined later are for the device.
  const std::vector<uint8_t> open(graph.graph->module->graphs.size(), 1);
  std::unique_ptr<Rewrite> work;
  uint64_t edits = 1;
  // A body that became simpler may free its parent: a loop that does not begin goes if no size in it is left
  // to check.
  for (int round = 0; edits && round < kMaxRounds; round++) {
    edits = 0;
    RETURN_IF_ERROR(RunCanon(job, &work, &graph).status());
    RETURN_IF_ERROR(ForBodies(target, open, &graph, [&](PassGraph* body) {
      std::unique_ptr<Rewrite> own;
      ASSIGN_OR_RETURN(uint64_t more, RunCanon(job, &own, body));
      edits += more;
      return absl::OkStatus();
    }));
    if (edits) work.reset();
  }
  RETURN_IF_ERROR(RunEach(job, job.later, &work, &graph).status());
  RETURN_IF_ERROR(ForBodies(target, open, &graph, [&](PassGraph* body) {
    std::unique_ptr<Rewrite> own;
    RETURN_IF_ERROR(RunCanon(job, &own, body).status());  // `later` may have made it
    return RunEach(job, job.later, &own, body).status();
  }));
  return graph;
}

absl::StatusOr<uint64_t> Passes::RunCanon(const Job& job, std::unique_ptr<Rewrite>* work, PassGraph* graph) {
  uint64_t all = 0, edits = 1;
  for (int round = 0; edits && round < kMaxRounds; round++) {
    ASSIGN_OR_RETURN(edits, RunEach(job, job.canon, work, graph));
    all += edits;
  }
  return all;
}

std::string Passes::SkipReason(const Job& job, const std::string& name) {
  if (job.report->Edits() >= job.choice.fuel) return "the edit limit (fuel) is reached";
  return Disabled(name);
}

absl::StatusOr<uint64_t> Passes::RunEach(const Job& job, std::span<const Pass> passes,
                                         std::unique_ptr<Rewrite>* work, PassGraph* graph) {
  uint64_t edits = 0;
  for (const Pass& pass : passes) {
    PassRun run;
    run.name = pass.table.name;
    run.plugin = pass.plugin->name;
    run.skipped = SkipReason(job, run.name);
    if (run.skipped.empty()) {
      TimedBlock block("pass", run.name);
      absl::Status status =
          RunPass(pass, job.target, job.choice.fuel - job.report->Edits(), work, graph, &run);
      run.ms = block.Ms();
      block.Note("graph", graph->graph->name);
      block.Note("edits", run.edits);
      if (absl::IsResourceExhausted(status)) return status;  // not the pass's fault
      if (!status.ok()) Disable(status, work, &run);
      edits += run.edits;
      if (run.edits && (job.choice.dump == "all" || job.choice.dump == run.name))
        job.report->dumps.push_back({run.name, PrintText(*graph->owner)});
    }
    job.report->Add(std::move(run));
  }
  return edits;
}

void Passes::Disable(const absl::Status& status, std::unique_ptr<Rewrite>* work, PassRun* run) {
  run->edits = 0;
  run->error = std::string(status.message());
  run->diff = *work ? (*work)->Diff() : "";
  work->reset();
  HostTable().log(KEEL_LOG_WARNING, absl::StrCat("pass \"", run->name, "\" of plugin \"", run->plugin,
                                                 "\" failed and is disabled: ", run->error)
                                        .c_str());
  std::lock_guard lock(mutex_);
  disabled_.emplace(run->name, absl::StrCat("it failed before: ", run->error));
}

}  // namespace keel
