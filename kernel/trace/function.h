// function.h: a program that is traced once for each signature of its arguments, and then run as a graph.
//
// How to read it: Call compares the arguments with those of the last calls (function_call.cc: no lock).
// Else it looks for a concrete function that fits them (by key, then by pattern of sizes), traces one where
// none does and records why, and runs its plan. Arguments with symbolic arrays are inlined into their trace.
// Any number of threads; one traces at a time.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "kernel/base/hash.h"
#include "kernel/base/mutex.h"
#include "kernel/base/slot_cache.h"
#include "kernel/plan/plan.h"
#include "kernel/trace/context.h"
#include "kernel/trace/key.h"
#include "kernel/trace/sizes.h"
#include "kernel/trace/taped.h"
#include "kernel/trace/trace.h"

namespace keel {

// What a program that is being traced (or run eagerly) sees: where ops without symbolic operands go, and
// where its results are left.
class Tape;
using Results = absl::InlinedVector<ArrayRef, 4>;
struct Tracing {
  std::shared_ptr<Context> context;
  std::shared_ptr<Trace> trace;  // null: eager
  std::vector<std::pair<std::string, ArrayRef>> results;
  Tape* tape = nullptr;    // of an eager run: what the program applies is recorded
  bool owns_body = false;  // begun by the program; if it goes before it ends, it is given up
  Results Take();          // the results, which leave it
};
using TracedBody = std::function<absl::Status(Tracing&, std::span<const keel_leaf>)>;

// One trace of a function.
struct Concrete {
  std::vector<std::string> leaves;  // as text, for messages
  std::string signature;            // "f(x: f32[3]) -> f32[3]"
  std::string reason;               // why it was traced, and why not for more sizes
  std::shared_ptr<Module> module;
  Graph* graph = nullptr;
  SizePattern sizes;
  bool declared = false;              // the sizes are those of the function's signature
  std::shared_ptr<SizesAsked> asked;  // by the program; its guards are part of the key
  std::string kind;                   // the rest of the key
  std::string head;                   // "f(x, n=3)": the call, with static arguments as values
  double trace_ms = 0, plan_ms = 0;
  std::atomic<uint64_t> calls{0}, last_call{0};
  std::atomic<bool> dropped{false};  // other traces were used later than this one
  Once planned;
  absl::Status plan_error;
  std::shared_ptr<Plan> plan;
  // The same under a tape: what it reads of variables is given too, so that gradients flow to it.
  std::vector<TraceLink> links;
  Once taped_planned;
  absl::Status taped_error;
  std::shared_ptr<Plan> taped_plan;
  std::shared_ptr<const Taped> taped[2];  // [1]: captured arrays are given too
  std::shared_ptr<Concrete> apart;        // the same, traced when tapes knew more of what is captured
};

struct FunctionOptions {
  std::string signature;        // of the one trace that serves all calls: "x: f32[b, 784]"
  uint32_t any_after = 2;       // distinct sizes of a dim before it becomes a symbol; UINT32_MAX: never
  uint32_t max_traces = 64;     // the least recently used is dropped beyond
  bool check_captures = false;  // each call traces anew and compares
  PassChoice passes;
  PlanOptions plan;
};

// What the trace has from outside of its arguments (captures.cc).
class Json;
void ReportCaptures(const Concrete& concrete, Json* json);

// "f(x, n=3)" (signatures.cc).
std::string HeadOf(std::string_view name, const Arguments& arguments);

class Function {
 public:
  Function(std::shared_ptr<Context> context, std::string name, Device* device, FunctionOptions options,
           TracedBody body);

  absl::Status CheckSignature() const;  // of the options
  // within: the trace of the caller, null if it is not being traced or its arrays tell.
  // tape: records the call, or null.
  absl::Status Call(Tracing* within, Tape* tape, const Arguments& arguments, Results* results);
  absl::StatusOr<std::shared_ptr<Concrete>> Find(const Arguments& arguments);
  // An error where its graph is not for all sizes of the function's signature.
  absl::Status CheckDeclared(const Concrete& concrete) const;
  absl::StatusOr<std::shared_ptr<Concrete>> At(uint32_t number) const;  // as the report counts
  const std::shared_ptr<Context>& context() const { return context_; }
  void RunEagerly(bool on) { eager_ = on; }
  // Whether this thread runs its program, which then may not free it: its call will say so.
  bool FreedInside();
  // JSON: "name", "traces" (signature, reason, trace_ms, plan_ms, calls), "dropped".
  std::string Report() const;
  std::string Signatures() const;  // a block of text for each trace (signatures.cc)

