// graph.h: modules and graphs in memory. A graph is a straight-line SSA list of nodes; ids are dense
// u32. A module is what a file holds: graphs, constants, entries, test cases, metadata, one DimTable.
//
// Graphs only grow, through the Add* functions, which check and infer as they go; so a Graph is always
// verified. Passes and plans read the public vectors and build new graphs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/base/hash.h"
#include "kernel/base/status.h"
#include "kernel/dims/dim.h"
#include "kernel/graph/effects.h"
#include "kernel/opset/opset.h"
#include "kernel/values/dtype.h"
#include "kernel/values/variable.h"

namespace keel {

using ValueId = uint32_t;
using NodeId = uint32_t;
inline constexpr ValueId kNoValue = 0xffffffffu;

// Limits for anything that comes from outside; see abi/README.md.
inline constexpr size_t kMaxNodes = 1'000'000, kMaxNameBytes = 1024, kMaxRank = KEEL_MAX_RANK;
inline constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 40;
inline constexpr uint32_t kMaxCallDepth = 32;
inline constexpr size_t kMaxVariables = 65536;

// Bytes of a constant; `owner` keeps them alive (a mapping, an array, a vector).
struct Constant {
  std::string name;            // unique in the module; "" only for inline scalar literals
  TensorType type;             // concrete dims
  const void* data = nullptr;  // row-major, aligned to the dtype's size
  uint64_t bytes = 0;
  std::shared_ptr<const void> owner;
  bool mapped = false;  // from a file: its pages may be dropped, and come back when they are touched
};

// State of the module. Copies of the module, and others that it was given to, share the storage.
struct ModuleVariable {
  std::string name;  // the path of the object that holds it: unique in the module
  TensorType type;   // concrete dims
  std::shared_ptr<Variable> storage;
};

enum class ValueKind : uint8_t { kParam, kConstant, kResult };
struct Value {
  ValueKind kind;
  uint32_t index;       // param number, constant number of the module, or node id
  uint32_t result = 0;  // which result of the node
  TensorType type;
  std::string name;  // unique in the graph; "" = unnamed: v<node>, later results v<node>_<result>
};

// Where a node was written; passes and gradients hand it on to what they make of the node.
struct Origin {
  static constexpr uint32_t kLineBits = 20;
  uint32_t device = 0;  // 1 + a number of Module::devices: its device scope; 0: none
  uint32_t source =
      0;  // of the program: (1 + a number of Module::files) << kLineBits, and the line; 0: unknown
};

struct Node {
  const OpDef* op;
  std::vector<ValueId> in;  // kNoValue: left out
  std::vector<ValueId> out;
  Attrs attrs;  // as given, without those equal to constant defaults
  Origin origin;
  std::string name;  // of a node without results, unique among names of values; "" = unnamed: v<node>
};

struct Module;

struct Graph {
  Module* module = nullptr;
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // in program order: operands come earlier
  std::vector<ValueId> params;
  std::vector<ValueId> results;
  std::vector<std::string> result_names;  // may be ""; else unique
  std::vector<std::string> rules;         // of the symbols of its parameters (dims/rule.h)
  Origin scope;                           // of nodes that are added from now on
  HashMap<std::string, ValueId> by_name;
  HashMap<std::string, NodeId> nodes_by_name;  // those without results
  HashMap<uint32_t, ValueId> constant_values;  // constant number -> its value in this graph

  bool called = false;    // the body of a node: then it cannot grow any more, so no graph calls itself
  uint32_t depth = 0;     // how deep its calls nest; 0: it has none
  uint64_t expanded = 0;  // nodes, with all bodies written out in place of calls
  size_t limit =
      kMaxNodes;    // of these; a pass, of whose nodes many are dead, has a higher one while it works
  Effects effects;  // of all its nodes

  absl::StatusOr<ValueId> AddParam(std::string_view name, TensorType type);
  absl::Status AddRule(std::string_view text);             // the parameters are there
  absl::StatusOr<ValueId> AddConstant(uint32_t constant);  // the same value each time
  // An unnamed scalar constant; `element` holds one element of that dtype. The same value each time.
  absl::StatusOr<ValueId> AddScalar(DType dtype, const void* element);
  // names: of the results, may be shorter or hold "", or of the node if it has no results; declared (may be
  // empty): types of the results to be checked against the inferred ones (equal, or equal at run time).
  absl::StatusOr<NodeId> AddNode(const OpDef* op, std::vector<ValueId> in, Attrs attrs,
                                 const std::vector<std::string>& names = {},
                                 const std::vector<TensorType>& declared = {});
  absl::Status AddResult(std::string_view name, ValueId);
  absl::Status NameValue(ValueId, std::string_view name);
  // By value name, by result name, or "v12" for an unnamed result of node 12. NotFound names close ones.
  absl::StatusOr<ValueId> Find(std::string_view name) const;
  std::string ValueName(ValueId) const;  // its name, "v12", or a literal as "f32(1.5)"
  // The name of its first result, or "v12" for node 12 without results.
  std::string NodeName(NodeId) const;
  // The node that computes the value of that name, or that has no results and that name. A parameter or a
  // constant has none: kNoValue.
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
  std::vector<std::string> files;                             // of programs, as their tracebacks name them

