// session.cc: sessions and plans (keel.h).
#include <algorithm>

#include "absl/strings/str_split.h"

#include "kernel/api/call.h"
#include "kernel/api/cast_feeds.h"
#include "kernel/api/options.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/plan/make_plan.h"

using namespace keel;

namespace {

// Options of a session that are texts until it has a graph and devices.
struct SessionTexts {
  std::string entry, graph, fallback;
  std::vector<std::string> place;
};

absl::Status ReadOptions(const keel_kv* options, uint32_t n, SessionState* to, SessionTexts* texts) {
  PlanOptions& plan = to->options;
  auto place = [&](const std::string& value) {
    texts->place.push_back(value);
    return absl::OkStatus();
  };
  return SetOptions({Option::Threads(&plan.threads),
                     Option::Memory(&plan.memory),
                     Option::Text("entry", &texts->entry),
                     Option::Text("graph", &texts->graph),
                     Option::Timeout(&plan.timeout_ms),
                     Option::Level(&to->passes),
                     Option::Passes(&to->passes),
                     Option::Flag("observe", &plan.observe),
                     {"place", place, true},
                     Option::Text("fallback", &texts->fallback),
                     Option::Choice("results", &plan.results_on_device, "host or device"),
                     Option::Flag("strict", &plan.strict),
                     Option::Flag("exact_convolution", &plan.exact_convolution),
                     Option::Choice("feeds", &to->exact_feeds, "cast or exact"),
                     Option::Choice("lanes", &plan.lanes, "off, auto or all"),
                     Option::Flag("profile", &plan.profile)},
                    options, n);
}

absl::StatusOr<Graph*> ChooseGraph(const Module& module, const SessionTexts& wanted) {
  if (!wanted.graph.empty()) return module.FindGraph(wanted.graph);
  if (module.entries.empty() && wanted.entry.empty()) {  // the only graph that is not the body of another
    Graph* only = nullptr;
    size_t count = 0;
    for (const auto& graph : module.graphs)
      if (!graph->called) only = graph.get(), count++;
    if (count == 1) return only;
  }
  ASSIGN_OR_RETURN(const Entry* entry, module.FindEntry(wanted.entry));
  return module.graphs[entry->graph].get();
}

using Names = std::span<const char* const>;

absl::StatusOr<Placing> ReadPlacing(Registry& registry, const SessionTexts& wanted) {
  Placing placing;
  for (const std::string& rule : wanted.place) {
    size_t split = rule.rfind('=');
    if (split == std::string::npos || split == 0 || split + 1 == rule.size())
      return Invalid("option \"place\": got \"", rule,
                     "\", expected PATTERN=DEVICE, for example \"conv*=cpu\"");
    ASSIGN_OR_RETURN(Device * device, registry.FindDevice(rule.substr(split + 1)));
    placing.rules.push_back({rule.substr(0, split), device});
  }
  for (std::string_view name : absl::StrSplit(wanted.fallback, ',', absl::SkipEmpty())) {
    ASSIGN_OR_RETURN(placing.fallbacks.emplace_back(), registry.FindDevice(std::string(name)));
  }
  placing.find = [&registry](const std::string& name) { return registry.FindDevice(name); };
  return placing;
}

// The device of "auto" for a run of the whole graph.
absl::StatusOr<Device*> ChooseFor(const SessionState& s, Registry& registry) {
  const std::vector<NodeId> targets = MustRunNodes(*s.graph);
  return ChooseDevice(registry, {s.graph, nullptr, s.graph->params, s.graph->results, targets}, s.placing,
                      s.options);
}

absl::StatusOr<std::vector<ValueId>> FindValues(const Graph& graph, Names names) {
  std::vector<ValueId> values;
  for (const char* name : names) {
    ASSIGN_OR_RETURN(ValueId v, graph.Find(name));
    values.push_back(v);
  }
  return values;
}

// Nodes that run even if their results are unused: the named nodes, all nodes with an effect in a run of the
// whole graph, every node in a strict session.
absl::StatusOr<std::vector<NodeId>> FindTargets(const Graph& graph, Names names, bool whole, bool strict) {
  std::vector<NodeId> nodes;
  if (strict)
    for (NodeId n = 0; n < graph.nodes.size(); n++) nodes.push_back(n);
  if (whole && !strict) nodes = MustRunNodes(graph);
  for (const char* name : names) {
    ASSIGN_OR_RETURN(NodeId n, graph.FindNode(name));
    if (n != kNoValue && std::find(nodes.begin(), nodes.end(), n) == nodes.end()) nodes.push_back(n);
  }
  return nodes;
}

// By numbers, since names may change in a graph under construction.
absl::StatusOr<std::shared_ptr<Plan>> MakePlan(SessionState& s, const Prepared& p) {
  const Optimizer optimizer{&s.module->context->passes, s.passes};
  const PlanRequest request{s.graph, s.device, p.feeds, p.fetches, p.targets};
  PlanOptions options = s.options;
  std::vector<bool> needed = request.Needed();
  RETURN_IF_ERROR(CheckFed(request, needed));
  options.nodes = needed.size();
  options.needed = static_cast<size_t>(std::count(needed.begin(), needed.end(), true));
  if (NeedsPlacing(*s.graph, s.placing)) return MakePlacedPlan(request, s.placing, optimizer, options);
  return keel::MakePlan(request, options, optimizer);
}

// An impl declined the dims of its node, and nothing on the device replaces it: the node moves to the next
// fallback permanently. False: there is none.
bool MoveToFallback(SessionState& s, Prepared& p, const absl::Status& why) {
  std::string node = ErrorFact(why, kErrorNode);
  size_t slash = node.find('/');  // of an expanded body: take the enclosing node
  if (slash != std::string::npos && !s.graph->FindNode(node).ok()) node.resize(slash);
  absl::StatusOr<NodeId> found = s.graph->FindNode(node);
  bool known =
      found.ok() && *found != kNoValue;  // otherwise a pass made the node: all of the device's nodes move
  const std::string pattern = known ? node : "*";
  std::vector<PlaceRule>& rules = s.placing.rules;
  const auto is_tried = [&](Device* device) {
    return std::ranges::any_of(
        rules, [&](const PlaceRule& r) { return r.device == device && r.pattern == pattern; });
  };
  const bool moved_for_another_plan =
      p.rules != rules.size() && std::ranges::any_of(s.placing.fallbacks, is_tried);
  if (!moved_for_another_plan) {
    const auto next = std::ranges::find_if_not(s.placing.fallbacks, is_tried);
    if (next == s.placing.fallbacks.end()) return false;
    rules.insert(rules.begin(), {pattern, *next});
  }
  p.rules = rules.size();
  return true;
}

absl::StatusOr<std::shared_ptr<Plan>> MakePlanOrMove(SessionState& s, Prepared& p) {
  for (;;) {
    absl::StatusOr<std::shared_ptr<Plan>> made = MakePlan(s, p);
    if (!absl::IsUnimplemented(made.status()) || s.placing.fallbacks.empty() ||
        ErrorFact(made.status(), kErrorNode).empty() || !MoveToFallback(s, p, made.status()))
      return made;
  }
}

absl::StatusOr<std::shared_ptr<Prepared>> FindPlan(SessionState& s, const char* const* feeds,
                                                   uint32_t n_feeds, const char* const* fetches,
                                                   uint32_t n_fetches, Names targets) {
  std::scoped_lock lock(s.mutex, s.module->mutex);
  std::vector<ValueId> in = s.graph->params, out = s.graph->results;
  if (feeds) {
    ASSIGN_OR_RETURN(in, FindValues(*s.graph, {feeds, n_feeds}));
  }
  if (fetches) {
    ASSIGN_OR_RETURN(out, FindValues(*s.graph, {fetches, n_fetches}));
  }
  ASSIGN_OR_RETURN(std::vector<NodeId> also, FindTargets(*s.graph, targets, !fetches, s.options.strict));
  std::string key;
  for (const auto* list : {&in, &out, &also}) AppendList(&key, *list);
  if (auto found = s.plans.find(key); found != s.plans.end()) return found->second;
  auto made = std::make_shared<Prepared>(
      Prepared{std::move(in), std::move(out), std::move(also), nullptr, s.placing.rules.size()});
  ASSIGN_OR_RETURN(made->plan, MakePlanOrMove(s, *made));
  return s.plans[key] = std::move(made);
}

// An impl declined these shapes at run time: the plan is recreated without its node. An error if effects may
// have happened already.
absl::StatusOr<Plan*> WithoutDeclined(SessionState& s, Prepared& p, const Plan* ran, absl::Status why) {
  std::scoped_lock lock(s.mutex, s.module->mutex);
  if (p.plan.get() != ran) return p.plan.get();  // another thread has replaced it
  if (!MustRunNodes(*s.graph).empty())
    return Annotate(
        why, kErrorHint,
        "the graph has effects, which may have taken place: move the node with the option \"place\"");
  if (!MoveToFallback(s, p, why)) return why;
  ASSIGN_OR_RETURN(std::shared_ptr<Plan> made, MakePlanOrMove(s, p));
  s.declined.push_back(std::exchange(p.plan, std::move(made)));
  return p.plan.get();
}

// Reruns a failed run while nodes can move to a fallback. *plan: the plan of later runs.
absl::Status RunAgain(SessionState& s, Prepared& p, Plan** plan, absl::Status status, const Operands& of) {
  while (absl::IsUnimplemented(status) && !s.placing.fallbacks.empty()) {
    ASSIGN_OR_RETURN(*plan, WithoutDeclined(s, p, *plan, std::move(status)));
    status = RunPlan(**plan, of);
  }
  return status;
}

struct Observed {
  keel_observer observer;
  void* arg;
  std::string op;  // reused for the next event, like `names`: a profile should not contain allocations
  std::vector<const char*> names;
  absl::Status thrown;
};

bool CallObserver(void* arg, const Lowered& lowered, const Event& event) {
  auto* observed = static_cast<Observed*>(arg);
  observed->op = OpName(*event.step.op);
  observed->names.clear();
  for (uint32_t v : event.step.out) observed->names.push_back(lowered.values[v].name.c_str());
  const keel_call& call = event.call;
  keel_event told{sizeof(keel_event),
                  call.n_in,
                  call.n_out,
                  static_cast<uint32_t>(event.index),
                  event.step.name.c_str(),
                  observed->op.c_str(),
                  event.step.impl->table.name ? event.step.impl->table.name : "",
                  call.in,
                  call.out,
                  observed->names.data(),
                  event.when.begin,
                  event.when.end,
                  event.when.lane,
                  0};
  bool on = false;
  observed->thrown = CatchExceptions("the observer", [&] {
    on = observed->observer(observed->arg, &told) == 0;
    return absl::OkStatus();
  });
  return on;
}

}  // namespace