 private:
  struct Kind {  // all calls that differ by sizes only
    SizeLedger ledger;
    std::vector<std::shared_ptr<Concrete>> traces;
  };
  struct Warm {  // an earlier call
    KeptArguments arguments;
    std::shared_ptr<Concrete> concrete;
  };
  struct Key {
    KeyBytes bytes;  // kind, then sizes
    size_t kind = 0;
    LeafDims sizes;
    std::string_view kind_view() const { return bytes.view().substr(0, kind); }
  };
  Key KeyOf(const Arguments& arguments) const;
  bool Fits(const Concrete& concrete, std::span<const int64_t> sizes,
            std::span<const int64_t> declared) const;
  absl::Status CallWarm(const Warm& warm, const Arguments& arguments, Results* results);
  absl::Status CallCold(Tracing* within, Tape* tape, const Arguments& arguments, Results* results);
  void Remember(const Arguments& arguments, std::shared_ptr<Concrete> concrete);
  std::shared_ptr<Concrete> Known(std::string_view key);
  std::shared_ptr<Concrete> Touch(const std::shared_ptr<Concrete>& concrete);
  absl::Status CallConcrete(std::shared_ptr<Concrete>* concrete, Tape* tape, const Arguments& arguments,
                            bool* misfit, Results* results);
  absl::StatusOr<std::shared_ptr<Concrete>> FindOrTrace(const Arguments& arguments);
  absl::StatusOr<std::shared_ptr<Concrete>> ForOneSize(const Arguments& arguments, const absl::Status& why);
  // For as many sizes as the ledger and the program allow (write.cc).
  absl::StatusOr<std::shared_ptr<Concrete>> WriteWide(const Arguments& arguments, const Key& key);
  absl::StatusOr<std::shared_ptr<Concrete>> Write(const Arguments& arguments, SizePattern sizes,
                                                  bool declared);
  // An error that says what changed if the code now writes another graph than it did (captures.cc).
  absl::Status CheckCaptures(const Concrete& concrete, const Arguments& arguments);
  absl::Status Begin(const Arguments& arguments, Concrete* concrete, std::vector<ArrayRef>* params);
  absl::StatusOr<std::unique_ptr<Module>> Signed() const;
  // The number of each symbol of the signature; an error if the call does not fit it.
  absl::StatusOr<std::vector<int64_t>> SignedSizes(const Arguments& arguments);
  absl::Status CheckArity(const Graph& graph, const Arguments& arguments) const;
  absl::Status BeginSigned(const Arguments& arguments, Concrete* concrete, std::vector<ArrayRef>* params);
  absl::Status RunProgram(Tracing& tracing, std::span<const keel_leaf> leaves);
  absl::StatusOr<std::shared_ptr<Concrete>> Apart(std::shared_ptr<Concrete> concrete, const Tape& tape,
                                                  const Arguments& arguments);
  // misfit: null, or is set where the graph does not take these sizes; nothing ran then.
  absl::Status RunPlan(Concrete& concrete, Tape* tape, const Arguments& arguments, bool* misfit,
                       Results* results);
  absl::Status RunTaped(Concrete& concrete, Tape& tape, Arguments::Arrays feeds, Results* results);
  absl::Status Planned(Concrete& concrete);
  absl::Status MakePlan(Concrete& concrete);
  absl::Status TapedPlanned(Concrete& concrete);
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
  std::atomic<bool> by_sizes_{false};    // the trace of the signature does not serve all calls
  std::atomic<bool> no_symbols_{false};  // of the signature: the program needs numbers

  Mutex tracing_{Mutex::kLong};  // held by the thread that traces
  mutable Mutex mutex_;          // of all below
  HashMap<std::string, std::shared_ptr<Concrete>> by_key_;
  HashMap<std::string, Kind> kinds_;
  std::list<std::shared_ptr<Concrete>> all_;  // in order of tracing
  uint64_t dropped_ = 0;

  std::atomic<uint64_t> clock_{0};  // counts calls, but for some of those at the same time
  std::atomic<uint32_t> forgotten_{0};
  SlotCache<Warm, 8, 3> warm_;  // their plans are made
};

}  // namespace keel
