// edit.h: a C++ view of the host's edit table; the passes use nothing else of Keel.
//
// Attrs writes attributes, Type describes a value, Edit reads and rewrites the graph. Nodes that a pass adds
// and does not use are removed by the host. A call that the host refuses throws Failure, which ends the pass;
// redirect, outline and eval return false instead, as passes expect refusals there.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "abi/keel_plugin.h"
#include "sdk/cpp/keel/plugin_attrs.hpp"

namespace keel_passes {

using Dims = std::vector<keel_dim>;
using Ints = std::vector<int64_t>;
using Ids = std::vector<keel_value>;
using NodeId = uint32_t;
constexpr NodeId kNone = KEEL_NO_VALUE;  // no node

struct Failure {  // the host has the text already
  keel_rc rc;
};

using Attrs = keel::PluginAttrs;

struct Type {
  keel_dt dtype = 0;
  Dims dims;
  const void* data = nullptr;  // of a constant: row-major elements
  size_t rank() const { return dims.size(); }
  int64_t count() const;  // -1: has symbolic dims
};

inline bool is_number(keel_dim d) { return !KEEL_DIM_IS_HANDLE(d); }
inline uint32_t width_of(keel_dt dtype) { return static_cast<uint32_t>(keel_bytes(dtype, 1)); }
inline bool is_float(keel_dt dtype) { return (dtype & 0xff) == 2 || (dtype & 0xff) == 4; }
inline bool is_integer(keel_dt dtype) { return (dtype & 0xff) <= 1; }

class Edit {
 public:
  Edit(const keel_host* host, keel_edit* edit) : host_(host), edit_(edit) {}

  // Nodes.
  std::vector<NodeId> nodes() const;  // in program order
  bool alive(NodeId n) const { return host_->edit_node(edit_, n) != nullptr; }
  std::string_view op(NodeId n) const;
  uint32_t traits(NodeId n) const;  // KEEL_TRAIT_ ... of its op
  bool is(NodeId n, std::string_view name) const { return n != kNone && op(n) == name; }
  Ids ins(NodeId n) const;
  Ids outs(NodeId n) const;
  keel_value in(NodeId n, size_t i) const;
  keel_value out(NodeId n) const { return outs(n)[0]; }
  keel_attr attr(NodeId n, const char* name) const;
  int64_t integer(NodeId n, const char* name) const { return attr(n, name).i; }
  Attrs attrs(NodeId n, const std::vector<const char*>& names) const;  // of another node with them
  double number(NodeId n, const char* name) const { return attr(n, name).f; }
  Ints list(NodeId n, const char* name) const;  // of integers or dims

  // Values.
  Type type(keel_value v) const;
  bool constant(keel_value v) const { return v != KEEL_NO_VALUE && type(v).data != nullptr; }
  NodeId producer(keel_value v) const;
  NodeId made_by(keel_value v, std::string_view op) const;  // kNone if the producer is another op
  std::vector<NodeId> users(keel_value v) const;            // one entry per use
  bool fetched(keel_value v) const { return host_->edit_fetched(edit_, v) != 0; }
  bool single_use(keel_value v) const { return !fetched(v) && host_->edit_users(edit_, v, nullptr) == 1; }
  int32_t compare(keel_dim a, keel_dim b) const;
  bool same(keel_dim a, keel_dim b) const { return compare(a, b) == KEEL_EQUAL; }
  bool same(const Dims& a, const Dims& b) const;
  bool same_type(keel_value a, keel_value b) const;

  // Rewriting. New nodes are inserted before node `at`.
  void at(NodeId n) { check(host_->edit_before(edit_, n)); }
  keel_value add(const std::string& op, const Ids& in, const Attrs& attrs = {});
  keel_value constant(keel_dt dtype, const Dims& dims, const void* data);  // copies the data
  bool redirect(keel_value old_value, keel_value new_value);               // moves uses and the name
  bool replace(NodeId n, keel_value v) { return redirect(out(n), v); }     // of a node with one result
  bool eval(NodeId n);
  NodeId outline(const std::vector<NodeId>& nodes, const char* name);  // kNone: refused
  // reverts the last outlining, which had `count` nodes
  std::vector<NodeId> inlined(NodeId call, size_t count);
  bool inlined(NodeId n) { return host_->edit_inline(edit_, n) == KEEL_OK; }
  uint32_t body_size(NodeId call) const;                // nodes of its graph
  bool splice(NodeId n, int64_t graph, const Ids& in);  // replaces n by one of its graphs, applied to `in`
  uint64_t hash(NodeId n) const { return host_->edit_hash(edit_, n); }        // 0: must not be merged
  uint32_t effects(NodeId n) const { return host_->edit_effects(edit_, n); }  // KEEL_READS ...
  bool same(NodeId a, NodeId b) const { return host_->edit_same(edit_, a, b) != 0; }
  bool supported(NodeId n) const { return host_->edit_supported(edit_, n) != 0; }

  // Graphs that nodes run.
  struct Body;
  Body body(int64_t graph) const;  // read-only
  // A new graph: the part of `of` between params and results. A param that is KEEL_NO_VALUE has the type of
  // types[i] and is unused.
  int64_t graph(int64_t of, const Ids& params, const Ids& types, const Ids& results);
  Ids add(const std::string& op, const Ids& in, const Attrs& attrs, size_t results);

 private:
  void check(keel_rc rc) const {
    if (rc != KEEL_OK) throw Failure{rc};
  }
  const keel_host* host_;
  keel_edit* edit_;
};

struct Edit::Body {
  Edit edit;
  const keel_value *params, *results;  // as many as the node has operands and results for the graph
};

}  // namespace keel_passes
