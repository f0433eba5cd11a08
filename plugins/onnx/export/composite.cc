// composite.cc: ops that Keel defines by a body and ONNX has, too. Others arrive as their bodies.
#include <algorithm>
#include <initializer_list>

#include "plugins/onnx/export/call.h"

namespace onnx_export {
namespace {

void along_axis(Call& c) { c.give(c.row->onnx, {c.in(0)}, NodeAttrs().i("axis", c.number("axis"))); }

void gelu(Call& c) {
  c.give("Gelu", {c.in(0)}, NodeAttrs().s("approximate", c.flag("tanh") ? "tanh" : "none"));
}

// The attribute is an f32.
void leaky_relu(Call& c) {
  const keel_dt t = c.dtype();
  const double alpha = c.real("alpha");
  if (t != KEEL_F64) return c.give("LeakyRelu", {c.in(0)}, NodeAttrs().f("alpha", alpha));
  const std::string x = c.in(0), right = c.add("GreaterOrEqual", {x, c.scalar(t, 0)});
  c.give("Where", {right, x, c.add("Mul", {x, c.scalar(t, alpha)})});
}

// LayerNormalization computes the mean in f32 at most.
void layer_norm(Call& c) {
  const Names in = {c.in(0), c.in(1), c.in(2)};
  if (c.dtype() != KEEL_F64)
    return c.give("LayerNormalization", in, NodeAttrs().i("axis", -1).f("epsilon", c.real("eps")));
  auto mean = [&](const std::string& x) {
    return c.add("ReduceMean", {x, c.ints({-1})}, NodeAttrs().i("keepdims", 1));
  };
  const std::string d = c.add("Sub", {in[0], mean(in[0])});
  const std::string v = c.add("Add", {mean(c.add("Mul", {d, d})), c.scalar(KEEL_F64, c.real("eps"))});
  const std::string scaled = c.add("Div", {d, c.add("Sqrt", {v})});
  c.give("Add", {c.add("Mul", {scaled, in[1]}), in[2]});
}

void batch_norm(Call& c) {
  c.give("BatchNormalization", {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)},
         NodeAttrs().f("epsilon", c.real("eps")));
}

void cumprod(Call& c) {
  c.scope.model().need(int64_t{26});
  running(c);
}

bool is_among(keel_dt dtype, std::initializer_list<keel_dt> all) {
  return std::ranges::find(all, dtype) != all.end();
}

// ONNX Runtime has NonZero and Unique for some dtypes; others are cast.
void nonzero(Call& c) {
  const bool taken = is_among(c.dtype(), {KEEL_BOOL, KEEL_U8, KEEL_I32, KEEL_I64, KEEL_F32});
  c.give("NonZero", {taken ? c.in(0) : c.cast(c.in(0), KEEL_BOOL)});
}

void unique(Call& c) {
  const bool taken = is_among(c.dtype(), {KEEL_I8, KEEL_I64, KEEL_U64, KEEL_F32, KEEL_F64});
  const std::string x = taken ? c.in(0) : c.cast(c.in(0), is_float(c.dtype()) ? KEEL_F32 : KEEL_I64);
  const Names out = c.scope.add_many("Unique", {x}, NodeAttrs().i("sorted", 1), 4);
  taken ? c.give(out[0]) : c.give_cast(out[0]);
  for (size_t i = 1; i < out.size(); i++) c.give(out[i]);
}

// "ab,bc->ac"; the labels may be any numbers.
std::string equation_of(Call& c) {
  Ints labels;  // of 'a', 'b' and so on
  const auto term = [&](const char* attribute) {
    std::string letters;
    for (const int64_t label : c.list(attribute)) {
      auto at = std::ranges::find(labels, label);
      if (at == labels.end()) at = labels.insert(at, label);
      letters += static_cast<char>('a' + (at - labels.begin()));
    }
    return letters;
  };
  const std::string x = term("x"), y = term("y");
  return cat(x, ",", y, "->", term("to"));
}

void einsum(Call& c) { c.give("Einsum", {c.in(0), c.in(1)}, NodeAttrs().s("equation", equation_of(c))); }

// ONNX Runtime has Einsum for these dtypes.
bool fits_einsum(const keel_host* host, const keel_node* node) {
  keel_tensor a;
  check(host->node_in(node, 0, &a));
  return is_among(dtype_of(a), {KEEL_F16, KEEL_F32, KEEL_F64, KEEL_I32, KEEL_I64});
}

constexpr Row kRows[] = {{"sigmoid", plain, "Sigmoid"},
                         {"softplus", plain, "Softplus"},
                         {"tan", plain, "Tan"},
                         {"asin", plain, "Asin"},
                         {"acos", plain, "Acos"},
                         {"atan", plain, "Atan"},
                         {"gelu", gelu},
                         {"leaky_relu", leaky_relu},
                         {"softmax", along_axis, "Softmax"},
                         {"log_softmax", along_axis, "LogSoftmax"},
                         {"layer_norm", layer_norm},
                         {"cumprod", cumprod, "CumProd"},
                         {"batch_norm", batch_norm},
                         {"einsum", einsum, nullptr, fits_einsum},
                         {"nonzero", nonzero},
                         {"unique", unique}};

}  // namespace

Rows composite_rows() { return kRows; }

}  // namespace onnx_export
