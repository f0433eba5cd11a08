// graph.h: modules and graphs in memory. A graph is a straight-line SSA list of nodes; ids are dense u32. A
// module is the content of a file: graphs, constants, variables, entries, test cases, metadata, one DimTable.
//
// Graphs grow only through the Add* functions, which check and infer, so a Graph is always valid. Passes and
// plans read the public vectors and build new graphs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernel/base/hash.h"
#include "kernel/base/status.h"
#include "kernel/language/dims/dim_table.h"
#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/effects.h"
#include "kernel/language/graph/limits.h"
#include "kernel/language/opset/opset.h"
#include "kernel/language/values/dtype.h"
#include "kernel/language/values/variable.h"

namespace keel {

using ValueId = uint32_t;
using NodeId = uint32_t;
inline constexpr ValueId kNoValue = kNoOperand;

// State of the module. The storage is shared with copies of the module and with other modules that use the
// variable.
struct ModuleVariable {
  std::string name;  // the path of the object that owns it: unique in the module
  TensorType type;   // concrete dims
  std::shared_ptr<Variable> storage;
};

enum class ValueKind : uint8_t { kParam, kConstant, kResult };
struct Value {
  ValueKind kind;
  uint32_t index;       // index of the parameter, of the module's constant, or node id
  uint32_t result = 0;  // which result of the node
  TensorType type;
  std::string name;  // unique in the graph; "": unnamed, v<node> or v<node>_<result>
};

// The origin of a node. Passes and gradients copy it to the nodes that they derive from it.
struct Origin {
  static constexpr uint32_t kLineBits = 20;
  uint32_t device = 0;  // 1 + index into Module::devices: the device scope; 0: none
                        // (1 + index into Module::files) << kLineBits | line; 0: unknown.
  uint32_t source = 0;
};

struct Node {
  const OpDef* op;
  std::vector<ValueId> in;  // kNoValue: omitted
  std::vector<ValueId> out;
  Attrs attrs;  // omits attributes that equal constant defaults
  Origin origin;
  std::string name;  // of a node without results, unique among value names; "": v<node>
};

struct Module;
struct ModuleIndex;  // lookups by name and facts about ops: module_index.h

struct Graph {
  Module* module = nullptr;
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // operands precede their uses
  std::vector<ValueId> params;
  std::vector<ValueId> results;
  std::vector<std::string> result_names;  // unique, or ""
  std::vector<std::string> rules;         // constraints on the symbols of the parameters (dims/rule.h)
  Origin scope;                           // copied to nodes added from now on
  HashMap<std::string, ValueId> by_name;
  HashMap<std::string, NodeId> nodes_by_name;  // nodes without results
  HashMap<uint32_t, ValueId> constant_values;  // constant index -> its value in this graph

  bool called = false;    // the body of a node: it is frozen, so no graph can call itself
  uint32_t depth = 0;     // nesting depth of its calls; 0: no calls
  uint64_t expanded = 0;  // number of nodes with all bodies inlined
                          // Of `expanded`. Higher while a pass works, because many of its nodes are dead.
  size_t limit = kMaxNodes;
  Effects effects;         // of all its nodes
  bool new_sizes = false;  // some nodes, or their bodies, make sizes that only a run knows (new_sizes.h)

