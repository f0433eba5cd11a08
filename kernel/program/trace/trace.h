// trace.h: a graph recorded by running a program on symbolic arrays. A symbolic array represents one value of
// the graph; applying an op to it appends a node and returns symbolic arrays for the results. Concrete
// operands are captured: they become constants that share the memory of the array.
//
// Equal scalars share one constant. A scalar that a tape knows is a separate constant, so that its gradient
// is its own; if a tape starts to watch it later, the program is retraced (Concrete::retraced in function.h).
//
// Variables that the program reads and writes are added to the module (variables.cc). A variable is read
// again only after a write. TraceLink lists the reads and captures: under a tape, a call runs a plan that
// also returns the reads and passes them to the recording. The gradient with respect to a variable is the sum
// over all values that were read while it was watched; writes pass no gradient.
//
// Thread-safe: a program and its bodies share one recursive lock, held while a node is added; while a body is
// open, only one thread may write the program. Symbolic arrays keep their trace alive. After End nothing can
// be added; use of a leaked array is an error with its name.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernel/base/mutex.h"
#include "kernel/language/graph/graph.h"
#include "kernel/language/values/array.h"
#include "kernel/program/trace/sizes.h"
#include "kernel/runtime/plan/plan.h"

namespace keel {

class Device;
class Tape;

using Arrays = std::span<keel_array* const>;
using Results = absl::InlinedVector<ArrayRef, 4>;  // of a call
std::vector<keel_array*> Raw(std::span<const ArrayRef> arrays);
Results Share(Arrays arrays);
// The error for too few entries in the array of the caller.
absl::Status NoRoom(std::string_view what, size_t results, size_t room);

// An input of a trace other than its arguments; gradients flow to its value as to an argument.
struct TraceLink {
  ValueId value;                       // kNoValue: a read in a body, which gradients do not reach
  std::shared_ptr<Variable> variable;  // the variable read; null for a captured array
  ArrayRef array;                      // the captured array; null for a read
};

// Whether the value is a scalar constant that equal literals and captures share: it has no gradient of its
// own. An array that a tape knew at its capture has a separate constant.
bool IsShared(const Graph& graph, ValueId value);

// A request for gradients. The gradient of xs[i] is added to result to[i]; the xs of a variable are all its
// reads.
struct TapeGradientRequest {
  Arrays ys, seeds, xs;          // seeds: empty, or one per y (null: ones)
  std::span<const uint32_t> to;  // ascending
  uint32_t count = 0;            // number of results
  bool zeros = false;
  bool jacobian = false;  // of a single y, without seeds
};

// A request for results equal to ys, computed from xs, whose gradient is `backward`.
struct CustomGradientRequest {
  std::string_view name;
  Arrays xs, ys;
  // Receives a trace and its parameters: xs, ys and the cotangents of all floating ys. Returns a gradient for
  // each floating x.
  std::function<absl::StatusOr<Results>(std::shared_ptr<class Trace>, const Results&)> backward;
};

// The state of a tape for a trace: watched values, each from a node on, and nodes hidden from the tape.
struct TraceWatch {
  std::shared_ptr<class Trace> trace;
  std::vector<std::pair<ValueId, NodeId>> values;
  std::vector<std::pair<NodeId, NodeId>> hidden;  // half-open ranges, ascending
  bool predates_body = false;                     // the tape began before this trace, which is a body
  const Tape* tape;
};

// A request for a body. Parameters have the types of `like`; from entries_from on, of its rows (dim 0
// removed).
struct BodyRequest {
  std::string_view label;  // the op's attribute for the body
  Arrays like;
  size_t entries_from = SIZE_MAX;
  bool branch = false;  // runs at most once
};

// A request for a control node. Operands: the selector or carried values, the captures of the bodies,
// entries.
struct ControlRequest {
  std::string_view op;
  Arrays before, entries;
  std::vector<class Trace*> bodies = {};
  Attrs attrs = {};
  Tape* tape = nullptr;  // records reads in bodies; may be null
};

// A request to copy an entry of another module into the trace.
struct EntryRequest {
  const Module& from;
  const Graph& graph;
  std::string_view name;
  Arrays in;   // one per parameter
  Tape* tape;  // records reads; may be null
};

class Trace : public std::enable_shared_from_this<Trace> {
 public:
  // Appends to `graph` of `module`, which may have parameters. A node of an op that is bound to a device
  // other than `device` gets that device as its scope.
  Trace(std::shared_ptr<Module> module, Graph* graph, std::string device);
  ~Trace() { Leave(); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const std::shared_ptr<Module>& module() const { return module_; }
  Graph* graph() const { return graph_; }

  absl::StatusOr<ArrayRef> Param(std::string_view name, TensorType type);
  absl::StatusOr<ArrayRef> ArrayFor(ValueId value);  // a symbolic array
  // Operands are symbolic arrays of this trace, concrete arrays, or null (omitted).
  absl::Status Apply(const OpDef& op, const Attrs& attrs, const std::string& device, Arrays in,
                     std::span<keel_array*> out);
  absl::Status Result(std::string_view name, keel_array* array);
  // Appends the gradient: the same values as an eager run under the same tape. A result without a connection
  // to ys stays null.
  absl::Status Gradient(const TapeGradientRequest& request, const TraceWatch& watch, std::span<ArrayRef> out);
  // Returns the ys with the custom gradient (custom.cc).
  absl::StatusOr<Results> Custom(const CustomGradientRequest& request);
  // Copies node by node; shares the variables of the source module (entry.cc).
  absl::StatusOr<Results> WriteEntry(const EntryRequest& request);
  // links (may be null) receives reads and captures in program order.
  absl::Status End(std::vector<TraceLink>* links = nullptr);

  absl::StatusOr<ArrayRef> Read(const std::shared_ptr<Variable>& variable);
  // op: assign, assign_add or assign_sub.
  absl::Status Write(std::string_view op, const std::shared_ptr<Variable>& variable, keel_array* value);
  // An error unless variables can be created now: only the first trace of a function may create them.
  absl::Status MayMakeVariable() const;
  void RefuseVariables() { allows_variables_ = false; }
  // The elements of a value that depends on constants only: the initial value of a new variable. Runs a plan
  // of the required nodes at once.
  absl::StatusOr<ArrayRef> Evaluate(keel_array* array, Device* device, const PlanOptions& options);

  // The source line of nodes added from now on. file: see keel_trace_source().
  void At(const char* file, uint32_t line) noexcept;
  // From now on every added value has a name: `scope` followed by the given name or the op's name. Generated
  // names are made unique with _1, _2; a given name that is taken is an error.
  void NameAll(std::string scope);
  // The array as a named constant that shares its memory.
  absl::StatusOr<ArrayRef> Constant(std::string_view name, keel_array* array);
  absl::Status Rename(keel_array* array, std::string_view name, bool unique);

  // Bodies (body.cc): nested traces. While a body is open, all nodes are added to it, and the values that it
  // uses from outer traces are captured: they become operands of the node and parameters of the body. Control
  // adds finished bodies to the module; a discarded body leaves nothing.
  absl::StatusOr<ValueId> Import(keel_array* array);  // the value of an outer or concrete array in this trace
  Trace* Current();  // the innermost open body of the program, or the program itself
  absl::StatusOr<std::shared_ptr<Trace>> Begin(const BodyRequest& request, Results* params);
  void Leave();  // closes a body: later nodes are added to the parent
  // In a body: gradients of outer tapes do not pass these nodes.
  void Hide(NodeId from, NodeId to);
  absl::Status Finish(std::span<const ArrayRef> results);
  Trace* parent() const { return parent_.get(); }  // null: no body
  static absl::Status CheckControl(const ControlRequest& request);
  static std::string BodyLabel(std::string_view op, size_t body);  // "else": body 1 of a cond
  absl::StatusOr<Results> Control(const ControlRequest& request);

  // Sizes (trace_sizes.cc): an expression in canonical form; its value, and whether a rule of dims/rule.h
  // holds, for the call being traced. The SizeQueries record the answers that the trace depends on.
  void RecordSizeQueries(std::shared_ptr<SizeQueries> queries) { size_queries_ = std::move(queries); }
  absl::StatusOr<std::string> SizeText(std::string_view expression);
  absl::StatusOr<int64_t> SizeNumber(std::string_view expression);
  absl::StatusOr<bool> SizeRuleHolds(std::string_view rule);

  const std::string& device() const { return device_; }
  std::span<const TraceLink> links() const { return links_; }  // so far
  NodeId NextNode() const;                                     // the next node will have this number

  // The trace that a symbolic array belongs to; null: a concrete array.
  static Trace* Of(const keel_array* array);
  static ValueId ValueOf(const keel_array* array);  // of a symbolic array
  // The trace of the symbolic arrays, null if there is none; an error if they belong to different traces.
  static absl::StatusOr<Trace*> OfAll(Arrays arrays);

 private:
  absl::StatusOr<NodeId> Add(const OpDef& op, std::vector<ValueId> in, const Attrs& attrs,
                             const std::vector<TensorType>& declared = {});
  // At the current source line, on the device of the trace; returns the results.
  absl::StatusOr<std::vector<ValueId>> Add(std::string_view op, std::vector<ValueId> in, const Attrs& attrs);
  absl::Status AddRuleOfSizes(const std::string& rule);
  Trace& Program();                       // the outermost trace
  absl::Status CheckBeforeRun(Dim size);  // fails if only a run knows the size
  absl::Status Guard(const DimRule& rule);
  class EntryCopy;
  absl::StatusOr<uint32_t> NumberOf(const std::shared_ptr<Variable>& variable, std::string_view name = {});
  absl::Status CheckConstant(ValueId value) const;
  std::vector<bool> WatchedValues(const TraceWatch& watch, std::vector<bool>* through) const;
  absl::StatusOr<ValueId> FromParent(keel_array* array);
  absl::StatusOr<ValueId> Captured(ValueId outer);
  absl::Status LiftWatched(const TraceWatch& watch);
  absl::Status CheckBodyBoundary(const TraceWatch& watch);
  absl::Status LiftReads(const ControlRequest& request);
  absl::Status Rewrite(const std::vector<ValueId>& captured, std::string_view label, AttrValue* number);
  absl::Status RewriteAll(const ControlRequest& request, const std::vector<ValueId>& captured, Attrs* attrs);
  absl::StatusOr<Results> AddControl(const ControlRequest& request);
  absl::Status CheckOpen(std::string_view doing) const;
  absl::StatusOr<ValueId> ValueFor(keel_array* array);
  absl::StatusOr<std::vector<ValueId>> ValuesFor(Arrays arrays);
  absl::StatusOr<ValueId> Capture(keel_array* array);
  absl::StatusOr<ArrayRef> Symbol(ValueId value);
  absl::StatusOr<Results> Symbols(std::span<const ValueId> values);
  absl::StatusOr<std::shared_ptr<Trace>> WriteBackward(const CustomGradientRequest& request);
  absl::StatusOr<Results> CallCustom(const CustomGradientRequest& request, const Trace& back);
  std::string NameFor(std::string_view given, std::string_view otherwise);
  std::string Unique(std::string name);

  std::shared_ptr<Module> module_;
  Graph* graph_;
  std::string device_;
  bool is_open_ = true, allows_variables_ = true, is_branch_ = false;
  std::shared_ptr<Trace> parent_;
  std::shared_ptr<SizeQueries> size_queries_;
  std::unique_ptr<Graph> body_graph_;  // of a body; Rewrite copies it into the module
  std::atomic<Trace*> open_body_{nullptr};
  size_t entries_from_ = SIZE_MAX;
  using Capturing = std::pair<ValueId, ValueId>;
  std::vector<Capturing> captures_;             // values of the parent and their parameters
  std::vector<bool> hidden_;                    // nodes of a body
  HashSet<uint32_t> written_;                   // variables
  std::optional<std::string> scope_;            // of names; nullopt: values stay unnamed
  HashMap<std::string, uint32_t> next_suffix_;  // by name: the next suffix to try
  std::vector<TraceLink> links_;
  HashMap<uint32_t, ValueId> current_reads_;      // reads of variables without a later write
  HashMap<const keel_array*, ValueId> captured_;  // kept alive by links_
  const char* file_ = nullptr;
  uint32_t in_file_ = 0, source_ = 0;  // Origin::source of line 0 of the file and of the current line
  // Shared with all bodies. Recursive: a body calls its parent, and a tape calls NextNode().
  std::shared_ptr<RecursiveMutex> mutex_ = std::make_shared<RecursiveMutex>();
};

}  // namespace keel
