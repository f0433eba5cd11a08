// function.h: a program that is traced once per argument signature and then run as a graph.
//
// How to read it: Call first compares the arguments with recent calls (function_call.cc, without a lock).
// Otherwise it looks for a matching concrete function (by key, then by size pattern), traces a new one if
// none matches, records the reason, and runs its plan. A call with symbolic arrays is inlined into their
// trace.
//
// Thread-safe; one thread traces at a time. `tracing_` is held for a whole trace; a second call on the same
// thread is recursion, an error. `mutex_` protects the tables and is never held while a program or plan runs.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "kernel/base/hash.h"
#include "kernel/base/mutex.h"
#include "kernel/base/slot_cache.h"
#include "kernel/program/trace/context.h"
#include "kernel/program/trace/key.h"
#include "kernel/program/trace/sizes.h"
#include "kernel/program/trace/taped.h"
#include "kernel/program/trace/trace.h"
#include "kernel/runtime/plan/plan.h"

namespace keel {

class Tape;

// The state of a program that is being traced or run eagerly: the trace that receives ops without symbolic
// operands, and the results.
struct Tracing {
  std::shared_ptr<Context> context;
  std::shared_ptr<Trace> trace;  // null: eager
  std::vector<std::pair<std::string, ArrayRef>> results;
  Tape* tape = nullptr;    // records an eager run, or null
  bool owns_body = false;  // a body that the program began; freeing it before its end discards it
  Results Take();          // moves the results out
};
using TracedBody = std::function<absl::Status(Tracing&, std::span<const keel_leaf>)>;

// One trace of a function.
struct Concrete {
  std::vector<std::string> leaves;  // descriptions for messages
  std::string signature;            // "f(x: f32[3]) -> f32[3]"
  std::string reason;               // why it was traced, and why its sizes are literal
  std::shared_ptr<Module> module;
  Graph* graph = nullptr;
  SizePattern sizes;
  bool declared = false;                      // the sizes come from the function's signature
  std::shared_ptr<SizeQueries> size_queries;  // of the program; the guards are part of the key
  std::string kind;                           // the key without sizes
  std::string head;                           // "f(x, n=3)": the call with the values of static arguments
  double trace_ms = 0, plan_ms = 0;
  std::atomic<uint64_t> calls{0}, last_call{0};
  std::atomic<bool> dropped{false};  // evicted: least recently used
  Once plan_once;
  absl::Status plan_error;
  std::shared_ptr<Plan> plan;
  // The plan under a tape also returns the variable reads, so that gradients flow to variables.
  std::vector<TraceLink> links;
  Once taped_plan_once;
  absl::Status taped_plan_error;
  std::shared_ptr<Plan> taped_plan;
  std::shared_ptr<const Taped> taped[2];  // [1]: captured arrays are inputs, too
  std::shared_ptr<Concrete> retraced;     // retrace with watched captures as separate constants
};

struct FunctionOptions {
  std::string signature;        // if set, one trace serves all calls: "x: f32[b, 784]"
  uint32_t any_after = 2;       // distinct sizes of a dim before it becomes symbolic; UINT32_MAX: never
  uint32_t max_traces = 64;     // above it the least recently used trace is evicted
  bool check_captures = false;  // each call retraces and compares
  PassChoice passes;
  PlanOptions plan;
};

// Appends the captured variables and arrays to a report (captures.cc).
class Json;
void ReportCaptures(const Concrete& concrete, Json* json);

// "f(x, n=3)" (signatures.cc).
std::string HeadOf(std::string_view name, const Arguments& arguments);

class Function {
 public:
  Function(std::shared_ptr<Context> context, std::string name, Device* device, FunctionOptions options,
           TracedBody body);

  absl::Status CheckSignature() const;  // whether FunctionOptions::signature parses
  // within: the state of the caller; null if the caller is not traced or the arguments identify the trace.
  // tape: records the call, or null.
  absl::Status Call(Tracing* within, Tape* tape, const Arguments& arguments, Results* results);
  absl::StatusOr<std::shared_ptr<Concrete>> Find(const Arguments& arguments);
  // An error unless the graph serves all sizes of the function's signature.
  absl::Status CheckDeclared(const Concrete& concrete) const;
  absl::StatusOr<std::shared_ptr<Concrete>> At(uint32_t number) const;  // counted as in Report()
  const std::shared_ptr<Context>& context() const { return context_; }
  void RunEagerly(bool on) { eager_ = on; }
  // Whether this thread is running the program. If so, the caller must not free the function, and the running
  // call fails.
  bool FreedInside();
  // JSON: "name", "traces" (signature, reason, trace_ms, plan_ms, calls), "dropped".
  std::string Report() const;
  std::string Signatures() const;  // one block of text per trace (signatures.cc)

