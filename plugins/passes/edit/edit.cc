// edit.cc: calls into the host's edit table.
#include "plugins/passes/edit/edit.h"

#include <numeric>

namespace keel_passes {

int64_t Type::count() const {
  int64_t n = 1;
  for (keel_dim d : dims) {
    if (!is_number(d)) return -1;
    n *= d;
  }
  return n;
}

std::vector<NodeId> Edit::nodes() const {
  const uint32_t* list = nullptr;
  const uint32_t n = host_->edit_nodes(edit_, &list);
  return {list, list + n};
}

std::string_view Edit::op(NodeId n) const {
  const keel_node* node = host_->edit_node(edit_, n);
  return node != nullptr ? host_->node_op(node) : "";
}

uint32_t Edit::traits(NodeId n) const {
  const keel_node* node = host_->edit_node(edit_, n);
  return node != nullptr ? host_->node_traits(node) : 0;
}

Ids Edit::ins(NodeId n) const {
  const keel_value *in = nullptr, *out = nullptr;
  uint32_t n_in = 0, n_out = 0;
  check(host_->edit_operands(edit_, n, &in, &n_in, &out, &n_out));
  return {in, in + n_in};
}

Ids Edit::outs(NodeId n) const {
  const keel_value *in = nullptr, *out = nullptr;
  uint32_t n_in = 0, n_out = 0;
  check(host_->edit_operands(edit_, n, &in, &n_in, &out, &n_out));
  return {out, out + n_out};
}

keel_value Edit::in(NodeId n, size_t i) const {
  const Ids all = ins(n);
  return i < all.size() ? all[i] : KEEL_NO_VALUE;
}

keel_attr Edit::attr(NodeId n, const char* name) const {
  keel_attr a = {};
  check(host_->node_attr(host_->edit_node(edit_, n), name, &a));
  return a;
}

Attrs Edit::attrs(NodeId n, const std::vector<const char*>& names) const {
  Attrs all;
  for (const char* name : names) std::move(all).as(name, attr(n, name));
  return all;
}
Ints Edit::list(NodeId n, const char* name) const {
  const keel_attr a = attr(n, name);
  const auto* p = static_cast<const int64_t*>(a.p);
  return a.count > 0 ? Ints(p, p + a.count) : Ints();
}

Type Edit::type(keel_value v) const {
  keel_tensor t = {};
  check(host_->value_type(edit_, v, &t));
  Type type = {keel_dt_of(&t), {}, t.data != nullptr ? keel_ptr(&t) : nullptr};
  if (t.ndim > 0) type.dims.assign(t.shape, t.shape + t.ndim);
  return type;
}

NodeId Edit::producer(keel_value v) const {
  return v == KEEL_NO_VALUE ? kNone : host_->edit_producer(edit_, v);
}

NodeId Edit::made_by(keel_value v, std::string_view name) const {
  const NodeId n = producer(v);
  return is(n, name) ? n : kNone;
}

std::vector<NodeId> Edit::users(keel_value v) const {
  const uint32_t* list = nullptr;
  const uint32_t n = host_->edit_users(edit_, v, &list);
  return {list, list + n};
}

int32_t Edit::compare(keel_dim a, keel_dim b) const {
  if (a == b) return KEEL_EQUAL;
  if (is_number(a) && is_number(b)) return a < b ? KEEL_LESS : KEEL_GREATER;
  return host_->dim_compare(edit_, a, b);
}

bool Edit::same(const Dims& a, const Dims& b) const {
  bool yes = a.size() == b.size();
  for (size_t i = 0; yes && i < a.size(); i++) yes = same(a[i], b[i]);
  return yes;
}

bool Edit::same_type(keel_value a, keel_value b) const {
  const Type x = type(a), y = type(b);
  return x.dtype == y.dtype && same(x.dims, y.dims);
}

keel_value Edit::add(const std::string& op, const Ids& in, const Attrs& attrs) {
  return add(op, in, attrs, 1)[0];
}

Ids Edit::add(const std::string& op, const Ids& in, const Attrs& attrs, size_t results) {
  keel_node_spec spec = {};
  spec.struct_size = sizeof spec;
  spec.op = op.c_str();
  spec.in = in.data();
  spec.attr_names = attrs.names().data();
  spec.attrs = attrs.values().data();
  spec.n_in = static_cast<uint32_t>(in.size());
  spec.n_attrs = static_cast<uint32_t>(attrs.names().size());
  Ids out(results);
  check(host_->add_node(edit_, &spec, out.data(), static_cast<uint32_t>(results)));
  return out;
}

keel_value Edit::constant(keel_dt dtype, const Dims& dims, const void* data) {
  Dims shape = dims;
  keel_tensor t = {};
  t.data = const_cast<void*>(data);
  t.device = {1, 0};
  t.ndim = static_cast<int32_t>(shape.size());
  t.dtype = {static_cast<uint8_t>(dtype & 0xff), static_cast<uint8_t>(dtype >> 8 & 0xff), 1};
  t.shape = shape.data();
  keel_value out = KEEL_NO_VALUE;
  check(host_->constant(edit_, nullptr, &t, nullptr, nullptr, &out));
  return out;
}

bool Edit::redirect(keel_value old_value, keel_value new_value) {
  return host_->edit_replace(edit_, old_value, new_value) == KEEL_OK;
}

bool Edit::eval(NodeId n) { return host_->edit_eval(edit_, n) == KEEL_OK; }

uint32_t Edit::body_size(NodeId call) const {
  keel_body body = {};
  body.struct_size = sizeof body;
  check(host_->node_body(host_->edit_node(edit_, call), &body));
  return body.n_nodes;
}

Edit::Body Edit::body(int64_t graph) const {
  keel_edit* inside = nullptr;
  Body b = {*this, nullptr, nullptr};
  check(host_->edit_body(edit_, graph, &inside, &b.params, &b.results));
  b.edit = Edit(host_, inside);
  return b;
}

int64_t Edit::graph(int64_t of, const Ids& params, const Ids& types, const Ids& results) {
  int64_t made = -1;
  check(host_->edit_graph(edit_, of, params.data(), types.data(), static_cast<uint32_t>(params.size()),
                          results.data(), static_cast<uint32_t>(results.size()), &made));
  return made;
}

bool Edit::splice(NodeId n, int64_t graph, const Ids& in) {
  return host_->edit_splice(edit_, n, graph, in.data(), static_cast<uint32_t>(in.size())) == KEEL_OK;
}

NodeId Edit::outline(const std::vector<NodeId>& nodes, const char* name) {
  NodeId call = kNone;
  const keel_rc rc =
      host_->edit_outline(edit_, nodes.data(), static_cast<uint32_t>(nodes.size()), name, &call);
  return rc == KEEL_OK ? call : kNone;
}

std::vector<NodeId> Edit::inlined(NodeId call, size_t count) {
  check(host_->edit_inline(edit_, call));
  std::vector<NodeId> back(count);
  std::iota(back.begin(), back.end(), call + 1);
  return back;
}

}  // namespace keel_passes
