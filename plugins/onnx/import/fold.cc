// fold.cc: size arithmetic at import: arithmetic, comparisons and new lists. Folds that only move elements
// are in fold_moves.cc.
//
// A fold reads operands whose contents are known (Sizes) and sets known results, so no node is created. It
// returns false if an entry is unknown; the node then computes data.
#include "plugins/onnx/import/fold.h"

#include <algorithm>
#include <cmath>

namespace onnx_import {
namespace {

using MaybeDim = std::optional<keel_dim>;

bool fits_dtype(keel_dim d, keel_dt dtype) {
  return dtype != KEEL_I32 || KEEL_DIM_IS_HANDLE(d) || (d >= INT32_MIN && d <= INT32_MAX);
}

bool number(keel_dim d) { return !KEEL_DIM_IS_HANDLE(d); }

// a op b; none on overflow.
MaybeDim math(Edit& e, int32_t op, keel_dim a, keel_dim b) {
  if (number(a) && number(b)) {
    int64_t out = 0;
    return Edit::compute(op, a, b, &out) ? MaybeDim(out) : std::nullopt;
  }
  switch (op) {
    case KEEL_DIM_ADD:
      return e.add(a, b);
    case KEEL_DIM_SUB:
      return e.sub(a, b);
    case KEEL_DIM_MUL:
      return e.mul(a, b);
    case KEEL_DIM_MAX:
      return e.max(a, b);
    default:
      return e.min(a, b);
  }
}

MaybeDim add(Edit& e, keel_dim a, keel_dim b) { return math(e, KEEL_DIM_ADD, a, b); }
MaybeDim sub(Edit& e, keel_dim a, keel_dim b) { return math(e, KEEL_DIM_SUB, a, b); }
MaybeDim mul(Edit& e, keel_dim a, keel_dim b) { return math(e, KEEL_DIM_MUL, a, b); }
MaybeDim max(Edit& e, keel_dim a, keel_dim b) { return math(e, KEEL_DIM_MAX, a, b); }
MaybeDim min(Edit& e, keel_dim a, keel_dim b) { return math(e, KEEL_DIM_MIN, a, b); }

// ONNX truncates, dims floor: equal unless the quotient is negative.
MaybeDim div(Edit& e, keel_dim a, keel_dim b) {
  if (number(a) && number(b))
    return b == 0 || b == -1 ? (b ? math(e, KEEL_DIM_SUB, 0, a) : MaybeDim()) : MaybeDim(a / b);
  if (e.compare(a, 0) == KEEL_LESS || !e.at_least(b, number(b) ? 1 : 0)) return std::nullopt;
  return e.div(a, b);
}

MaybeDim mod(Edit& e, keel_dim a, keel_dim b) {  // floored
  if (number(b) ? b <= 0 : !e.at_least(b, 0)) return std::nullopt;
  if (number(a) && number(b)) return ((a % b) + b) % b;
  return e.sub(a, e.mul(b, e.div(a, b)));
}

MaybeDim equal(Edit& e, keel_dim a, keel_dim b) {
  const int32_t c = e.compare(a, b);
  return c == KEEL_UNCERTAIN ? MaybeDim() : MaybeDim(c == KEEL_EQUAL);
}
MaybeDim less(Edit& e, keel_dim a, keel_dim b) {
  const int32_t c = e.compare(a, b);
  if (c != KEEL_UNCERTAIN) return c == KEEL_LESS;
  return number(b) && e.at_least(a, b) ? MaybeDim(0) : MaybeDim();
}
MaybeDim not_greater(Edit& e, keel_dim a, keel_dim b) {
  const MaybeDim greater = less(e, b, a);
  return greater ? MaybeDim(!*greater) : MaybeDim();
}
MaybeDim greater(Edit& e, keel_dim a, keel_dim b) { return less(e, b, a); }
MaybeDim not_less(Edit& e, keel_dim a, keel_dim b) { return not_greater(e, b, a); }
MaybeDim both(Edit&, keel_dim a, keel_dim b) { return a && b; }
MaybeDim either(Edit&, keel_dim a, keel_dim b) { return a || b; }
MaybeDim differ(Edit&, keel_dim a, keel_dim b) { return (a != 0) != (b != 0); }

using Function = MaybeDim (*)(Edit&, keel_dim, keel_dim);

std::optional<Sizes> zip(Edit& e, Function f, const Sizes& a, const Sizes& b, keel_dt dtype) {
  Sizes out;
  out.dtype = dtype;
  if (!broadcast_shape(a.shape, b.shape, &out.shape)) return std::nullopt;
  const auto from_a = broadcast_sources(a.shape, out.shape), from_b = broadcast_sources(b.shape, out.shape);
  for (size_t k = 0; k < from_a.size(); k++) {
    const MaybeDim entry = f(e, a.v[from_a[k]], b.v[from_b[k]]);
    if (!entry || !fits_dtype(*entry, dtype)) return std::nullopt;
    out.v.push_back(*entry);
  }
  return out;
}

template <Function f, bool compares = false>
bool fold_binary(Call& c) {
  if (c.n_in() == 0) return false;
  std::optional<Sizes> all;
  for (size_t i = 0; i < c.n_in(); i++) {
    const Sizes* next = c.known(i);
    if (!next) return false;
    all = all ? zip(c.e, f, *all, *next, compares ? keel_dt{KEEL_BOOL} : next->dtype) : *next;
    if (!all) return false;
  }
  c.set(0, *all);
  return true;
}

bool fold_mod(Call& c) { return c.i("fmod", 0) == 0 && fold_binary<mod>(c); }

template <class F>
bool fold_unary(Call& c, F f) {
  const Sizes* x = c.known(0);
  if (!x) return false;
  Sizes out = *x;
  for (auto& d : out.v) {
    const MaybeDim entry = f(d);
    if (!entry || !fits_dtype(*entry, out.dtype)) return false;
    d = *entry;
  }
  c.set(0, std::move(out));
  return true;
}

bool fold_neg(Call& c) {
  return fold_unary(c, [&](keel_dim d) { return math(c.e, KEEL_DIM_SUB, 0, d); });
}
bool fold_abs(Call& c) {
  return fold_unary(c, [&](keel_dim d) {
    if (number(d) && d < 0) return math(c.e, KEEL_DIM_SUB, 0, d);
    return c.e.at_least(d, 0) ? MaybeDim(d) : MaybeDim();
  });
}
bool fold_not(Call& c) {
  return fold_unary(c, [](keel_dim d) { return MaybeDim(!d); });
}

// Stored floats (the integer part of a scale) may become sizes too.
bool read_floats(Call& c, Sizes* out) {
  const Data* d = c.e.data(c.value(0));
  if (!d || !is_float(d->dtype) || d->count() > 64) return false;
  out->shape = d->dims;
  for (int64_t k = 0; k < d->count(); k++) {
    double x = 0;
    if (!number_at(*d, k, &x) || !(std::fabs(x) < 1e15)) return false;
    out->v.push_back(static_cast<int64_t>(x));
  }
  return true;
}

bool fold_cast(Call& c) {
  const int64_t to = c.i("to", 0);
  const keel_dt dtype = to == kInt64 ? KEEL_I64 : to == kInt32 ? KEEL_I32 : to == kBool ? KEEL_BOOL : 0;
  if (!dtype || !c.has(0)) return false;
  Sizes out;
  if (const Sizes* x = c.known(0))
    out = *x;
  else if (dtype == KEEL_BOOL || !read_floats(c, &out))
    return false;
  out.dtype = dtype;
  for (auto& d : out.v) {
    if (!fits_dtype(d, dtype)) return false;
    if (dtype != KEEL_BOOL) continue;
    if (!number(d) && !c.e.at_least(d, 1)) return false;
    d = number(d) ? d != 0 : 1;
  }
  c.set(0, std::move(out));
  return true;
}

bool fold_where(Call& c) {
  const Sizes *p = c.known(0), *a = c.known(1), *b = c.known(2);
  if (!p || !a || !b) return false;
  Sizes out;
  out.dtype = a->dtype;
  Ints both_shape;
  if (!broadcast_shape(p->shape, a->shape, &both_shape) || !broadcast_shape(both_shape, b->shape, &out.shape))
    return false;
  const auto at_p = broadcast_sources(p->shape, out.shape), at_a = broadcast_sources(a->shape, out.shape),
             at_b = broadcast_sources(b->shape, out.shape);
  for (size_t k = 0; k < at_p.size(); k++) out.v.push_back(p->v[at_p[k]] ? a->v[at_a[k]] : b->v[at_b[k]]);
  c.set(0, std::move(out));
  return true;
}

bool fold_shape(Call& c) {
  const Dims dims = c.dims(0);
  const auto rank = static_cast<int64_t>(dims.size());
  const auto place = [&](int64_t at) {
    return std::min(std::max<int64_t>(at < 0 ? at + rank : at, 0), rank);
  };
  const int64_t start = place(c.i("start", 0)), end = std::max(start, place(c.i("end", rank)));
  c.set(0, Sizes{KEEL_I64, {end - start}, Dims(dims.begin() + start, dims.begin() + end)});
  return true;
}

bool fold_size(Call& c) {
  c.set(0, Sizes{KEEL_I64, {}, {c.e.product(c.dims(0))}});
  return true;
}

bool fold_range(Call& c) {
  const Sizes *start = c.known(0), *limit = c.known(1), *delta = c.known(2);
  if (!start || !limit || !delta) return false;
  for (const Sizes* s : {start, limit, delta})
    if (s->v.size() != 1 || !number(s->v[0])) return false;
  const int64_t step = delta->v[0];
  int64_t span = 0;
  if (step == 0 || __builtin_sub_overflow(limit->v[0], start->v[0], &span) || std::abs(span) > (1 << 20))
    return false;
  const int64_t count = std::max<int64_t>(0, span / step + (span % step != 0 && (span > 0) == (step > 0)));
  if (count > kMostFolded) return false;
  Sizes out = {start->dtype, {count}, {}};
  for (int64_t k = 0; k < count; k++) out.v.push_back(start->v[0] + k * step);
  c.set(0, std::move(out));
  return true;
}

bool fold_constant_of_shape(Call& c) {
  const Sizes* shape = c.known(0);
  const Attribute* value = c.attribute("value");
  if (!shape || !value || !value->tensor) return false;
  Value stored;
  stored.tensor = value->tensor.get();
  const Sizes* element = c.e.sizes(stored);
  if (!element || element->v.size() != 1) return false;
  int64_t count = 1;
  for (keel_dim d : shape->v) {
    if (!number(d) || d < 0 || d > kMostFolded) return false;
    count *= d;
    if (count > kMostFolded) return false;
  }
  c.set(0, Sizes{element->dtype, shape->v, Dims(static_cast<size_t>(count), element->v[0])});
  return true;
}

template <Function f>
bool fold_reduce(Call& c) {
  const Sizes* x = c.known(0);
  if (!x || x->shape.size() != 1 || x->v.empty() || c.i("noop_with_empty_axes", 0)) return false;
  if (c.has(1) && (!c.known(1) || c.known(1)->v.size() > 1)) return false;
  keel_dim all = x->v[0];
  for (size_t k = 1; k < x->v.size(); k++) {
    const MaybeDim next = f(c.e, all, x->v[k]);
    if (!next || !fits_dtype(*next, x->dtype)) return false;
    all = *next;
  }
  c.set(0, Sizes{x->dtype, c.i("keepdims", 1) ? Ints{1} : Ints{}, {all}});
  return true;
}

const std::map<Text, bool (*)(Call&)>& table() {
  static const auto* all = [] {
    auto* map = new std::map<Text, bool (*)(Call&)>{{"Shape", fold_shape},
                                                    {"Size", fold_size},
                                                    {"Cast", fold_cast},
                                                    {"Where", fold_where},
                                                    {"Range", fold_range},
                                                    {"ConstantOfShape", fold_constant_of_shape},
                                                    {"Neg", fold_neg},
                                                    {"Abs", fold_abs},
                                                    {"Not", fold_not},
                                                    {"Add", fold_binary<add>},
                                                    {"Sub", fold_binary<sub>},
                                                    {"Mul", fold_binary<mul>},
                                                    {"Div", fold_binary<div>},
                                                    {"Mod", fold_mod},
                                                    {"Max", fold_binary<max>},
                                                    {"Min", fold_binary<min>},
                                                    {"Sum", fold_binary<add>},
                                                    {"Equal", fold_binary<equal, true>},
                                                    {"Less", fold_binary<less, true>},
                                                    {"Greater", fold_binary<greater, true>},
                                                    {"LessOrEqual", fold_binary<not_greater, true>},
                                                    {"GreaterOrEqual", fold_binary<not_less, true>},
                                                    {"And", fold_binary<both, true>},
                                                    {"Or", fold_binary<either, true>},
                                                    {"Xor", fold_binary<differ, true>},
                                                    {"ReduceProd", fold_reduce<mul>},
                                                    {"ReduceSum", fold_reduce<add>},
                                                    {"ReduceMax", fold_reduce<max>},
                                                    {"ReduceMin", fold_reduce<min>}};
    for (const Mover& m : movers()) map->emplace(m.op, m.fold);
    return map;
  }();
  return *all;
}

// Forms before opset 7 with other attributes than the folds read.
bool old_form(Call& c) {
  if (c.opset >= 7) return false;
  const bool aligned = c.has_attribute("broadcast") && c.has_attribute("axis");
  const Sizes* x = aligned ? c.known(0) : nullptr;
  return (x && x->shape.size() > 1) || (c.opset < 6 && c.node.op == "Cast") ||
         (c.opset < 4 && (c.node.op == "Concat" || c.node.op == "Split"));
}

// Whether the fold would compute with a clipped number, whose sum or absolute value is another.
bool computes_clipped(Call& c) {
  if (c.node.op == "Shape" || c.node.op == "Size") return false;
  for (size_t i = 0; i < c.n_in(); i++)
    if (const Sizes* s = c.known(i); s && clipped(*s)) return true;
  return false;
}

bool moves(Text op) {
  const auto all = movers();
  return std::any_of(all.begin(), all.end(), [&](const Mover& m) { return m.op == op; });
}

}  // namespace

bool folds(Text op) {
  const auto numbers = number_folds();
  return table().count(op) != 0 ||
         std::any_of(numbers.begin(), numbers.end(), [&](const Mover& m) { return m.op == op; });
}

bool fold(Call& c) {
  if (old_form(c) || !c.node.domain.empty()) return false;
  const auto found = table().find(c.node.op);
  if (found != table().end() && !moves(c.node.op) && computes_clipped(c)) return false;
  if (found != table().end() && found->second(c)) return true;
  for (const Mover& m : number_folds())
    if (m.op == c.node.op) return m.fold(c);
  return false;
}

}  // namespace onnx_import
