// norm.cc: layer norm and rms norm over the last axis, with a following scale and bias.
//
// d * rsqrt(v + eps) is matched first, with scale 1 and bias 0: d is x - mean(x) and v the mean of d * d
// (layer norm), or d is x and v the mean of x * x (rms norm). Rules for mul and add then replace scale and
// bias.
#include <cmath>

#include "plugins/passes/compose/pattern.h"
#include "plugins/passes/edit/numbers.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

// A constant of n equal numbers, 0 or 1.
keel_value filled(Edit& e, keel_dt dtype, keel_dim n, bool one) {
  std::vector<char> bytes(static_cast<size_t>(n) * width_of(dtype), 0);
  const auto* number = static_cast<const char*>(e.type(scalar(e, dtype, 1)).data);
  for (size_t i = 0; one && i < bytes.size(); i++) bytes[i] = number[i % width_of(dtype)];
  return e.constant(dtype, {n}, bytes.data());
}

// v as a vector of a type's last dim, if its other dims are 1.
keel_value vector(Edit& e, keel_value v, const Type& of) {
  const Type t = e.type(v);
  const keel_dim n = of.dims.back();
  if (t.rank() == 0 || t.rank() > of.rank() || !e.same(t.dims.back(), n)) return KEEL_NO_VALUE;
  for (size_t i = 0; i + 1 < t.rank(); i++)
    if (t.dims[i] != 1) return KEEL_NO_VALUE;
  if (t.rank() == 1) return v;
  if (t.data != nullptr) return e.constant(t.dtype, {n}, t.data);
  return e.add("reshape", {v}, Attrs().dims("to", {n}));
}

// x of the mean of x along its last axis.
keel_value mean(Pattern& p, keel_value v) {
  int64_t axis = 0;
  const keel_value x = p.reduced(v, "reduce_mean", &axis);
  const bool last = x != KEEL_NO_VALUE && axis + 1 == static_cast<int64_t>(p.edit().type(x).rank());
  return last ? x : KEEL_NO_VALUE;
}

// x of x - mean(x)
keel_value centred(Pattern& p, keel_value v) {
  const NodeId n = p.made_by(v, "sub");
  const keel_value x = n == kNone ? KEEL_NO_VALUE : p.edit().in(n, 0);
  return x != KEEL_NO_VALUE && mean(p, p.edit().in(n, 1)) == x ? x : KEEL_NO_VALUE;
}

keel_value mean_square(Pattern& p, keel_value v) {
  const keel_value square = mean(p, v);
  return square == KEEL_NO_VALUE ? square : p.squared(square);
}

// The mean of (x - mean(x))^2, or mean(x^2) - mean(x)^2, possibly clamped at 0.
bool is_variance(Pattern& p, keel_value v, keel_value x) {
  Pattern plain = p;
  if (const keel_value d = mean_square(plain, v); d != KEEL_NO_VALUE && centred(plain, d) == x) {
    p = plain;
    return true;
  }
  keel_value least = KEEL_NO_VALUE;
  p.either(p.edit().made_by(v, "maximum"), [&](Pattern& q, keel_value a, keel_value zero) {
    if (!is_all(q.edit(), zero, 0)) return false;
    q.made_by(v, "maximum");
    least = a;
    return true;
  });
  const NodeId n = p.made_by(least == KEEL_NO_VALUE ? v : least, "sub");
  if (n == kNone || mean_square(p, p.edit().in(n, 0)) != x) return false;
  const keel_value middle = p.squared(p.edit().in(n, 1));
  return middle != KEEL_NO_VALUE && mean(p, middle) == x;
}

// w of w + eps
keel_value without_eps(Pattern& p, keel_value v, double* eps) {
  keel_value found = KEEL_NO_VALUE;
  const NodeId n = p.made_by(v, "add");
  p.either(n, [&](Pattern& q, keel_value w, keel_value c) {
    const std::optional<double> number = uniform(q.edit(), c);
    if (!number || !std::isfinite(*number)) return false;
    *eps = *number;
    found = w;
    return true;
  });
  return found;
}

// w of 1 / sqrt(w)
keel_value inverse_root(Pattern& p, keel_value v) {
  if (const keel_value w = p.power(v, "rsqrt", -0.5); w != KEEL_NO_VALUE) return w;
  const keel_value root = p.inverted(v);
  return root == KEEL_NO_VALUE ? root : p.power(root, "sqrt", 0.5);
}

struct NormMatch {  // scale and bias: KEEL_NO_VALUE if absent
  keel_value x = KEEL_NO_VALUE, scale = KEEL_NO_VALUE, bias = KEEL_NO_VALUE;
  double eps = 0;
  bool centred = true;
};

bool become_norm(Pattern& p, const NormMatch& f) {
  Edit& e = p.edit();
  const Type type = e.type(f.x);
  if (!p.closed() || type.rank() == 0 || !is_number(type.dims.back())) return false;
  const keel_dim n = type.dims.back();
  e.at(p.root());
  Ids in = {f.x};
  in.push_back(f.scale == KEEL_NO_VALUE ? filled(e, type.dtype, n, true) : vector(e, f.scale, type));
  if (f.centred)
    in.push_back(f.bias == KEEL_NO_VALUE ? filled(e, type.dtype, n, false) : vector(e, f.bias, type));
  if (in[1] == KEEL_NO_VALUE || in.back() == KEEL_NO_VALUE) return false;
  return p.become(f.centred ? "layer_norm" : "rms_norm", in, Attrs().f("eps", f.eps));
}