  // Checks size, alignment, name. "" gets a fresh name if not a scalar; equal unnamed scalars are one
  // constant, but for those that stand apart, which get names too.
  absl::StatusOr<uint32_t> AddConstant(Constant, bool apart = false);
  absl::StatusOr<uint32_t> FindConstant(std::string_view name) const;
  // The same storage under the same name is found again.
  absl::StatusOr<uint32_t> AddVariable(std::string_view name, std::shared_ptr<Variable> storage);
  absl::StatusOr<uint32_t> FindVariable(std::string_view name) const;
  absl::StatusOr<TensorType> VariableType(int64_t variable) const;
  absl::StatusOr<Graph*> AddGraph(std::string_view name);
  absl::Status AddEntry(std::string_view name, const Graph*);
  void DropGraphs(size_t first) noexcept;     // all from that number on; nobody calls them
  void DropConstants(size_t first) noexcept;  // all from that number on; nobody uses them
  // Puts a graph of the same name in the place of another, which comes back.
  std::unique_ptr<Graph> ExchangeGraph(uint32_t number, std::unique_ptr<Graph> graph) noexcept;
  // Types of a graph that can be a body.
  absl::StatusOr<GraphTypes> BodyTypes(int64_t graph) const;
  absl::StatusOr<const Entry*> FindEntry(std::string_view name) const;  // "": the only one
  absl::StatusOr<Graph*> FindGraph(std::string_view name) const;
  absl::StatusOr<uint32_t> GraphNumber(std::string_view name) const;
  absl::StatusOr<uint32_t> DeviceScope(std::string_view name);  // for Origin; "": 0
  // For Origin; 0 where the file or the line has no place there.
  uint32_t Source(std::string_view file, uint32_t line);
  std::pair<std::string_view, uint32_t> SourceOf(const Origin&) const;  // file and line; "", 0: unknown
  std::string SourceText(const Origin&) const;                          // "model.py:12"; "": unknown
  absl::Status SetMetadata(std::string_view key, std::string_view value);
  absl::Status AddCase(Case);  // its constants must fit the entry's parameters and results
  // The same with constants of its own, which are added only where they fit.
  absl::Status AddCase(Case, std::vector<Constant> inputs, std::vector<Constant> expected);

  struct Index;  // lookups by name and facts about ops: graph_index.h
  std::unique_ptr<Index> index;
};

// The nodes that the wanted values and nodes need, with those nodes, cut at the feeds.
std::vector<bool> NeededNodes(const Graph&, std::span<const ValueId> feeds, std::span<const ValueId> wanted,
                              std::span<const NodeId> nodes);

// copy.cc: graphs that `only` does not reach come without nodes; null: all come whole. Numbers stay.
std::unique_ptr<Module> CopyModule(const Module&, const Graph* only);
// Removes graphs from number `first_new` on that nobody calls, and constants that nobody uses.
void DropUnused(Module*, size_t first_new);
// beside: calls some of them too, though the module may not have it.
void DropUnusedGraphs(Module*, size_t first_new, Graph* beside = nullptr);

// A graph without constants: what a call needs.
absl::Status CheckIsolated(const Graph& body);
// The graphs that a node runs.
std::vector<uint32_t> BodiesOf(const Attrs&);
std::vector<uint32_t> BodiesOf(const OpDef&, const Attrs&);  // in the order of the op's attributes
// All graphs, those that a graph calls before it, else as in the module; an error if one calls itself.
absl::StatusOr<std::vector<uint32_t>> CallOrder(const Module&);

// [A-Za-z_][A-Za-z0-9_.]* are plain names; others are quoted in text. Empty, too long or control bytes:
// error.
absl::Status CheckName(std::string_view what, std::string_view name);

// The whole list of kernel/graph/README.md on a module built elsewhere (a file); names node and reason.
// Changes nothing, so many threads may verify one module that nobody changes.
absl::Status Verify(const Module&);

// text.cc
// Data of constants above that many bytes is left out as "..."; such a text does not parse.
std::string PrintNode(const Graph&, NodeId);  // one line
std::string PrintText(const Module&, uint64_t max_constant_bytes = UINT64_MAX);
absl::StatusOr<std::unique_ptr<Module>> ParseText(std::string_view text, std::shared_ptr<Catalogue>);

// file.cc: the format of abi/graph.fbs. `owner` keeps the bytes alive as long as the module lives.
absl::StatusOr<std::unique_ptr<Module>> LoadBytes(const uint8_t* data, uint64_t size,
                                                  std::shared_ptr<const void> owner,
                                                  std::shared_ptr<Catalogue>);
absl::StatusOr<std::unique_ptr<Module>> LoadFile(const std::string& path, std::shared_ptr<Catalogue>);
absl::Status SaveFile(const Module&,
                      const std::string& path);  // atomic: temp file, fsync, rename, fsync of the folder

// file_map.cc: a file mapped read-only.
struct FileMap {
  const uint8_t* data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<const void> owner;
  bool Holds(const void* p) const {
    return std::less_equal()(static_cast<const void*>(data), p) &&
           std::less()(p, static_cast<const void*>(data + size));
  }
};
absl::StatusOr<FileMap> MapFile(const std::string& path);
// Gives the memory of a part of a mapped file, or of a constant there, back to the system until somebody
// reads it again. Nothing happens to constants elsewhere.
void DropPages(const void* mapped, uint64_t bytes);
inline void DropPages(const Constant& c) {
  if (c.mapped) DropPages(c.data, c.bytes);
}

}  // namespace keel
