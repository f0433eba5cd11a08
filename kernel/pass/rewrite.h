// rewrite.h: one pass at work on one graph. Until the first edit it reads the graph as it is; then it makes
// a private copy and edits that: of the caller's module, or of the graph alone where an earlier pass has made
// the module. Nodes and values are only ever added to the copy, so their numbers stay; which nodes are alive,
// and in which order they run, is kept beside it. Finish writes the result out as a new graph through the
// same functions that build any graph, which is also how it is verified. Without a Finish that went well the
// module is in the end as it was.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernel/base/hash.h"
#include "kernel/plugin/host.h"

namespace keel {

// A graph as passes see it: cut at the feeds, and with all that the roots need.
struct PassGraph {
  std::shared_ptr<Module> owner;  // made by a pass of this run, for it alone; null: the caller's graph
  const Graph* graph = nullptr;
  std::vector<ValueId> feeds, roots;      // roots: fetches, then targets
  std::vector<std::string> result_names;  // one for each root, may be ""
  std::vector<NodeId> effects;            // nodes that run for their effect, ascending
  bool plan = false;                      // for one plan: unnamed values get the names that they had
  const Graph* main = nullptr;            // of a body: the graph that is under way as a whole
};

// A value's name, or the one that it has by its place ("v3"): "" where another value has that as its own.
std::string KnownName(const Graph& graph, ValueId v);

// Runs a node whose operands are all constants; one constant for each result.
using EvalNode = std::function<absl::StatusOr<std::vector<Constant>>(const Graph& graph, NodeId node)>;

struct PassTarget {
  Device* device;
  EvalNode eval;
};

class Rewrite : public Rewriter {
 public:
  Rewrite(const PassGraph& from, const PassTarget& target);
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;
  ~Rewrite() override;

  keel_edit* edit() override { return &edit_; }
  // An edit is a value that took another's place, a group of nodes that became a call, or a call that was
  // written out. Each leaves a graph that means the same, so work may stop after any.
  uint64_t edits() const { return edits_; }  // without those that were undone
  void Allow(uint64_t edits) { allowed_ = edits; }
  bool stopped() const { return stopped_; }  // was one refused for that?
  bool touched() const { return mine_; }     // is there a copy that differs, if only by what was undone?
  bool exhausted() const { return edit_.rewriter != this; }  // memory was short in the middle of an edit
  absl::StatusOr<PassGraph> Finish();                        // the result, verified; once
  std::string Diff() const;                                  // what was edited, as lines with + and -

  const std::string& DeviceName() override { return target_.device->name(); }
  std::span<const NodeId> Nodes() override;
  const Node* Find(NodeId node) override { return Alive(node) ? &graph_->nodes[node] : nullptr; }
  const keel_node* ViewNode(NodeId node) override;
  NodeId Producer(ValueId value) override;
  std::span<const NodeId> Users(ValueId value) override;
  uint32_t Uses(ValueId value) override;
  bool Fetched(ValueId value) override;
  bool Fed(ValueId value) override { return fed_[value]; }
  bool Supported(NodeId node) override;
  absl::Status Before(NodeId node) override;
  absl::Status AddNode(const keel_node_spec& spec, std::span<ValueId> out) override;
  absl::StatusOr<ValueId> AddConstant(Constant constant) override;
  absl::Status Replace(ValueId old_value, ValueId new_value) override;
  absl::StatusOr<NodeId> Outline(std::span<const NodeId> nodes, std::string_view name) override;
  absl::Status Inline(NodeId call) override;
  absl::Status Eval(NodeId node) override;
  uint64_t Hash(NodeId node) override;
  bool Same(NodeId one, NodeId other) override;
  absl::Status Splice(NodeId node, int64_t graph, std::span<const ValueId> in) override;
  uint32_t EffectsAt(NodeId node) override;
  absl::StatusOr<Rewriter*> Body(int64_t graph) override;
  absl::StatusOr<uint32_t> Derive(int64_t graph, std::span<const ValueId> params, const ValueId* types,
                                  std::span<const ValueId> results) override;

