// trace.h: a graph that is written by running a program on symbolic arrays. A symbolic array stands for
// one value of the graph; applying an op to it appends a node and gives symbolic arrays for the results.
// Concrete arrays among the operands are captured: they become constants, which share their memory.
//
// Variables that the program reads and writes become the module's (variables.cc).
//
// Any thread may write, one at a time; symbolic arrays keep their trace alive. After End nothing can be
// added any more, and an array of the trace that leaked out of the program is an error that names it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/base/mutex.h"
#include "kernel/graph/graph.h"
#include "kernel/plan/plan.h"
#include "kernel/trace/sizes.h"
#include "kernel/values/array.h"

namespace keel {

class Device;

// What a trace takes from outside of its program beside arguments. To its value gradients flow as to those.
struct TraceLink {
  ValueId value;                       // kNoValue: a read in a body, where no gradient finds it
  std::shared_ptr<Variable> variable;  // a read of it; else
  ArrayRef array;                      // a captured array, which became a constant
};

// Is the value a number that literals and other arrays of the trace are one constant with? Then nothing can
// be said of its gradient. Arrays that a tape knew when they were captured are constants of their own.
bool IsShared(const Graph& graph, ValueId value);

// Gradients that are wanted: xs[i] counts for result to[i], for a variable is all that was read of it.
struct GradientOf {
  std::span<keel_array*const> ys, seeds, xs;  // seeds: none, or one for each y (null: ones)
  std::span<const uint32_t> to;               // ascending
  uint32_t count = 0;                         // of results
  bool zeros = false;
  bool jacobian = false;  // of one y, without seeds
};

// Results that were computed from xs as ys, and whose gradient is not that of the nodes which did.
struct CustomWanted {
  std::string_view name;
  std::span<keel_array*const> xs, ys;
  // Is given a trace and its parameters: xs, ys, and cotangents of the ys that are floats. Gives a gradient
  // for each x that is.
  std::function<absl::StatusOr<std::vector<ArrayRef>>(std::shared_ptr<class Trace>, std::vector<ArrayRef>)>
      backward;
};

// What a tape watches in a trace: values, each from a node on, and the nodes that it must not see.
struct TraceWatch {
  std::shared_ptr<class Trace> trace;
  std::vector<std::pair<ValueId, NodeId>> values;
  std::vector<std::pair<NodeId, NodeId>> hidden;            // from, up to
  bool around = false;                                      // it watched before this trace, a body, began
  std::function<bool(const keel_array*)> watches_captured;  // concrete arrays
  std::function<const TraceWatch*(const Trace*)> other;     // null: nothing is watched there
};

// A body to be written: parameters of the types of `like`, of their entries from entries_from on.
struct BodyWanted {
  std::string_view label;  // of the op's attribute
  std::span<keel_array* const> like;
  size_t entries_from = SIZE_MAX;
  bool branch = false;  // runs once, or not at all
};

// A node with finished bodies: the selector or what is carried, then what the bodies captured, then entries.
struct ControlWanted {
  std::string_view op;
  std::span<keel_array*const> before, entries;
  std::vector<class Trace*> bodies;
  Attrs attrs;
  // For tapes: what was read for bodies; null: what no gradient finds.
  std::function<void(const std::shared_ptr<Variable>&, keel_array*)> saw;
};

// An entry of another module, to be written as if its program were called here.
struct EntryWanted {
  const Module& from;
  const Graph& graph;
  std::string_view name;
  std::span<keel_array* const> in;  // one for each parameter
  // For tapes: what was read; or null.
  std::function<void(const std::shared_ptr<Variable>&, keel_array*)> saw;
};

class Trace : public std::enable_shared_from_this<Trace> {
 public:
  // Writes `graph` of `module`; what the graph has already (parameters) is kept. Nodes of ops bound to
  // another device than `device` get it as their scope.
  Trace(std::shared_ptr<Module> module, Graph* graph, std::string device);
  ~Trace() { Leave(); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const std::shared_ptr<Module>& module() const { return module_; }
  Graph* graph() const { return graph_; }

  absl::StatusOr<ArrayRef> Param(std::string_view name, TensorType type);
  absl::StatusOr<ArrayRef> ArrayFor(ValueId value);  // a symbolic array
  // Operands may be symbolic arrays of this trace, concrete arrays, or null (left out).
  absl::Status Apply(const OpDef& op, const Attrs& attrs, const std::string& device,
                     std::span<keel_array* const> in, std::span<keel_array*> out);
  absl::Status Result(std::string_view name, keel_array* array);
  // Appends the gradient; what comes out is what a tape that watched the same eagerly would give. Null where
  // nothing is connected.
  absl::Status Gradient(const GradientOf& of, const TraceWatch& watch, std::span<ArrayRef> out);
  // The ys again, with that gradient (custom.cc).
  absl::Status Custom(const CustomWanted& wanted, std::vector<ArrayRef>* out);
  // Node by node; variables stay those of the other module (entry.cc).
  absl::Status WriteEntry(const EntryWanted& wanted, std::vector<ArrayRef>* out);
  // links (may be null): what was read and captured, in the order of the program.
  absl::Status End(std::vector<TraceLink>* links = nullptr);

  absl::StatusOr<ArrayRef> Read(const std::shared_ptr<Variable>& variable);
  // op: assign, assign_add or assign_sub.
  absl::Status Write(std::string_view op, const std::shared_ptr<Variable>& variable, keel_array* value);
  // An error unless variables may be made now, that is while a function is traced for the first time.
  absl::Status MayMakeVariable() const;
  void RefuseVariables() { variables_ = false; }
  // The elements of a value that depends on constants only: of a variable that is made.
  absl::StatusOr<ArrayRef> Evaluate(keel_array* array, Device* device, const PlanOptions& options);

  // The line of the program that writes what is added from now on. file: as keel_trace_source() has it.
  void At(const char* file, uint32_t line) noexcept;
  // From now on all that is added has a name: `scope` and the given one, or that of the op; made-up names are
  // unique by _1, _2 behind them. Given names that are taken are errors.
  void NameAll(std::string scope);
  // The array as a named constant, which shares its memory.
  absl::StatusOr<ArrayRef> Constant(std::string_view name, keel_array* array);
  absl::Status Rename(keel_array* array, std::string_view name, bool unique);

  // Bodies (body.cc): traces within this one. While one is open, all that is written goes there, and what it
  // takes from here is captured: it becomes an operand of the node and a parameter of the body. Control makes
  // graphs of the module of finished bodies; one that is given up leaves nothing.
  absl::StatusOr<ValueId> Inside(keel_array* array);  // what stands for it here
  Trace* Current();  // the innermost open body of the program, or the program itself
  absl::StatusOr<std::shared_ptr<Trace>> Begin(const BodyWanted& wanted, std::vector<ArrayRef>* params);
  void Leave();  // a body: nothing more goes there by itself
  // Of a body: no gradient of what is around it goes through these nodes.
  void Hide(NodeId from, NodeId to);
  absl::Status Finish(std::span<keel_array* const> results);
  Trace* parent() const { return parent_.get(); }  // null: no body
  static absl::Status CheckControl(const ControlWanted& wanted);
  absl::Status Control(const ControlWanted& wanted, std::vector<ArrayRef>* results);

  // Sizes (trace_sizes.cc): an expression of them in canonical form; its number, and whether a rule of
  // dims/rule.h holds, in the call that the program is traced for: `asked` keeps what the trace relies on.
  void Ask(std::shared_ptr<SizesAsked> asked) { asked_ = std::move(asked); }
  absl::StatusOr<std::string> SizeText(std::string_view expression);
  absl::StatusOr<int64_t> SizeNumber(std::string_view expression);
  absl::StatusOr<bool> SizeRuleHolds(std::string_view rule);

  const std::string& device() const { return device_; }
  std::span<const TraceLink> links() const { return links_; }  // so far
  NodeId Now() const;                                          // the number of the next node

  // The trace that a symbolic array belongs to; null: a concrete array.
  static Trace* Of(const keel_array* array);
  static ValueId ValueOf(const keel_array* array);  // of a symbolic one
  // That of the first symbolic operand; an error if another one belongs to another trace.
  static absl::StatusOr<Trace*> OfAll(std::span<keel_array* const> arrays);

 private:
  absl::StatusOr<NodeId> AddOnVariable(std::string_view op, uint32_t number, std::vector<ValueId> in);
  absl::StatusOr<NodeId> Add(const OpDef& op, std::vector<ValueId> in, const Attrs& attrs,
                             const std::vector<TensorType>& declared = {});
  absl::StatusOr<ValueId> Reshaped(ValueId value, const Dims& dims);
  absl::Status AddRuleOfSizes(const std::string& rule);
  Trace& Program();  // that this is a body of
  absl::Status Guard(const DimRule& rule);
  absl::Status WriteNodes(const EntryWanted& wanted, class Linker& linker, std::vector<ValueId>* at);
  absl::StatusOr<uint32_t> NumberOf(const std::shared_ptr<Variable>& variable, std::string_view name = {});
  absl::Status CheckConstant(ValueId value) const;
  std::vector<bool> Watched(const TraceWatch& watch, std::vector<bool>* through) const;
  absl::StatusOr<ValueId> FromParent(keel_array* array);
  absl::StatusOr<ValueId> Captured(ValueId outer);
  absl::Status LiftWatched(const TraceWatch& watch);
  absl::Status CheckBorder(const TraceWatch& watch);
  absl::Status LiftReads(const ControlWanted& wanted);
  absl::Status Rewrite(const std::vector<ValueId>& captured, std::string_view label, AttrValue* number);
  absl::Status RewriteAll(const ControlWanted& wanted, const std::vector<ValueId>& captured, Attrs* attrs);
  absl::Status AddControl(const ControlWanted& wanted, std::vector<ArrayRef>* results);
  absl::Status CheckOpen(std::string_view doing) const;
  absl::StatusOr<ValueId> ValueFor(keel_array* array);
  absl::StatusOr<ValueId> Capture(keel_array* array);
  absl::StatusOr<ArrayRef> Symbol(ValueId value);
  absl::StatusOr<std::shared_ptr<Trace>> WriteBackward(const CustomWanted& wanted);
  absl::Status CallCustom(const CustomWanted& wanted, const Trace& back, std::vector<ArrayRef>* out);
  std::string NameFor(std::string_view given, std::string_view otherwise);
  std::string Unique(std::string name);

  std::shared_ptr<Module> module_;
  Graph* graph_;
  std::string device_;
  bool open_ = true, variables_ = true, branch_ = false;
  std::shared_ptr<Trace> parent_;
  std::shared_ptr<SizesAsked> asked_;
  std::unique_ptr<Graph> own_;  // a body's; the module gets another one that is written after it
  std::atomic<Trace*> inner_{nullptr};
  size_t entries_from_ = SIZE_MAX;
  using Capturing = std::pair<ValueId, ValueId>;
  std::vector<Capturing> captures_;      // values of the parent, and the parameters for them
  std::vector<bool> hidden_;             // nodes of a body
  HashSet<uint32_t> written_;            // variables
  std::optional<std::string> scope_;     // of names; none: what is added stays unnamed
  HashMap<std::string, uint32_t> next_;  // by name: the number to try behind it
  std::vector<TraceLink> links_;
  HashMap<uint32_t, ValueId> current_;            // what was read of variables that nothing wrote since
  HashMap<const keel_array*, ValueId> captured_;  // kept alive by links_
  // Of the program and all its bodies; taken again where a body asks its parent, or `saw` asks for a number.
  const char* file_ = nullptr;
  uint32_t in_file_ = 0, source_ = 0;  // Origin::source, of line 0 there and of the line under way
  std::shared_ptr<RecursiveMutex> mutex_ = std::make_shared<RecursiveMutex>();
};

}  // namespace keel