  absl::StatusOr<ValueId> AddParam(std::string_view name, TensorType type);
  absl::Status AddRule(std::string_view text);             // after all parameters
  absl::StatusOr<ValueId> AddConstant(uint32_t constant);  // the same value each time
  absl::StatusOr<ValueId> AddConstant(Constant constant);  // adds it to the module, too
  // The value of an unnamed scalar constant; `element` is one element of that dtype. Equal scalars share a
  // value.
  absl::StatusOr<ValueId> AddScalar(DType dtype, const void* element);
  // names: of the results (may be shorter, or contain ""), or of a node without results. declared: types of
  // the results, or empty; they are compared with the inferred types (equal, or possibly equal at run time).
  absl::StatusOr<NodeId> AddNode(const OpDef* op, std::vector<ValueId> in, Attrs attrs,
                                 const std::vector<std::string>& names = {},
                                 const std::vector<TensorType>& declared = {});
  absl::Status AddResult(std::string_view name, ValueId);
  bool Makes(Dim size) const;  // whether it mentions a size that a node makes and only a run knows
  absl::Status NameValue(ValueId, std::string_view name);
  // By value name, by result name, or "v12" for an unnamed result of node 12. NotFound suggests similar
  // names.
  absl::StatusOr<ValueId> Find(std::string_view name) const;
  std::string ValueName(ValueId) const;  // its name, "v12", or a literal such as "f32(1.5)"
  // The name of its first result, or "v12" for node 12 without results.
  std::string NodeName(NodeId) const;
  // The node that computes the value with this name, or the node without results with this name. kNoValue for
  // a parameter or a constant.
  absl::StatusOr<NodeId> FindNode(std::string_view name) const;
  void Reserve(size_t value_count, size_t node_count);
};

struct Entry {
  std::string name;
  uint32_t graph;  // parameters and results are the graph's, in order
};

struct Case {  // a test vector
  std::string name, entry;
  std::vector<uint32_t> inputs, expected;  // constants
  double rtol, atol;
};

struct Module {
  explicit Module(std::shared_ptr<Catalogue> catalogue);
  ~Module();
  std::shared_ptr<Catalogue> catalogue;
  DimTable dims;
  std::vector<Constant> constants;
  std::vector<ModuleVariable> variables;
  std::vector<std::unique_ptr<Graph>> graphs;
  std::vector<Entry> entries;
  std::vector<Case> cases;
  std::vector<std::pair<std::string, std::string>> metadata;  // sorted by key
  std::vector<std::string> devices;                           // names of device scopes
  std::vector<std::string> files;  // source files of programs, as in their tracebacks

  // Checks size, alignment and name. An unnamed constant gets a fresh name unless it is a scalar; equal
  // unnamed scalars are one constant, unless `unshared`, which gives each its own name.
  absl::StatusOr<uint32_t> AddConstant(Constant, bool unshared = false);
  absl::StatusOr<uint32_t> FindConstant(std::string_view name) const;
  // Returns the existing variable if the name has the same storage.
  absl::StatusOr<uint32_t> AddVariable(std::string_view name, std::shared_ptr<Variable> storage);
  absl::StatusOr<uint32_t> FindVariable(std::string_view name) const;
  absl::StatusOr<TensorType> VariableType(int64_t variable) const;
  absl::StatusOr<Graph*> AddGraph(std::string_view name);
  // The name gets a suffix if it is taken: `between` and a number.
  absl::StatusOr<Graph*> AddFreshGraph(std::string_view name, std::string_view between = "_");
  absl::Status AddEntry(std::string_view name, const Graph*);
  void DropGraphs(size_t first) noexcept;     // all graphs from this index on; they must be unused
  void DropConstants(size_t first) noexcept;  // all constants from this index on; they must be unused
  // Replaces a graph by one with the same name and returns the old one.
  std::unique_ptr<Graph> ExchangeGraph(uint32_t number, std::unique_ptr<Graph> graph) noexcept;
  // The types of a graph that is used as a body.
  absl::StatusOr<GraphTypes> BodyTypes(int64_t graph) const;
  absl::StatusOr<const Entry*> FindEntry(std::string_view name) const;  // "": the only entry
  absl::StatusOr<Graph*> FindGraph(std::string_view name) const;
  absl::StatusOr<uint32_t> GraphNumber(std::string_view name) const;
  absl::StatusOr<uint32_t> DeviceScope(std::string_view name);  // for Origin; "": 0
  // For Origin; 0 if the file or the line is out of range.
  uint32_t Source(std::string_view file, uint32_t line);
  std::pair<std::string_view, uint32_t> SourceOf(const Origin&) const;  // file and line; "", 0: unknown
  std::string SourceText(const Origin&) const;                          // "model.py:12"; "": unknown
  absl::Status SetMetadata(std::string_view key, std::string_view value);
  absl::Status AddCase(Case);  // its constants must match the entry's parameters and results
  // The same with new constants, which are added only if they match.
  absl::Status AddCase(Case, std::vector<Constant> inputs, std::vector<Constant> expected);