 private:
  struct Group;  // of Outline

  bool Alive(NodeId n) const { return n < alive_.size() && alive_[n]; }
  void Own();   // makes the private copy
  void Grow();  // takes notice of nodes and values that were added
  void CountUses();
  void Link(NodeId node, NodeId before);
  void Unlink(NodeId node);
  void Relabel();
  uint64_t Place(NodeId node) const { return label_.empty() ? node : label_[node]; }
  void SortByPlace(std::vector<NodeId>*) const;
  absl::Status CheckAllowed();
  absl::Status CheckWrites() const;
  bool IsNew(ValueId value) const;  // computed by a node that this pass added
  absl::Status Exchange(ValueId old_value, ValueId new_value);
  absl::Status CheckValue(ValueId value) const;
  bool AnyKept() const { return !from_.effects.empty(); }
  // Of nodes that must run, in program order: the kept ones, those that call the host, those that write a
  // variable (by its number).
  enum : int64_t { kKeptOnes = -1, kHostCalls = -2 };
  void Mark(NodeId node, bool there);
  NodeId Between(int64_t mark, NodeId from, NodeId to);  // kNoValue: none; as `to`: the end
  absl::Status CheckOrder(ValueId old_value, ValueId new_value);
  absl::Status CheckUse(ValueId value, NodeId before);  // is it there when that node runs?
  NodeId Insert(NodeId node, NodeId before);            // makes a node that was appended part of the graph
  void Kill(NodeId node);                               // if nobody needs it
  void Changed(NodeId node);
  std::string FreshName(std::string_view wanted) const;
  absl::StatusOr<keel_node> View(NodeId node, bool numbers);
  absl::StatusOr<Inferred> InferNode(NodeId node);
  void TakeName(ValueId from, ValueId to);
  // Outline
  absl::StatusOr<Group> Gather(std::span<const NodeId> nodes);
  absl::Status Separate(Group* group);
  void Boundary(Group* group);
  absl::StatusOr<uint32_t> AddGraph(std::string_view name);
  absl::StatusOr<uint32_t> MakeBody(const Group& group, std::string_view name);
  std::string NameFor(const Graph& body, ValueId value, NodeId id) const;
  absl::Status WriteOut(NodeId node, uint32_t graph, std::vector<ValueId> in);

  PassTarget target_;
  PassGraph from_;
  std::shared_ptr<Module> own_;
  uint32_t number_ = 0;  // of the graph in the module
  const Graph* graph_;   // the caller's, or ours
  Graph* mine_ = nullptr;
  std::unique_ptr<Graph> was_,
      edited_;                         // in a module that was private before: what stood there; after Finish
  size_t graphs_ = 0, constants_ = 0;  // of that module, before
  keel_edit edit_;
  uint64_t edits_ = 0, allowed_ = UINT64_MAX, evaluated_ = 0;
  bool stopped_ = false;
  HashSet<NodeId> outlined_;  // calls that this pass made
  std::vector<ValueId> roots_;
  std::vector<std::string> result_names_;

  std::vector<uint8_t> alive_;       // by node
  std::vector<uint8_t> kept_;        // by node: it runs for its effect
  std::vector<NodeId> next_, prev_;  // program order
  std::vector<uint64_t> label_;      // ascends in program order
  NodeId first_ = kNoValue, last_ = kNoValue, before_ = kNoValue;
  std::vector<uint8_t> fed_, rooted_;  // by value
  std::vector<uint32_t> uses_;         // by value: operands of nodes that are alive
  std::vector<uint8_t> stale_;         // by value: its users have to be sifted
  std::vector<absl::InlinedVector<NodeId, 2>> users_;
  std::map<int64_t, std::vector<NodeId>> marks_;
  bool marked_ = false;
  std::vector<NodeId> order_;  // Nodes
  bool order_known_ = false;
  std::vector<std::unique_ptr<keel_node>> views_;
  std::vector<std::unique_ptr<Rewrite>> bodies_;  // by graph: those that the pass reads
  bool reads_ = false;                            // this one is such a graph
};

}  // namespace keel
