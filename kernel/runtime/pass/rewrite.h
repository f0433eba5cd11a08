// rewrite.h: one pass working on one graph. Before the first edit it reads the original graph. The first edit
// creates a private copy: of the caller's module, or only of the graph if an earlier pass already copied the
// module. Nodes and values are only added to the copy, so their ids are stable; liveness and order of nodes
// are stored separately. Finish writes the result as a new graph through Graph's functions, which verifies
// it. Without a successful Finish, the destructor restores the module.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernel/base/hash.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {

// A graph as seen by passes: cut at the feeds, with everything that the roots depend on.
struct PassGraph {
  std::shared_ptr<Module> owner;  // a copy made by a pass of this run; null: the caller's module
  const Graph* graph = nullptr;
  std::vector<ValueId> feeds, roots;      // roots: fetches, then targets
  std::vector<std::string> result_names;  // one per root, may be ""
  std::vector<NodeId> effects;            // nodes that run for their effects, ascending
  bool plan = false;                      // for a single plan: unnamed values are given their original names
  const Graph* main = nullptr;            // of a body: the graph being planned
};

// A value's name, or its default name ("v3"); "" if another value has that name.
std::string KnownName(const Graph& graph, ValueId v);

// A type or value of a graph as plugins see it, symbolic dims as -1. known: with the data of a constant.
keel_node::Side ViewType(const TensorType& type);
keel_node::Side ViewValue(const Graph& graph, ValueId v, bool known);

// Evaluates a node whose operands are all constants; one constant per result.
using EvalNode = std::function<absl::StatusOr<std::vector<Constant>>(const Graph& graph, NodeId node)>;

struct PassTarget {
  Device* device;  // null: none, for a locked Rewrite
  EvalNode eval;
};

class Rewrite : public Rewriter {
 public:
  Rewrite(const PassGraph& from, const PassTarget& target);
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;
  ~Rewrite() override;

  keel_edit* edit() override { return &edit_; }
  // An edit is one replaced value, one outlined group, or one inlined call. Each preserves the meaning of the
  // graph, so work may stop after any edit.
  uint64_t edits() const { return edits_; }  // without undone ones
  void Allow(uint64_t edits) { allowed_ = edits; }
  void Lock() { read_only_ = true; }         // edits are refused
  bool stopped() const { return stopped_; }  // an edit was refused because of Allow
  bool touched() const { return copy_; }     // a private copy exists, even if all edits were undone
  bool exhausted() const { return edit_.rewriter != this; }  // out of memory in the middle of an edit
  void MakeCopy();  // creates the private copy, at the first edit; without one, Finish returns the original
  // The verified result; call once. In a plan, ops that find a size in their body are replaced by it.
  absl::StatusOr<PassGraph> Finish();
  std::string Diff() const;  // the edits as lines with + and -

  const std::string& DeviceName() override;
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
  absl::Status Inline(NodeId node) override;
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
  class BodyCopy;

  bool Alive(NodeId n) const { return n < alive_.size() && alive_[n]; }
  void Grow();  // resizes the tables for added nodes and values
  void CountUses();
  void Link(NodeId node, NodeId before);
  void Unlink(NodeId node);
  void Relabel();
  uint64_t Position(NodeId node) const { return label_.empty() ? node : label_[node]; }
  void SortByPosition(std::vector<NodeId>*) const;
  absl::Status CheckAllowed();
  absl::Status CheckWrites() const;
  absl::Status CheckMayHaveConstants();
  bool IsNew(ValueId value) const;  // computed by a node that this pass added
  absl::Status ReplaceUses(ValueId old_value, ValueId new_value);
  absl::Status CheckAlive(NodeId n) const;
  absl::Status CheckValue(ValueId value) const;
  bool AnyKept() const { return !input_.effects.empty(); }
  // Keys of marks_, which lists nodes that must run, in program order: kept nodes, nodes that call the host,
  // and, by variable index, nodes that write a variable.
  enum : int64_t { kKeptNodes = -1, kHostCalls = -2 };
  void Mark(NodeId node, bool there);
  NodeId FirstBetween(int64_t mark, NodeId from, NodeId to);  // kNoValue: none; as `to`: the end
  absl::Status CheckOrder(ValueId old_value, ValueId new_value);
  absl::Status CheckUse(ValueId value, NodeId before);  // the value is available when that node runs
  NodeId Insert(NodeId node, NodeId before);            // links an appended node into the order
  void Kill(NodeId node);                               // if its results are unused
  void DropView(NodeId node);
  std::string FreshName(std::string_view wanted) const;
  absl::StatusOr<keel_node> View(NodeId node, bool numbers);
  absl::StatusOr<Inferred> InferNode(NodeId node);
  void TransferName(ValueId from, ValueId to);
  // Outline
  absl::StatusOr<Group> CheckGroup(std::span<const NodeId> nodes);
  std::vector<NodeId> Dependents(NodeId node);
  absl::Status CollectLater(Group* group);
  void FindBoundary(Group* group);
  absl::StatusOr<uint32_t> MakeBody(const Group& group, std::string_view name);
  std::string NameFor(const Graph& body, ValueId value, NodeId id) const;
  absl::Status InlineBody(NodeId node, uint32_t graph, std::vector<ValueId> in);
  absl::StatusOr<uint32_t> BodyGraph(NodeId node);

  PassTarget target_;
  PassGraph input_;
  std::shared_ptr<Module> module_;
  uint32_t number_ = 0;  // index of the graph in the module
  const Graph* graph_;   // the caller's, or the private copy
  Graph* copy_ = nullptr;
  // In a module that was copied before: the graph replaced by the private copy; the result of Finish.
  std::unique_ptr<Graph> replaced_, edited_;
  size_t graphs_ = 0, constants_ = 0;  // sizes of that module before the pass
  keel_edit edit_;
  std::optional<bool> isolated_;  // whether the graph is the body of a call; set when it is needed
  uint64_t edits_ = 0, allowed_ = UINT64_MAX, evaluated_ = 0;
  bool stopped_ = false;
  HashSet<NodeId> outlined_;          // calls created by this pass
  std::vector<ValueId> outline_map_;  // buffer, by value: all kNoValue
  std::vector<ValueId> roots_;
  std::vector<std::string> result_names_;

  std::vector<uint8_t> alive_;       // by node
  std::vector<uint8_t> kept_;        // by node: runs for its effects
  std::vector<NodeId> next_, prev_;  // program order
  std::vector<uint64_t> label_;      // ascends in program order
  NodeId first_ = kNoValue, last_ = kNoValue, before_ = kNoValue;
  std::vector<uint8_t> fed_, rooted_;  // by value
  std::vector<uint32_t> uses_;         // by value: number of uses by live nodes
  std::vector<uint8_t> stale_;         // by value: users_ contains dead nodes
  std::vector<absl::InlinedVector<NodeId, 2>> users_;
  std::map<int64_t, std::vector<NodeId>> marks_;
  bool marked_ = false;
  std::vector<NodeId> order_;  // cache of Nodes()
  bool order_known_ = false;
  std::vector<std::unique_ptr<keel_node>> views_;
  std::vector<std::unique_ptr<Rewrite>> bodies_;  // by graph: bodies read by the pass
  bool read_only_ = false;                        // this is such a body
};

}  // namespace keel