// d / sqrt(w), where w is a variance or mean square plus eps.
bool to_norm(const Pattern& root, keel_value d, keel_value w, keel_value scale) {
  NormMatch f;
  f.scale = scale;
  Pattern p = root, q = root;
  if (const keel_value v = without_eps(p, w, &f.eps); v != KEEL_NO_VALUE) {
    f.x = centred(p, d);
    if (f.x != KEEL_NO_VALUE && is_variance(p, v, f.x) && become_norm(p, f)) return true;
    f.x = d;
    f.centred = false;
    return mean_square(q, without_eps(q, w, &f.eps)) == d && become_norm(q, f);
  }
  return false;
}

bool quotient_to_norm(Edit& e, NodeId n) {
  Pattern p(e, n);
  const keel_value w = p.power(e.in(n, 1), "sqrt", 0.5);
  return w != KEEL_NO_VALUE && to_norm(p, e.in(n, 0), w, KEEL_NO_VALUE);
}

// d * rsqrt(w), d * (rsqrt(w) * scale)
bool product_to_norm(Edit& e, NodeId n) {
  return Pattern(e, n).either(n, [](Pattern& p, keel_value d, keel_value r) {
    Pattern bare = p;
    if (const keel_value w = inverse_root(bare, r); w != KEEL_NO_VALUE)
      return to_norm(bare, d, w, KEEL_NO_VALUE);
    const NodeId inner = p.made_by(r, "mul");
    return p.either(inner, [&](Pattern& q, keel_value inverse, keel_value scale) {
      const keel_value w = inverse_root(q, inverse);
      return w != KEEL_NO_VALUE && to_norm(q, d, w, scale);
    });
  });
}

// x * k + (bias - mean(x) * k) with k = rsqrt(w) or rsqrt(w) * scale
bool is_shifted(Pattern& p, keel_value product, keel_value shift) {
  const NodeId minus = p.made_by(shift, "sub"), times = p.made_by(product, "mul");
  if (minus == kNone || times == kNone) return false;
  const NodeId inner = p.made_by(p.edit().in(minus, 1), "mul");
  return p.either(times, [&](Pattern& q, keel_value x, keel_value k) {
    const auto is_middle = [&](Pattern& r, keel_value middle, keel_value other) {
      return other == k && mean(r, middle) == x;
    };
    NormMatch f;
    f.x = x;
    f.bias = q.edit().in(minus, 0);
    if (!q.either(inner, is_middle)) return false;
    const auto finish = [&](Pattern& r, keel_value inverse, keel_value scale) {
      const keel_value w = inverse_root(r, inverse), v = w == KEEL_NO_VALUE ? w : without_eps(r, w, &f.eps);
      f.scale = scale;
      return v != KEEL_NO_VALUE && is_variance(r, v, x) && become_norm(r, f);
    };
    Pattern bare = q;
    return finish(bare, k, KEEL_NO_VALUE) || q.either(q.made_by(k, "mul"), finish);
  });
}
bool sum_to_norm(Edit& e, NodeId n) { return Pattern(e, n).either(n, is_shifted); }

// A factor of a norm of scale 1 becomes its scale.
bool scale_into_norm(Edit& e, NodeId n) {
  return Pattern(e, n).either(n, [](Pattern& p, keel_value y, keel_value scale) {
    NormMatch f;
    f.scale = scale;
    NodeId norm = p.made_by(y, "rms_norm");
    f.centred = norm == kNone;
    if (f.centred) norm = p.made_by(y, "layer_norm");
    if (norm == kNone || !is_all(p.edit(), p.edit().in(norm, 1), 1)) return false;
    if (f.centred && !is_all(p.edit(), p.edit().in(norm, 2), 0)) return false;
    f.x = p.edit().in(norm, 0);
    f.eps = p.edit().number(norm, "eps");
    return become_norm(p, f);
  });
}

// A summand of a layer norm of bias 0 becomes its bias.
bool bias_into_norm(Edit& e, NodeId n) {
  return Pattern(e, n).either(n, [](Pattern& p, keel_value y, keel_value bias) {
    const NodeId norm = p.made_by(y, "layer_norm");
    if (norm == kNone || !is_all(p.edit(), p.edit().in(norm, 2), 0)) return false;
    return become_norm(p, {p.edit().in(norm, 0), p.edit().in(norm, 1), bias, p.edit().number(norm, "eps")});
  });
}

constexpr Rule kRules[] = {{"div", quotient_to_norm},
                           {"mul", product_to_norm},
                           {"mul", scale_into_norm},
                           {"add", sum_to_norm},
                           {"add", bias_into_norm}};

}  // namespace

Rules norm_rules() { return kRules; }

}  // namespace keel_passes
