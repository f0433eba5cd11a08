// body.cc: see body.h.
#include "plugins/cpu/regions/body.h"

#include <algorithm>
#include <cstring>

namespace keel_cpu {
namespace {

const InnerNode& Inner(const keel_node* n) { return *reinterpret_cast<const InnerNode*>(n); }
BodyNode& NodeOf(const keel_node* n) { return Inner(n).body->nodes[Inner(n).number]; }

keel_rc View(const Body& body, const std::vector<uint32_t>& side, uint32_t i, keel_tensor* out) {
  if (i >= side.size() || side[i] == kNone) return KEEL_NOT_FOUND;
  const BodyValue& v = body.values[side[i]];
  *out = {};
  out->data = const_cast<void*>(v.data);
  out->device = {1, 0};
  out->ndim = static_cast<int32_t>(v.dims.size());
  out->dtype = DtypeOf(v.dtype);
  out->shape = const_cast<int64_t*>(v.dims.data());
  return KEEL_OK;
}
keel_rc InnerIn(const keel_node* n, uint32_t i, keel_tensor* out) {
  return View(*Inner(n).body, NodeOf(n).in, i, out);
}
keel_rc InnerOut(const keel_node* n, uint32_t i, keel_tensor* out) {
  return View(*Inner(n).body, NodeOf(n).out, i, out);
}
void InnerArity(const keel_node* n, uint32_t* n_in, uint32_t* n_out) {
  *n_in = static_cast<uint32_t>(NodeOf(n).in.size());
  *n_out = static_cast<uint32_t>(NodeOf(n).out.size());
}
const char* InnerOp(const keel_node* n) { return NodeOf(n).op.c_str(); }
const char* InnerName(const keel_node* n) { return NodeOf(n).name.c_str(); }
keel_rc InnerBody(const keel_node*, keel_body*) { return KEEL_NOT_FOUND; }

size_t PayloadOf(const keel_attr& a) {
  if (a.kind == KEEL_ATTR_STR) return a.count;
  return a.p != nullptr ? a.count * sizeof(int64_t) : 0;
}
keel_rc InnerAttr(const keel_node* n, const char* name, keel_attr* out) {
  const InnerNode& inner = Inner(n);
  auto& known = NodeOf(n).attrs;
  auto found = known.find(name);
  if (found == known.end()) {
    keel_attr a{};
    if (!inner.body->open) return KEEL_NOT_FOUND;
    if (const keel_rc rc = inner.body->outer->node_attr(inner.node, name, &a); rc != KEEL_OK) return rc;
    found = known.emplace(name, BodyNode::SavedAttr{a, {static_cast<const char*>(a.p), PayloadOf(a)}}).first;
  }
  *out = found->second.attr;
  if (out->p != nullptr) out->p = found->second.bytes.data();
  return KEEL_OK;
}

BodyValue ValueOf(const keel_tensor& t) {
  BodyValue v;
  v.dims = DimsOf(t);
  v.dtype = keel_dt_of(&t);
  if (t.data != nullptr) v.data = keel_ptr(&t);
  return v;
}

void AddNode(const keel_body_node& from, Body* body) {
  const uint32_t number = static_cast<uint32_t>(body->nodes.size());
  body->inner.push_back({body, number, from.node});
  BodyNode n = {body->outer->node_op(from.node),
                body->outer->node_name(from.node),
                {&body->host, reinterpret_cast<const keel_node*>(&body->inner.back())},
                {from.in, from.in + from.n_in},
                {},
                {}};
  for (uint32_t v : n.in)
    if (v != kNone) body->values[v].users.push_back(number);
  for (uint32_t i = 0; i < from.n_out; i++) {
    keel_tensor t{};
    if (body->outer->node_out(from.node, i, &t) != KEEL_OK)
      Throw(KEEL_INTERNAL, "cannot read a result in the body of a call");
    n.out.push_back(static_cast<uint32_t>(body->values.size()));
    body->values.push_back(ValueOf(t));
    body->values.back().producer = number;
  }
  body->nodes.push_back(std::move(n));
}

}  // namespace

void Begin(const Node& outer, Body* body) {
  body->outer = outer.host;
  body->host = *outer.host;
  body->host.node_op = InnerOp;
  body->host.node_name = InnerName;
  body->host.node_arity = InnerArity;
  body->host.node_in = InnerIn;
  body->host.node_out = InnerOut;
  body->host.node_attr = InnerAttr;
  body->host.node_body = InnerBody;
  keel_attr exact{};
  body->exact_convolution =
      outer.host->node_attr(outer.node, "keel.exact_convolution", &exact) == KEEL_OK && exact.i != 0;
  body->n_in = outer.InCount();
  for (uint32_t i = 0; i < body->n_in; i++)
    body->values.push_back(outer.Has(i) ? ValueOf(outer.In(i)) : BodyValue());
}

bool IsInner(const Node& node) { return node.host->node_op == InnerOp; }

bool ReadBody(const Node& call, Body* body) {
  keel_body view = {sizeof(keel_body), 0, 0, 0, nullptr, nullptr};
  if (call.host->node_body == nullptr || call.host->node_body(call.node, &view) != KEEL_OK) return false;
  Begin(call, body);
  body->nodes.reserve(view.n_nodes);
  for (uint32_t i = 0; i < view.n_nodes; i++) AddNode(view.nodes[i], body);
  body->results.assign(view.results, view.results + view.n_results);
  for (uint32_t i = 0; i < view.n_results; i++) body->values[view.results[i]].result = i;
  return true;
}

void BodyOf(const Node& node, Body* body) {
  Begin(node, body);
  body->single = true;
  std::vector<uint32_t> operands(body->n_in);
  for (uint32_t i = 0; i < body->n_in; i++) operands[i] = node.Has(i) ? i : kNone;
  AddNode({node.node, operands.data(), body->n_in, 1, 0, 0}, body);
  body->results = body->nodes[0].out;
  body->values[body->results[0]].result = 0;
}

const keel_impl* FindImpl(const BodyNode& node) {
  const keel_impl* best = nullptr;
  for (const keel_impl& impl : AllImpls()) {
    if (node.op != impl.op || (best != nullptr && impl.priority <= best->priority)) continue;
    // Rows with a type constraint serve f32 with oneDNN; this looks for the general row.
    if (impl.types != nullptr) {
      if (std::strcmp(impl.types, "T=f32") != 0) continue;
      const keel_tensor x = node.node.In(0);
      if (keel_dt_of(&x) != KEEL_F32) continue;
    }
    if (impl.match != nullptr && impl.match(nullptr, node.node.host, node.node.node) == 0) continue;
    best = &impl;
  }
  return best;
}

}  // namespace keel_cpu