absl::Status keel::FallBack(keel_plan& p, absl::Status status, const Operands& of) {
  Plan* plan = p.plan.load(std::memory_order_acquire);
  status = RunAgain(*p.session, *p.prepared, &plan, std::move(status), of);
  p.plan.store(plan, std::memory_order_release);
  return status;
}

keel_rc keel_session_new(keel_module* m, const char* device, const keel_kv* options, uint32_t n,
                         keel_session** out, keel_error** err) {
  return Guard(err, "module device options[n_options] out", {m, device, options, n, out},
               [&]() -> absl::Status {
                 auto state = std::make_shared<SessionState>();
                 SessionTexts texts;
                 state->module = m->state;
                 state->options = m->state->context->Options();
                 RETURN_IF_ERROR(ReadOptions(options, n, state.get(), &texts));
                 // An observed session shows the nodes as written.
                 if (state->options.observe && !state->passes.given()) state->passes.level = 0;
                 Registry& registry = m->state->context->registry;
                 ASSIGN_OR_RETURN(state->placing, ReadPlacing(registry, texts));
                 const bool chosen = device != std::string_view(kAutoDevice);
                 if (chosen) {
                   ASSIGN_OR_RETURN(state->device, registry.FindDevice(device));
                 }
                 std::lock_guard lock(m->state->mutex);
                 ASSIGN_OR_RETURN(state->graph, ChooseGraph(*m->state->module, texts));
                 if (!chosen) {
                   ASSIGN_OR_RETURN(state->device, ChooseFor(*state, registry));
                 }
                 *out = new keel_session{std::move(state)};
                 return absl::OkStatus();
               });
}