  std::unique_ptr<ModuleIndex> index;
};

// The nodes required for the wanted values and nodes (including these), given the feeds.
std::vector<bool> NeededNodes(const Graph&, std::span<const ValueId> feeds, std::span<const ValueId> wanted,
                              std::span<const NodeId> nodes);

// copy.cc: copies a module. Graphs that `only` does not reach are copied without nodes; null: all are
// complete. Indices do not change.
std::unique_ptr<Module> CopyModule(const Module&, const Graph* only);
// Removes unused graphs from index `first_new` on, and unused constants.
void DropUnused(Module*, size_t first_new);
// extra: a graph, possibly outside the module, whose calls count as uses.
void DropUnusedGraphs(Module*, size_t first_new, Graph* extra = nullptr);

// Checks that a graph contains no constants, as required for the body of a call.
absl::Status CheckIsolated(const Graph& body);
// Whether a call has the graph of this name as its body, so that it must be isolated.
bool IsBodyOfCall(const Module& m, std::string_view graph);
// The graphs that a node calls.
std::vector<uint32_t> BodiesOf(const Attrs&);
std::vector<uint32_t> BodiesOf(const OpDef&, const Attrs&);  // in the order of the op's attributes
// The symbol of the size that the node makes and only a run knows, if any.
std::optional<size_t> NewSizeOf(const Node&, const DimTable&);
// Whether a node of the bodies makes such a size.
bool BodiesMakeSizes(const Module& m, const Attrs&);
// Calls change with each graph number of the attribute.
void ForEachBody(Attr& attr, absl::FunctionRef<void(int64_t&)> change);
// With the effects of the graphs that the node calls.
Effects EffectsOf(const Graph& graph, const Node& node);
bool FailsOnData(const Graph& graph, const Node& node);  // whether it may fail on its data
// All graphs, callees first; an error if a graph calls itself.
absl::StatusOr<std::vector<uint32_t>> CallOrder(const Module&);

// text_print.cc, text_parse.cc
// Data of larger constants is replaced by "...", which does not parse.
std::string PrintNode(const Graph&, NodeId);  // one line
std::string PrintText(const Module&, uint64_t max_constant_bytes = UINT64_MAX);
absl::StatusOr<std::unique_ptr<Module>> ParseText(std::string_view text, std::shared_ptr<Catalogue>);

// file_load.cc, file_save.cc: the format of abi/graph.fbs. `owner` keeps the bytes alive as long as the
// module lives.
absl::StatusOr<std::unique_ptr<Module>> LoadBytes(const uint8_t* data, uint64_t size,
                                                  std::shared_ptr<const void> owner,
                                                  std::shared_ptr<Catalogue>);
absl::StatusOr<std::unique_ptr<Module>> LoadFile(const std::string& path, std::shared_ptr<Catalogue>);
// Atomic (temp_file.h).
absl::Status SaveFile(const Module&, const std::string& path);

// file_map.cc: a file mapped read-only.
struct FileMap {
  const uint8_t* data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<const void> owner;
  bool Contains(const void* p) const {
    return std::less_equal()(static_cast<const void*>(data), p) &&
           std::less()(p, static_cast<const void*>(data + size));
  }
};
absl::StatusOr<FileMap> MapFile(const std::string& path);
// Returns the memory of mapped pages to the system; they are read again on access. No-op for constants that
// are not mapped.
void DropPages(const void* mapped, uint64_t bytes);
inline void DropPages(const Constant& c) {
  if (c.mapped) DropPages(c.data, c.bytes);
}

}  // namespace keel