 private:
  struct Kind {  // calls that differ in sizes only
    SizeLedger ledger;
    std::vector<std::shared_ptr<Concrete>> traces;
  };
  struct Warm {  // a recent call
    KeptArguments arguments;
    std::shared_ptr<Concrete> concrete;
  };
  struct Key {
    std::string bytes;  // kind, then sizes
    size_t kind = 0;
    LeafDims sizes;
    std::string_view kind_view() const { return std::string_view(bytes).substr(0, kind); }
  };
  Key KeyOf(const Arguments& arguments) const;
  bool Fits(const Concrete& concrete, std::span<const int64_t> sizes,
            std::span<const int64_t> declared) const;
  absl::Status CallWarm(const Warm& warm, const Arguments& arguments, Results* results);
  absl::Status CallCold(Tracing* within, Tape* tape, const Arguments& arguments, Results* results);
  void Remember(const Arguments& arguments, std::shared_ptr<Concrete> concrete);
  std::shared_ptr<Concrete> FindKnown(std::string_view key);
  std::shared_ptr<Concrete> Touch(const std::shared_ptr<Concrete>& concrete);
  absl::Status CallConcrete(std::shared_ptr<Concrete>* concrete, Tape* tape, const Arguments& arguments,
                            bool* misfit, Results* results);
  absl::StatusOr<std::shared_ptr<Concrete>> FindOrTrace(const Arguments& arguments);
  absl::StatusOr<std::shared_ptr<Concrete>> TraceExactSizes(const Arguments& arguments,
                                                            const absl::Status& why);
  // Traces for as many sizes as the ledger and the program allow (write.cc).
  absl::StatusOr<std::shared_ptr<Concrete>> WriteWide(const Arguments& arguments, const Key& key);
  absl::StatusOr<std::shared_ptr<Concrete>> Write(const Arguments& arguments, SizePattern sizes,
                                                  bool declared);
  // Retraces and compares; an error names the first difference (captures.cc).
  absl::Status CheckCaptures(const Concrete& concrete, const Arguments& arguments);
  absl::StatusOr<std::shared_ptr<Trace>> Begin(const Arguments& arguments, Concrete* concrete,
                                               Results* params);
  absl::StatusOr<std::unique_ptr<Module>> SignatureModule() const;
  // The value of each symbol of the signature; an error if the call does not match the signature.
  absl::StatusOr<std::vector<int64_t>> SignatureSizes(const Arguments& arguments);
  absl::Status CheckArity(const Graph& graph, const Arguments& arguments) const;
  absl::StatusOr<std::shared_ptr<Trace>> BeginWithSignature(const Arguments& arguments, Concrete* concrete,
                                                            Results* params);
  absl::Status RunProgram(Tracing& tracing, std::span<const keel_leaf> leaves);
  absl::StatusOr<std::shared_ptr<Concrete>> RetraceForTape(std::shared_ptr<Concrete> concrete,
                                                           const Tape& tape, const Arguments& arguments);
  // *misfit (may be null) is set if the graph does not accept these sizes; nothing ran then.
  absl::Status RunPlan(Concrete& concrete, Tape* tape, const Arguments& arguments, bool* misfit,
                       Results* results);
  absl::Status RunTaped(Concrete& concrete, Tape& tape, Arguments::Arrays feeds, Results* results);
  absl::Status EnsurePlan(Concrete& concrete);
  absl::Status MakePlan(Concrete& concrete);
  absl::Status EnsureTapedPlan(Concrete& concrete);
  absl::Status MakeTapedPlan(Concrete& concrete);
  absl::StatusOr<std::shared_ptr<Plan>> PlanOf(const Graph& graph, std::span<const ValueId> fetches);
  std::string Reason(const Arguments& arguments) const;
  void Add(const std::string& kind, std::shared_ptr<Concrete> made);
  void DropOldest();

  std::shared_ptr<Context> context_;
  std::string name_;
  Device* device_;
  FunctionOptions options_;
  TracedBody body_;
  std::atomic<bool> eager_{false};
  std::atomic<bool> freed_inside_{false};
  std::atomic<bool> by_sizes_{false};    // the trace of the signature does not serve all sizes
  std::atomic<bool> no_symbols_{false};  // the program needs the sizes of its signature as numbers

  Mutex tracing_{Mutex::kLong};  // held by the tracing thread
  mutable Mutex mutex_;          // protects the fields below
  HashMap<std::string, std::shared_ptr<Concrete>> by_key_;
  HashMap<std::string, Kind> kinds_;
  std::list<std::shared_ptr<Concrete>> all_;  // in order of tracing
  uint64_t dropped_ = 0;

  std::atomic<uint64_t> clock_{0};  // counts calls; concurrent calls may share a count
  std::atomic<uint32_t> forgotten_{0};
  SlotCache<Warm, 8, 3> warm_;  // only calls whose plans exist
};

}  // namespace keel
