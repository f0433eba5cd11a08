// write.cc: traces the graph of a function for the arguments of a call and records the reason.
//
// How to read it: WriteWide traces for as many sizes as possible; Write traces for one size pattern.
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "kernel/language/graph/text.h"
#include "kernel/program/trace/function.h"

namespace keel {
namespace {

constexpr std::string_view kFirst = "first call";

std::string DescribeSignature(const Graph& g) {
  auto list = [&](const std::vector<ValueId>& values, bool names) {
    return absl::StrJoin(values, ", ", [&](std::string* out, ValueId v) {
      absl::StrAppend(out, names ? g.values[v].name + ": " : "", Print(g.values[v].type, g.module->dims));
    });
  };
  return absl::StrCat(g.name, "(", list(g.params, true), ") -> ",
                      g.results.size() == 1 ? list(g.results, false) : "(" + list(g.results, false) + ")");
}

// Whether a trace for fewer sizes may succeed.
bool CanNarrow(const absl::StatusOr<std::shared_ptr<Concrete>>& made) {
  if (made.ok()) return !(*made)->size_queries->numbers.empty();
  return !absl::IsCancelled(made.status()) && !absl::IsDeadlineExceeded(made.status());
}

std::string NarrowingReason(const absl::StatusOr<std::shared_ptr<Concrete>>& made) {
  if (made.ok()) return absl::StrCat("the program needs ", (*made)->size_queries->number, " as a number");
  return absl::StrCat("tracing with symbolic sizes failed: ", made.status().message());
}

}  // namespace

// The reason for a new trace: the first leaf that differs from the trace with the most equal leaves.
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

absl::StatusOr<std::shared_ptr<Concrete>> Function::WriteWide(const Arguments& arguments, const Key& key) {
  const bool has_signature = !options_.signature.empty();
  const std::string kind(key.kind_view());
  bool declared = has_signature && !no_symbols_;
  SizePattern pattern{{key.sizes.begin(), key.sizes.end()}, 0};
  SizeLedger ledger;
  if (!has_signature) {
    std::lock_guard lock(mutex_);
    kinds_[kind].ledger.Remember(key.sizes);
    ledger = kinds_[kind].ledger;
    pattern = ledger.Next(options_.any_after);
  }
  std::string why;
  absl::Status widest;
  absl::StatusOr<std::shared_ptr<Concrete>> made;
  for (;; pattern = has_signature ? std::move(pattern) : ledger.Next(options_.any_after)) {
    made = Write(arguments, pattern, declared);
    if ((!declared && !pattern.symbols) || !CanNarrow(made)) break;
    if (why.empty()) why = NarrowingReason(made), widest = made.status();
    ledger.KeepLiteral(pattern, made.ok() ? (*made)->size_queries->numbers : std::vector<size_t>());
    declared = false;
  }
  if (!made.ok()) return has_signature && !widest.ok() ? widest : made.status();
  (*made)->kind = kind;
  if (why.empty()) return made;
  absl::StrAppend(&(*made)->reason, "; its sizes stay numbers: ", why);
  if (has_signature) no_symbols_ = true;
  std::lock_guard lock(mutex_);
  if (!has_signature) kinds_[kind].ledger = std::move(ledger);
  return made;
}

absl::StatusOr<std::shared_ptr<Trace>> Function::Begin(const Arguments& arguments, Concrete* concrete,
                                                       Results* params) {
  concrete->module = std::make_shared<Module>(context_->catalogue);
  ASSIGN_OR_RETURN(concrete->graph, concrete->module->AddGraph(name_));
  RETURN_IF_ERROR(concrete->module->AddEntry(name_, concrete->graph));
  auto trace = std::make_shared<Trace>(concrete->module, concrete->graph, device_->name());
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
  return trace;
}

// A module with a graph that contains the parameters of the signature only.
absl::StatusOr<std::unique_ptr<Module>> Function::SignatureModule() const {
  std::string name = SpellName(name_);
  std::pair<std::string_view, std::string_view> parts =
      absl::StrSplit(options_.signature, absl::MaxSplits(" where ", 1));
  return ParseText(
      absl::StrCat("keel 1\nfn @", name, "(", parts.first, ")", parts.second.empty() ? "" : " where ",
                   parts.second, " {\n  return\n}\nentry ", name, " = @", name),
      context_->catalogue);
}

absl::Status Function::CheckSignature() const {
  return options_.signature.empty() ? absl::OkStatus() : SignatureModule().status();
}

absl::Status Function::CheckDeclared(const Concrete& concrete) const {
  if (options_.signature.empty() || concrete.declared) return absl::OkStatus();
  return Annotate(Error(absl::StatusCode::kFailedPrecondition, "function \"", name_,
                        "\" has no graph for all sizes of its signature (", options_.signature,
                        "), only traces for literal sizes: ", concrete.reason),
                  kErrorHint, "get an existing trace by its number");
}

absl::Status Function::CheckArity(const Graph& graph, const Arguments& arguments) const {
  if (options_.signature.empty()) return absl::OkStatus();
  size_t wanted = graph.params.size(), arrays = arguments.OnlyArrays().size();
  if (arrays == wanted && arguments.leaves.size() == wanted) return absl::OkStatus();
  return Invalid("function \"", name_, "\" takes (", options_.signature, "), ", wanted, " arrays; got ",
                 arguments.leaves.size(), " arguments, ", arrays, " of them arrays");
}

absl::StatusOr<std::vector<int64_t>> Function::SignatureSizes(const Arguments& arguments) {
  ASSIGN_OR_RETURN(std::unique_ptr<Module> module, SignatureModule());
  const Graph& graph = *module->graphs[0];
  RETURN_IF_ERROR(CheckArity(graph, arguments));
  ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan, PlanOf(graph, {}));
  Arguments::Arrays feeds = arguments.OnlyArrays();
  return plan->Sizes({feeds.data(), feeds.size()}, module->dims);
}