void keel_session_free(keel_session* s) { delete s; }

keel_rc keel_plan_new(keel_session* s, const char* const* feeds, uint32_t n_feeds, const char* const* fetches,
                      uint32_t n_fetches, const char* const* targets, uint32_t n_targets, keel_plan** out,
                      keel_error** err) {
  return Guard(err, "session feeds[n_feeds]! fetches[n_fetches]! targets[n_targets]* out",
               {s, feeds, n_feeds, fetches, n_fetches, targets, n_targets, out}, [&]() -> absl::Status {
                 ASSIGN_OR_RETURN(std::shared_ptr<Prepared> made, FindPlan(*s->state, feeds, n_feeds, fetches,
                                                                           n_fetches, {targets, n_targets}));
                 Plan* plan = made->plan.get();
                 *out = new keel_plan{s->state, std::move(made), plan};
                 return absl::OkStatus();
               });
}

keel_rc keel_session_run(keel_session* s, const char* const* feeds, keel_array* const* in, uint32_t n_in,
                         const char* const* fetches, keel_array** out, uint32_t n_out,
                         const char* const* targets, uint32_t n_targets, keel_error** err) {
  return Guard(err, "session feeds[n_in]! in[n_in]* fetches[n_out]! out[n_out] targets[n_targets]*",
               {s, feeds, n_in, in, n_in, fetches, n_out, out, n_out, targets, n_targets},
               [&]() -> absl::Status {
                 ASSIGN_OR_RETURN(std::shared_ptr<Prepared> made,
                                  FindPlan(*s->state, feeds, n_in, fetches, n_out, {targets, n_targets}));
                 Feeds given(in, in + n_in);
                 std::vector<ArrayRef> cast;
                 Plan* plan = made->plan.get();
                 RETURN_IF_ERROR(CastFeeds(*s->state, *plan, &given, &cast));
                 Operands operands{{given.data(), n_in}, {out, n_out}};
                 return RunAgain(*s->state, *made, &plan, RunPlan(*plan, operands), operands);
               });
}

