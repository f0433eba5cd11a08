// call.cc: see call.h.
#include "plugins/onnx/export/call.h"

namespace onnx_export {

Call::Call(Scope& scope, uint32_t node, const keel_node* view)
    : scope(scope), op(scope.host()->node_op(view)), view_(view) {
  check(scope.host()->edit_operands(scope.edit(), node, &in_, &n_in, &out_, &n_out));
}

keel_attr Call::attr(const char* name) const {
  keel_attr a;
  check(scope.host()->node_attr(view_, name, &a));
  return a;
}

std::string Call::word(const char* name) const {
  keel_attr a = attr(name);
  return {static_cast<const char*>(a.p), a.count};
}

Dims Call::list(const char* name) const {
  keel_attr a = attr(name);
  const auto* p = static_cast<const int64_t*>(a.p);
  return {p, p + a.count};
}

Ints Call::numbers(const char* name) const {
  Ints list = this->list(name);
  for (int64_t d : list)
    if (KEEL_DIM_IS_HANDLE(d)) throw Refused{cat(name, " = ", scope.text(d), " is known only in a run")};
  return list;
}

std::string Call::cast(const std::string& x, keel_dt to) {
  scope.model().need(to);
  return add("Cast", {x}, NodeAttrs().i("to", element_type(to)));
}

// The only symbolic dim is written as -1, unless a 0 makes it ambiguous.
std::string Call::reshape(const std::string& x, const Dims& to, const std::string& out) {
  Dims dims = to;
  size_t symbolic = 0;
  bool zero = false;
  for (keel_dim d : dims) {
    symbolic += KEEL_DIM_IS_HANDLE(d);
    zero |= d == 0;
  }
  if (symbolic == 1 && !zero) {
    for (keel_dim& d : dims)
      if (KEEL_DIM_IS_HANDLE(d)) d = -1;
    return scope.add("Reshape", {x, ints(dims)}, {}, out);
  }
  return scope.add("Reshape", {x, scope.shape(dims)}, NodeAttrs().i("allowzero", 1), out);
}

void Call::give(const char* op, const Names& in, NodeAttrs attrs) {
  const keel_value v = out_[given_];
  give(scope.add(op, in, std::move(attrs), scope.fresh(v)));
}

void Call::give_reshaped(const std::string& x) {
  const keel_value v = out_[given_];
  give(reshape(x, scope.dims(v), scope.fresh(v)));
}

void Call::give_cast(const std::string& x) {
  scope.model().need(out_dtype(given_));
  give("Cast", {x}, NodeAttrs().i("to", element_type(out_dtype(given_))));
}

keel_dt wide_dtype(keel_dt t) {
  const bool integer = (t & 0xff) < 2 || t == KEEL_BOOL;
  return integer && dtype_bits(t) < 32 ? keel_dt{KEEL_I32} : t;
}

void plain(Call& c) {
  Names in;
  for (uint32_t i = 0; i < c.n_in; i++) in.push_back(c.in(i));
  c.give(c.row->onnx, in);
}

}  // namespace onnx_export