// Uses the types of the declared signature, not of the arguments; the plan rejects mismatching calls.
absl::StatusOr<std::shared_ptr<Trace>> Function::BeginWithSignature(const Arguments& arguments,
                                                                    Concrete* concrete, Results* params) {
  ASSIGN_OR_RETURN(concrete->module, SignatureModule());
  concrete->graph = concrete->module->graphs[0].get();
  RETURN_IF_ERROR(CheckArity(*concrete->graph, arguments));
  auto trace = std::make_shared<Trace>(concrete->module, concrete->graph, device_->name());
  for (ValueId param : concrete->graph->params) {
    ASSIGN_OR_RETURN(params->emplace_back(), trace->ArrayFor(param));
  }
  return trace;
}

absl::StatusOr<std::shared_ptr<Concrete>> Function::Write(const Arguments& arguments, SizePattern sizes,
                                                          bool declared) {
  const int64_t start = Now();
  auto concrete = std::make_shared<Concrete>();
  concrete->reason = Reason(arguments);
  concrete->head = HeadOf(name_, arguments);
  TimedBlock block(concrete->reason == kFirst ? "trace" : "retrace", concrete->head);
  block.Note("reason", concrete->reason);
  concrete->declared = declared;
  concrete->sizes = declared ? SizePattern() : std::move(sizes);
  concrete->size_queries = std::make_shared<SizeQueries>();
  for (size_t i = 0; i < arguments.leaves.size(); i++) concrete->leaves.push_back(arguments.Describe(i));
  Results params;
  ASSIGN_OR_RETURN(std::shared_ptr<Trace> trace, declared
                                                     ? BeginWithSignature(arguments, concrete.get(), &params)
                                                     : Begin(arguments, concrete.get(), &params));
  std::vector<keel_leaf> leaves(arguments.leaves.begin(), arguments.leaves.end());
  size_t param = 0;
  for (keel_leaf& leaf : leaves)
    if (leaf.kind == KEEL_LEAF_ARRAY) leaf.array = params[param++].get();
  Tracing tracing{context_, trace, {}};
  {
    std::lock_guard lock(mutex_);
    if (!all_.empty() || dropped_) trace->RefuseVariables();
  }
  trace->RecordSizeQueries(concrete->size_queries);
  concrete->size_queries->call_sizes = [&]() -> absl::StatusOr<std::vector<int64_t>> {
    if (declared) return SignatureSizes(arguments);
    return *concrete->sizes.Fit(KeyOf(arguments).sizes);
  };
  absl::Status written = RunProgram(tracing, leaves);
  concrete->size_queries->call_sizes = nullptr;
  RETURN_IF_ERROR(Annotate(std::move(written), kErrorNode, name_));
  for (const auto& [name, array] : tracing.results) RETURN_IF_ERROR(trace->Result(name, array.get()));
  RETURN_IF_ERROR(trace->End(&concrete->links));
  concrete->signature = DescribeSignature(*concrete->graph);
  concrete->trace_ms = static_cast<double>(Now() - start) / 1e6;
  block.Note("signature", concrete->signature);
  return concrete;
}

}  // namespace keel