void keel_plan_free(keel_plan* p) { delete p; }
void keel_plan_counts(const keel_plan* p, uint32_t* inputs, uint32_t* outputs) {
  const Plan* plan = p ? p->plan.load() : nullptr;
  if (inputs) *inputs = plan ? static_cast<uint32_t>(plan->inputs()) : 0;
  if (outputs) *outputs = plan ? static_cast<uint32_t>(plan->outputs()) : 0;
}

keel_rc keel_plan_port(const keel_plan* p, int32_t output, uint32_t i, keel_text** name, keel_dt* dtype,
                       int64_t* shape, int32_t* ndim, keel_error** err) {
  return Guard(err, "plan", {p}, [&, caller = __func__]() -> absl::Status {
    std::lock_guard lock(p->session->module->mutex);
    const Graph& graph = *p->session->graph;
    const std::vector<ValueId>& ports = output ? p->prepared->fetches : p->prepared->feeds;
    if (i >= ports.size())
      return NotFound(caller, ": 'i' is ", i, ", but the plan has ", ports.size(),
                      output ? " outputs" : " inputs");
    std::string text = graph.ValueName(ports[i]);
    if (output && ports == graph.results && !graph.result_names[i].empty()) text = graph.result_names[i];
    if (name) RETURN_IF_ERROR(Give(std::move(text), name));
    GiveType(graph.values[ports[i]].type, dtype, shape, ndim);
    return absl::OkStatus();
  });
}

keel_rc keel_plan_report(keel_plan* p, keel_array* const* in, uint32_t n_in, keel_text** out,
                         keel_error** err) {
  return Guard(err, "plan in[n_in]! out", {p, in, n_in, out}, [&]() -> absl::Status {
    return Give(p->plan.load()->Report({in, in ? n_in : 0}), out);
  });
}

keel_rc keel_plan_run_observed(keel_plan* p, keel_array* const* in, uint32_t n_in, keel_array** out,
                               uint32_t n_out, keel_observer observer, void* arg, keel_error** err) {
  return Guard(
      err, "plan in[n_in]* out[n_out] observer", {p, in, n_in, out, n_out, observer}, [&]() -> absl::Status {
        Plan& plan = *p->plan.load();
        if (!plan.observable())
          return Error(absl::StatusCode::kFailedPrecondition,
                       "the plan cannot be observed: create the session with the option \"observe\" = \"1\"");
        Observed observed{observer, arg, {}, {}, {}};
        absl::Status ran = RunPlan(plan, {{in, n_in}, {out, n_out}}, CallObserver, &observed);
        return observed.thrown.ok() ? ran : observed.thrown;
      });
}
