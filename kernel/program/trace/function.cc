// function.cc: slow path of calls: run eagerly, inlined into a trace, or by a concrete function that is
// looked up or traced. See function.h; function_call.cc has the fast path for repeated calls.
#include "kernel/program/trace/function.h"

#include <optional>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "kernel/base/json.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/language/graph/text.h"
#include "kernel/program/grad/lift.h"
#include "kernel/program/trace/tape.h"
#include "kernel/runtime/plan/make_plan.h"

namespace keel {
namespace {

constexpr size_t kMostKeys = 4096;  // of exact sizes; several may refer to one trace

struct Running;
// A linked list of the functions whose programs this thread is running, innermost first.
thread_local const Running* innermost = nullptr;

struct Running {
  Running(const Function* f, bool into_trace)
      : function(f), outer(std::exchange(innermost, this)), written(into_trace) {}
  ~Running() { innermost = outer; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  static bool Has(const Function* f, bool written) {
    const Running* at = innermost;
    while (at && (at->function != f || (written && !at->written))) at = at->outer;
    return at != nullptr;
  }
  const Function* function;
  const Running* outer;
  bool written;  // inlined into the caller's trace; eager recursion is allowed
};

absl::Status Recursion(std::string_view name) {
  return Annotate(Invalid("function \"", name, "\" calls itself while it is being traced"), kErrorHint,
                  "write the recursion as a loop: while or scan");
}

}  // namespace

Results Tracing::Take() {
  Results taken;
  for (auto& [name, array] : results) taken.push_back(std::move(array));
  return taken;
}

Function::Function(std::shared_ptr<Context> context, std::string name, Device* device,
                   FunctionOptions options, TracedBody body)
    : context_(std::move(context)),
      name_(std::move(name)),
      device_(device),
      options_(std::move(options)),
      body_(std::move(body)) {}

bool Function::FreedInside() {
  bool inside = tracing_.mine() || Running::Has(this, false);
  if (inside) freed_inside_ = true;
  return inside;
}

absl::Status Function::RunProgram(Tracing& tracing, std::span<const keel_leaf> leaves) {
  RETURN_IF_ERROR(body_(tracing, leaves));
  if (freed_inside_.exchange(false)) return Invalid("the program of \"", name_, "\" freed its own function");
  return absl::OkStatus();
}

absl::Status Function::CallCold(Tracing* within, Tape* tape, const Arguments& arguments, Results* results) {
  bool symbolic = false;
  RETURN_IF_ERROR(arguments.Check(&symbolic));
  if (symbolic || (within && within->trace) || eager_ || context_->eager) {
    ASSIGN_OR_RETURN(Trace * outer, Trace::OfAll(arguments.OnlyArrays()));
    if (!outer && within && within->trace) outer = within->trace->Current();
    std::shared_ptr<Trace> trace = outer ? outer->shared_from_this() : nullptr;
    if (trace && (tracing_.mine() || Running::Has(this, true))) return Recursion(name_);
    const Running inlined(this, trace != nullptr);
    Tracing tracing{context_, std::move(trace), {}, tape};
    RETURN_IF_ERROR(RunProgram(tracing, arguments.leaves));
    *results = tracing.Take();
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Concrete> concrete, Find(arguments));
  if (size_t given = concrete->graph->results.size(); given > arguments.room)
    return NoRoom("the function", given, arguments.room);
  bool misfit = false;
  absl::Status status = CallConcrete(&concrete, tape, arguments, &misfit, results);
  if (misfit) {
    absl::StatusOr<std::shared_ptr<Concrete>> only = TraceExactSizes(arguments, status);
    if (!only.ok()) return options_.signature.empty() ? only.status() : status;
    concrete = *std::move(only);
    status = CallConcrete(&concrete, tape, arguments, nullptr, results);
  }
  RETURN_IF_ERROR(status);
  if (!tape && !options_.check_captures) Remember(arguments, std::move(concrete));
  return absl::OkStatus();
}

absl::Status Function::CallConcrete(std::shared_ptr<Concrete>* concrete, Tape* tape,
                                    const Arguments& arguments, bool* misfit, Results* results) {
  if (options_.check_captures) RETURN_IF_ERROR(CheckCaptures(**concrete, arguments));
  if (tape) {
    ASSIGN_OR_RETURN(*concrete, RetraceForTape(std::move(*concrete), *tape, arguments));
  }
  return RunPlan(**concrete, tape, arguments, misfit, results);
}

// If many signatures alternate, only one call in kTurns replaces an entry: replacing one in every call would
// cost more than it saves.
void Function::Remember(const Arguments& arguments, std::shared_ptr<Concrete> concrete) {
  constexpr uint32_t kTurns = 16;
  if (!warm_.HasFreeSlot() && forgotten_.fetch_add(1, std::memory_order_relaxed) % kTurns) return;
  warm_.Put(std::make_unique<Warm>(Warm{KeptArguments(arguments), std::move(concrete)}));
}

Function::Key Function::KeyOf(const Arguments& arguments) const {
  Key key;
  arguments.Key(&key.bytes, &key.sizes);
  key.kind = key.bytes.size();
  key.bytes.append(reinterpret_cast<const char*>(key.sizes.data()), key.sizes.size() * sizeof(int64_t));
  return key;
}

// With a declared signature one trace serves all calls, unless its program needed specific sizes.
absl::StatusOr<std::shared_ptr<Concrete>> Function::Find(const Arguments& arguments) {
  const bool one = !options_.signature.empty() && !by_sizes_;
  if (std::shared_ptr<Concrete> known = FindKnown(one ? "" : KeyOf(arguments).bytes)) return known;
  if (tracing_.mine()) return Recursion(name_);
  std::lock_guard tracing(tracing_);
  return FindOrTrace(arguments);
}

std::shared_ptr<Concrete> Function::Touch(const std::shared_ptr<Concrete>& concrete) {
  concrete->calls++;
  concrete->last_call = ++clock_;
  return concrete;
}

std::shared_ptr<Concrete> Function::FindKnown(std::string_view key) {
  std::lock_guard lock(mutex_);
  auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : Touch(it->second);
}

bool Function::Fits(const Concrete& concrete, std::span<const int64_t> sizes,
                    std::span<const int64_t> declared) const {
  std::optional<std::vector<int64_t>> symbols = concrete.sizes.Fit(sizes);
  if (concrete.declared) symbols.emplace(declared.begin(), declared.end());
  return symbols && std::ranges::all_of(concrete.size_queries->guards, [&](const DimRule& guard) {
           absl::StatusOr<bool> holds = Holds(guard, concrete.module->dims, *symbols);
           return holds.ok() && *holds;
         });
}

absl::StatusOr<std::shared_ptr<Concrete>> Function::FindOrTrace(const Arguments& arguments) {
  const bool has_signature = !options_.signature.empty();
  if (has_signature && !by_sizes_)
    if (std::shared_ptr<Concrete> known = FindKnown("")) return known;  // another thread traced it meanwhile
  Key key = KeyOf(arguments);
  if (std::shared_ptr<Concrete> known = FindKnown(key.bytes)) return known;
  std::vector<int64_t> declared;
  if (by_sizes_) {
    ASSIGN_OR_RETURN(declared, SignatureSizes(arguments));
  }
  {
    std::lock_guard lock(mutex_);
    for (const auto& concrete : kinds_[std::string(key.kind_view())].traces) {
      if (!Fits(*concrete, key.sizes, declared)) continue;
      if (by_key_.size() >= kMostKeys) by_key_.clear();
      return Touch(by_key_[key.bytes] = concrete);
    }
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Concrete> made, WriteWide(arguments, key));
  if (has_signature && (!made->declared || !made->size_queries->guards.empty())) by_sizes_ = true;
  std::lock_guard lock(mutex_);
  Add(has_signature && !by_sizes_ ? "" : key.bytes, made);
  return made;
}

// For arguments that match a size pattern but violate a rule that a run checks.
absl::StatusOr<std::shared_ptr<Concrete>> Function::TraceExactSizes(const Arguments& arguments,
                                                                    const absl::Status& why) {
  if (!options_.signature.empty()) RETURN_IF_ERROR(SignatureSizes(arguments).status());
  if (tracing_.mine()) return Recursion(name_);
  std::lock_guard tracing(tracing_);
  Key key = KeyOf(arguments);
  SizePattern only{{key.sizes.begin(), key.sizes.end()}, 0};
  ASSIGN_OR_RETURN(std::shared_ptr<Concrete> made, Write(arguments, std::move(only), false));
  absl::StrAppend(&made->reason, "; a trace for more sizes does not accept these: ", why.message());
  made->kind = key.kind_view();
  by_sizes_ = !options_.signature.empty();
  std::lock_guard lock(mutex_);
  Add(key.bytes, made);
  return made;
}

// Sorted by number of symbols, so that the most specific matching trace is found first.
void Function::Add(const std::string& key, std::shared_ptr<Concrete> made) {
  std::vector<std::shared_ptr<Concrete>>& same = kinds_[made->kind].traces;
  auto at = same.begin();
  while (at != same.end() && (*at)->sizes.symbols <= made->sizes.symbols) ++at;
  same.insert(at, made);
  by_key_[key] = made;
  Touch(made);
  all_.push_back(std::move(made));
  if (all_.size() > options_.max_traces) DropOldest();
}

void Function::DropOldest() {
  auto oldest = all_.begin();
  for (auto it = all_.begin(); it != all_.end(); ++it)
    if ((*it)->last_call < (*oldest)->last_call) oldest = it;
  std::shared_ptr<Concrete> gone = *oldest;
  all_.erase(oldest);
  std::erase(kinds_[gone->kind].traces, gone);
  std::erase_if(by_key_, [&](const auto& pair) { return pair.second == gone; });
  dropped_++;
  gone->dropped = true;
  warm_.Clear();
}

absl::StatusOr<std::shared_ptr<Plan>> Function::PlanOf(const Graph& graph, std::span<const ValueId> fetches) {
  return keel::MakePlan({&graph, device_, graph.params, fetches, MustRunNodes(graph)}, options_.plan,
                        {&context_->passes, options_.passes});
}

absl::Status Function::MakePlan(Concrete& concrete) {
  const int64_t start = Now();
  ASSIGN_OR_RETURN(concrete.plan, PlanOf(*concrete.graph, concrete.graph->results));
  concrete.plan_ms = static_cast<double>(Now() - start) / 1e6;
  return absl::OkStatus();
}

absl::Status Function::EnsurePlan(Concrete& concrete) {
  concrete.plan_once.Do([&] { concrete.plan_error = MakePlan(concrete); });
  return concrete.plan_error;
}

absl::Status Function::EnsureTapedPlan(Concrete& concrete) {
  concrete.taped_plan_once.Do([&] { concrete.taped_plan_error = MakeTapedPlan(concrete); });
  return concrete.taped_plan_error;
}

absl::Status Function::MakeTapedPlan(Concrete& concrete) {
  const Graph& graph = *concrete.graph;
  std::vector<ValueId> feeds = graph.params, fetches = graph.results;
  for (const TraceLink& link : concrete.links)
    if (link.variable && link.value != kNoValue) feeds.push_back(link.value), fetches.push_back(link.value);
  concrete.taped[0] = Taped::Of(concrete.module, concrete.graph, feeds, graph.results);
  size_t uncaptured = feeds.size();
  for (const TraceLink& link : concrete.links)
    if (link.array) feeds.push_back(link.value);
  std::shared_ptr<Module> lifted = CopyModule(*concrete.module, nullptr);
  ASSIGN_OR_RETURN(uint32_t number, lifted->GraphNumber(graph.name));
  Graph* copy = lifted->graphs[number].get();
  RETURN_IF_ERROR(LiftConstants(*copy, std::span(feeds).subspan(uncaptured)));
  concrete.taped[1] = Taped::Of(std::move(lifted), copy, std::move(feeds), graph.results);
  if (fetches.size() > graph.results.size()) {
    ASSIGN_OR_RETURN(concrete.taped_plan, PlanOf(graph, fetches));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(EnsurePlan(concrete));
  concrete.taped_plan = concrete.plan;
  return absl::OkStatus();
}

absl::Status Function::RunPlan(Concrete& concrete, Tape* tape, const Arguments& arguments, bool* misfit,
                               Results* results) {
  RETURN_IF_ERROR(CheckArity(*concrete.graph, arguments));
  Arguments::Arrays feeds = arguments.OnlyArrays();
  RETURN_IF_ERROR(tape ? EnsureTapedPlan(concrete) : EnsurePlan(concrete));
  if (misfit && (concrete.declared || concrete.sizes.symbols)) {
    Plan& plan = tape ? *concrete.taped_plan : *concrete.plan;
    absl::Status fits = plan.Sizes({feeds.data(), feeds.size()}, concrete.module->dims).status();
    *misfit = !fits.ok();
    RETURN_IF_ERROR(fits);
  }
  if (tape) return RunTaped(concrete, *tape, std::move(feeds), results);
  results->resize(concrete.plan->outputs());
  return concrete.plan->Run({feeds.data(), feeds.size()}, {results->data(), results->size()});
}

// Equal scalars share one constant unless a tape knows them when they are captured. If the tape watches a
// scalar that was captured before, the program is retraced so that the scalar becomes a separate constant.
absl::StatusOr<std::shared_ptr<Concrete>> Function::RetraceForTape(std::shared_ptr<Concrete> concrete,
                                                                   const Tape& tape,
                                                                   const Arguments& arguments) {
  auto shared = [&] {
    return std::ranges::any_of(concrete->links, [&](const TraceLink& link) {
      return link.array && tape.WatchesOrOuter(link.array.get()) && IsShared(*concrete->graph, link.value);
    });
  };
  if (!shared()) return concrete;
  if (tracing_.mine()) return Recursion(name_);
  std::lock_guard tracing(tracing_);
  for (; shared(); concrete = concrete->retraced) {
    if (concrete->retraced) continue;
    ASSIGN_OR_RETURN(concrete->retraced, Write(arguments, concrete->sizes, concrete->declared));
  }
  return concrete;
}

absl::Status Function::RunTaped(Concrete& concrete, Tape& tape, Arguments::Arrays feeds, Results* results) {
  Results all(concrete.taped_plan->outputs());
  RETURN_IF_ERROR(concrete.taped_plan->Run({feeds.data(), feeds.size()}, {all.data(), all.size()}));
  size_t n = concrete.graph->results.size(), read = n;
  bool captured = false;
  for (const TraceLink& link : concrete.links) {
    bool watched = link.array && tape.WatchesOrOuter(link.array.get());
    captured |= watched;
    if (link.variable && link.value == kNoValue) tape.RecordUnreachableRead(link.variable);
    if (!link.variable || link.value == kNoValue) continue;
    feeds.push_back(all[read++].get());
    tape.RecordRead(link.variable, feeds.back());
  }
  for (const TraceLink& link : concrete.links)
    if (captured && link.array) feeds.push_back(link.array.get());
  absl::InlinedVector<keel_array*, 8> made;
  for (size_t i = 0; i < n; i++) made.push_back(all[i].get());
  tape.Record(concrete.taped[captured], device_, {feeds.data(), feeds.size()}, {made.data(), made.size()});
  all.resize(n);
  *results = std::move(all);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Concrete>> Function::At(uint32_t number) const {
  std::lock_guard lock(mutex_);
  if (number < all_.size()) return *std::next(all_.begin(), number);
  return NotFound("function \"", name_, "\" has no trace ", number, "; it has ", all_.size(),
                  ", counted from 0");
}

std::string Function::Report() const {
  std::lock_guard lock(mutex_);
  Json json;
  json.BeginObject();
  json.Key("name").String(name_);
  json.Objects("traces", all_, [&](const auto& concrete) {
    json.Key("signature").String(concrete->signature);
    json.Key("reason").String(concrete->reason);
    json.Key("trace_ms").Double(concrete->trace_ms);
    json.Key("plan_ms").Double(concrete->plan_ms);
    json.Key("calls").Int(static_cast<int64_t>(concrete->calls.load()));
    json.Key("guards").BeginArray();
    for (const DimRule& guard : concrete->size_queries->guards)
      json.String(PrintRule(guard, concrete->module->dims));
    json.EndArray();
    ReportCaptures(*concrete, &json);
  });
  json.Key("dropped").Int(static_cast<int64_t>(dropped_));
  json.EndObject();
  return json.Take();
}

}  // namespace keel
