// function.cc: calls of functions: eager, inlined into a trace, or by a concrete function that is found or
// traced. See function.h; calls like those before are in function_call.cc.
#include "kernel/trace/function.h"

#include <optional>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "kernel/base/json.h"
#include "kernel/grad/lift.h"
#include "kernel/graph/text.h"
#include "kernel/trace/tape.h"

namespace keel {
namespace {

constexpr size_t kMostKeys = 4096;  // of exact sizes that were met; more than the traces themselves

constexpr std::string_view kFirst = "first call";

double MsSince(int64_t start) { return static_cast<double>(Now() - start) / 1e6; }

struct Inlined;
// The functions that this thread is writing into traces of others, innermost last.
thread_local const Inlined* innermost = nullptr;

struct Inlined {
  explicit Inlined(const Function* f) : function(f), outer(std::exchange(innermost, this)) {}
  ~Inlined() { innermost = outer; }
  Inlined(const Inlined&) = delete;
  Inlined& operator=(const Inlined&) = delete;
  static bool Has(const Function* f) {
    const Inlined* at = innermost;
    while (at && at->function != f) at = at->outer;
    return at != nullptr;
  }
  const Function* function;
  const Inlined* outer;
};

absl::Status Recursion(std::string_view name) {
  return Annotate(Invalid("function \"", name, "\" calls itself while it is being traced"), kErrorHint,
                  "write the recursion as a loop: while or scan");
}

std::string SignatureOf(const Graph& g) {
  auto list = [&](const std::vector<ValueId>& values, bool names) {
    return absl::StrJoin(values, ", ", [&](std::string* out, ValueId v) {
      absl::StrAppend(out, names ? g.values[v].name + ": " : "", Print(g.values[v].type, g.module->dims));
    });
  };
  return absl::StrCat(g.name, "(", list(g.params, true), ") -> ",
                      g.results.size() == 1 ? list(g.results, false) : "(" + list(g.results, false) + ")");
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

absl::Status Function::CallCold(Tracing* within, Tape* tape, const Arguments& arguments, Results* results) {
  bool symbolic = false;
  RETURN_IF_ERROR(arguments.Check(&symbolic));
  if (symbolic || (within && within->trace) || eager_ || context_->eager) {
    ASSIGN_OR_RETURN(keel::Trace * outer, keel::Trace::OfAll(arguments.OnlyArrays()));
    if (!outer && within && within->trace) outer = within->trace->Current();
    std::shared_ptr<keel::Trace> trace = outer ? outer->shared_from_this() : nullptr;
    if (trace && (tracing_.mine() || Inlined::Has(this))) return Recursion(name_);
    std::optional<Inlined> inlined;
    if (trace) inlined.emplace(this);  // run eagerly, recursion is that of the program
    Tracing tracing{context_, std::move(trace), {}, tape};
    RETURN_IF_ERROR(body_(tracing, arguments.leaves));
    *results = tracing.Take();
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Concrete> concrete, Find(arguments));
  if (options_.check_captures) RETURN_IF_ERROR(CheckCaptures(*concrete, arguments));
  if (tape) {
    ASSIGN_OR_RETURN(concrete, Apart(std::move(concrete), *tape, arguments));
  }
  RETURN_IF_ERROR(RunPlan(*concrete, tape, arguments, results));
  if (!tape && !options_.check_captures) Remember(arguments, std::move(concrete));
  return absl::OkStatus();
}

// Where many kinds of calls take turns, most are not worth their place.
void Function::Remember(const Arguments& arguments, std::shared_ptr<Concrete> concrete) {
  constexpr uint32_t kTurns = 16;
  if (!warm_.HasRoom() && forgotten_.fetch_add(1, std::memory_order_relaxed) % kTurns) return;
  warm_.Give(std::make_unique<Warm>(Warm{KeptArguments(arguments), std::move(concrete)}));
}

absl::StatusOr<std::shared_ptr<Concrete>> Function::Find(const Arguments& arguments) {
  KeyBytes kind;
  LeafDims sizes;
  if (options_.signature.empty()) arguments.Key(&kind, &sizes);
  size_t kind_bytes = kind.view().size();
  kind.Add(sizes.data(), sizes.size() * sizeof(int64_t));
  if (std::shared_ptr<Concrete> known = Known(kind.view())) return known;
  return FindOrTrace(arguments, std::string(kind.view().substr(0, kind_bytes)), sizes);
}

std::shared_ptr<Concrete> Function::Touch(const std::shared_ptr<Concrete>& concrete) {
  concrete->calls++;
  concrete->last_call = ++clock_;
  return concrete;
}

std::shared_ptr<Concrete> Function::Known(std::string_view key) {
  std::lock_guard lock(mutex_);
  auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : Touch(it->second);
}

absl::StatusOr<std::shared_ptr<Concrete>> Function::FindOrTrace(const Arguments& arguments, std::string kind,
                                                                std::span<const int64_t> sizes) {
  if (tracing_.mine()) return Recursion(name_);
  std::string key = kind;
  key.append(reinterpret_cast<const char*>(sizes.data()), sizes.size_bytes());
  std::lock_guard tracing(tracing_);
  if (std::shared_ptr<Concrete> known = Known(key)) return known;  // by another thread, just now
  SizePattern pattern;
  {
    std::lock_guard lock(mutex_);
    Kind& same = kinds_[kind];
    for (const auto& concrete : same.traces) {
      if (!concrete->sizes.Fits(sizes)) continue;
      if (by_key_.size() >= kMostKeys) by_key_.clear();
      return Touch(by_key_[key] = concrete);
    }
    pattern = same.ledger.Next(sizes, options_.any_after);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Concrete> made, Write(arguments, std::move(pattern)));
  made->kind = std::move(kind);
  std::lock_guard lock(mutex_);
  Add(key, made);
  return made;
}

// Literal sizes before symbols: the most specific trace that fits is taken.
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

// Why the arguments needed a new trace: the first leaf that differs from the trace that is nearest.
std::string Function::Reason(const Arguments& arguments) const {
  std::lock_guard lock(mutex_);
  size_t n = arguments.leaves.size(), best_score = 0;
  const Concrete* nearest = nullptr;
  for (const auto& concrete : all_) {
    size_t score = 0;
    for (size_t i = 0; i < n && i < concrete->leaves.size(); i++)
      score += concrete->leaves[i] == arguments.Describe(i);
    if (nearest && score < best_score) continue;
    best_score = score;
    nearest = concrete.get();
  }
  if (!nearest) return std::string(kFirst);
  if (nearest->leaves.size() != n)
    return absl::StrCat("there were ", nearest->leaves.size(), " arguments, now ", n);
  for (size_t i = 0; i < n; i++)
    if (nearest->leaves[i] != arguments.Describe(i))
      return absl::StrCat(arguments.NameOf(i), " was ", nearest->leaves[i], ", now ", arguments.Describe(i));
  return "the structure of the arguments differs";
}

absl::Status Function::Begin(const Arguments& arguments, Concrete* concrete, std::vector<ArrayRef>* params) {
  concrete->module = std::make_shared<Module>(context_->catalogue);
  ASSIGN_OR_RETURN(concrete->graph, concrete->module->AddGraph(name_));
  RETURN_IF_ERROR(concrete->module->AddEntry(name_, concrete->graph));
  auto trace = std::make_shared<keel::Trace>(concrete->module, concrete->graph, device_->name());
  size_t dim = 0;
  for (size_t i = 0; i < arguments.leaves.size(); i++) {
    if (arguments.leaves[i].kind != KEEL_LEAF_ARRAY) continue;
    const keel_array& array = *arguments.leaves[i].array;
    TensorType type{array.dtype, {}};
    for (int32_t d = 0; d < array.view.ndim; d++, dim++) {
      int64_t size = concrete->sizes.dims[dim];
      if (size < 0) {
        ASSIGN_OR_RETURN(size, concrete->module->dims.Symbol(absl::StrCat("s", -1 - size)));
      }
      type.dims.push_back(size);
    }
    ASSIGN_OR_RETURN(params->emplace_back(), trace->Param(arguments.ParamName(i), std::move(type)));
  }
  return absl::OkStatus();
}

// A module with a graph that has no more than the parameters of the signature.
absl::StatusOr<std::unique_ptr<Module>> Function::Signed() const {
  std::string name = SpellName(name_);
  std::pair<std::string_view, std::string_view> parts =
      absl::StrSplit(options_.signature, absl::MaxSplits(" where ", 1));
  return ParseText(
      absl::StrCat("keel 1\nfn @", name, "(", parts.first, ")", parts.second.empty() ? "" : " where ",
                   parts.second, " {\n  return\n}\nentry ", name, " = @", name),
      context_->catalogue);
}

absl::Status Function::CheckSignature() const {
  return options_.signature.empty() ? absl::OkStatus() : Signed().status();
}

absl::Status Function::CheckArity(const Concrete& concrete, const Arguments& arguments) const {
  if (options_.signature.empty()) return absl::OkStatus();
  size_t wanted = concrete.graph->params.size(), arrays = arguments.OnlyArrays().size();
  if (arrays == wanted && arguments.leaves.size() == wanted) return absl::OkStatus();
  return Invalid("function \"", name_, "\" takes (", options_.signature, "), ", wanted, " arrays; got ",
                 arguments.leaves.size(), " arguments, of which ", arrays, " are arrays");
}

// The types that the options fix, in place of those of the arguments; a call that does not fit is refused by
// the plan.
absl::Status Function::BeginSigned(const Arguments& arguments, Concrete* concrete,
                                   std::vector<ArrayRef>* params) {
  ASSIGN_OR_RETURN(concrete->module, Signed());
  concrete->graph = concrete->module->graphs[0].get();
  RETURN_IF_ERROR(CheckArity(*concrete, arguments));
  auto trace = std::make_shared<keel::Trace>(concrete->module, concrete->graph, device_->name());
  for (ValueId param : concrete->graph->params) {
    ASSIGN_OR_RETURN(params->emplace_back(), trace->ArrayFor(param));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Concrete>> Function::Write(const Arguments& arguments, SizePattern sizes) {
  const int64_t start = Now();
  auto concrete = std::make_shared<Concrete>();
  concrete->reason = Reason(arguments);
  concrete->head = HeadOf(name_, arguments);
  TimedBlock block(concrete->reason == kFirst ? "trace" : "retrace", concrete->head);
  block.Note("reason", concrete->reason);
  concrete->sizes = std::move(sizes);
  for (size_t i = 0; i < arguments.leaves.size(); i++) concrete->leaves.push_back(arguments.Describe(i));
  std::vector<ArrayRef> params;
  if (options_.signature.empty())
    RETURN_IF_ERROR(Begin(arguments, concrete.get(), &params));
  else
    RETURN_IF_ERROR(BeginSigned(arguments, concrete.get(), &params));
  std::vector<keel_leaf> leaves(arguments.leaves.begin(), arguments.leaves.end());
  size_t param = 0;
  for (keel_leaf& leaf : leaves)
    if (leaf.kind == KEEL_LEAF_ARRAY) leaf.array = params[param++].get();
  keel::Trace* trace = keel::Trace::Of(params.empty() ? nullptr : params[0].get());
  Tracing tracing{context_,
                  trace ? trace->shared_from_this()
                        : std::make_shared<keel::Trace>(concrete->module, concrete->graph, device_->name()),
                  {}};
  {
    std::lock_guard lock(mutex_);
    if (!all_.empty() || dropped_) tracing.trace->RefuseVariables();
  }
  RETURN_IF_ERROR(Annotate(body_(tracing, leaves), kErrorNode, name_));
  for (const auto& [name, array] : tracing.results) RETURN_IF_ERROR(tracing.trace->Result(name, array.get()));
  RETURN_IF_ERROR(tracing.trace->End(&concrete->links));
  concrete->signature = SignatureOf(*concrete->graph);
  concrete->trace_ms = MsSince(start);
  block.Note("signature", concrete->signature);
  return concrete;
}

absl::StatusOr<std::shared_ptr<Plan>> Function::PlanOf(const Concrete& concrete,
                                                       std::span<const ValueId> fetches) {
  const Graph& graph = *concrete.graph;
  return Optimizer{&context_->passes, options_.passes}.Make(graph, device_, graph.params, fetches,
                                                            MustRunNodes(graph), options_.plan);
}

absl::Status Function::MakePlan(Concrete& concrete) {
  const int64_t start = Now();
  ASSIGN_OR_RETURN(concrete.plan, PlanOf(concrete, concrete.graph->results));
  concrete.plan_ms = MsSince(start);
  return absl::OkStatus();
}

absl::Status Function::Planned(Concrete& concrete) {
  concrete.planned.Do([&] { concrete.plan_error = MakePlan(concrete); });
  return concrete.plan_error;
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
    ASSIGN_OR_RETURN(concrete.taped_plan, PlanOf(concrete, fetches));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Planned(concrete));
  concrete.taped_plan = concrete.plan;
  return absl::OkStatus();
}

absl::Status Function::RunPlan(Concrete& concrete, Tape* tape, const Arguments& arguments, Results* results) {
  RETURN_IF_ERROR(CheckArity(concrete, arguments));
  Arguments::Arrays feeds = arguments.OnlyArrays();
  if (tape) return RunTaped(concrete, *tape, std::move(feeds), results);
  RETURN_IF_ERROR(Planned(concrete));
  results->resize(concrete.plan->outputs());
  return concrete.plan->Run({feeds.data(), feeds.size()}, {results->data(), results->size()});
}

// A number that the tape watches must not be one with a literal: it is not where it is watched when it is
// captured, so the code is traced again.
absl::StatusOr<std::shared_ptr<Concrete>> Function::Apart(std::shared_ptr<Concrete> concrete,
                                                          const Tape& tape, const Arguments& arguments) {
  auto shared = [&] {
    return std::ranges::any_of(concrete->links, [&](const TraceLink& link) {
      return link.array && tape.WatchesOrOuter(link.array.get()) && IsShared(*concrete->graph, link.value);
    });
  };
  if (!shared()) return concrete;
  if (tracing_.mine()) return Recursion(name_);
  std::lock_guard tracing(tracing_);
  for (; shared(); concrete = concrete->apart) {
    if (concrete->apart) continue;
    ASSIGN_OR_RETURN(concrete->apart, Write(arguments, concrete->sizes));
  }
  return concrete;
}

absl::Status Function::RunTaped(Concrete& concrete, Tape& tape, Arguments::Arrays feeds, Results* results) {
  concrete.taped_planned.Do([&] { concrete.taped_error = MakeTapedPlan(concrete); });
  RETURN_IF_ERROR(concrete.taped_error);
  Results all(concrete.taped_plan->outputs());
  RETURN_IF_ERROR(concrete.taped_plan->Run({feeds.data(), feeds.size()}, {all.data(), all.size()}));
  size_t n = concrete.graph->results.size(), read = n;
  bool captured = false;
  for (const TraceLink& link : concrete.links) {
    bool watched = link.array && tape.WatchesOrOuter(link.array.get());
    captured |= watched;
    if (link.variable && link.value == kNoValue) tape.Lost(link.variable);
    if (!link.variable || link.value == kNoValue) continue;
    feeds.push_back(all[read++].get());
    tape.Saw(link.variable, feeds.back());
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
  json.Key("traces").BeginArray();
  for (const auto& concrete : all_) {
    json.BeginObject();
    json.Key("signature").String(concrete->signature);
    json.Key("reason").String(concrete->reason);
    json.Key("trace_ms").Double(concrete->trace_ms);
    json.Key("plan_ms").Double(concrete->plan_ms);
    json.Key("calls").Int(static_cast<int64_t>(concrete->calls.load()));
    ReportCaptures(*concrete, &json);
    json.EndObject();
  }
  json.EndArray();
  json.Key("dropped").Int(static_cast<int64_t>(dropped_));
  json.EndObject();
  return json.Take();
}

}  // namespace keel
