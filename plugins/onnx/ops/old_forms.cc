// old_forms.cc: forms of opsets 1 to 6 that have no newer equivalent with the same operands: broadcasting by
// the attributes `broadcast` and `axis`, attributes in place of operands, dtypes by name.
#include <algorithm>
#include <array>

#include "plugins/onnx/import/named.h"
#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

// With `broadcast`, operand 1 has a run of the dims of operand 0, from `axis` on; by default the last ones.
// Without, the dims are equal.
Term aligned(Call& c) {
  const Term b(c, 1);
  const Dims whole = c.dims(0), own = b.dims();
  if (!c.i("broadcast", 0)) {
    bool same = whole.size() == own.size();
    for (size_t k = 0; same && k < own.size(); k++) same = c.e.may_be(whole[k], own[k]);
    if (!same) c.invalid("the dims of its operands differ; expected equal ones or the attribute broadcast");
    return b;
  }
  const auto rank = static_cast<int64_t>(whole.size()), n = static_cast<int64_t>(own.size());
  const int64_t at = c.has_attribute("axis") && n > 0 ? c.axis(c.i("axis", 0), rank) : rank - n;
  if (at < 0 || at + n > rank)
    c.invalid(cat("operand 1 has ", n, " dims from axis ", at, " on, but operand 0 has ", rank, " dims"));
  if (at + n == rank) return b;
  Dims to = own;
  to.resize(static_cast<size_t>(rank - at), 1);
  return b.reshape(to);
}

template <OpName op>
void with_axis(Call& c) {
  c.done(op.text, {c.in(0), aligned(c).v});
}

// The slope is one number or one per channel.
void prelu(Call& c) {
  const Term x(c, 0);
  Term slope(c, 1);
  if (slope.rank() == 1 && slope.dim(0) == 1) {
    slope = slope.reshape({});
  } else if (slope.rank() == 1 && x.rank() > 2) {
    Dims to(x.rank() - 1, 1);
    to[0] = slope.dim(0);
    slope = slope.reshape(to);
  }
  c.set(0, select(x < 0, x * slope, x).v);
}

void reshape(Call& c) {
  const Dims d = c.dims(0);
  if (!c.has_attribute("shape")) c.invalid("attribute shape is missing");
  Ints shape = c.ints("shape");
  Dims to(shape.begin(), shape.end());
  for (size_t k = 0; k < to.size(); k++) {
    if (to[k] < -1) c.invalid(cat("shape has ", to[k], " at index ", k));
    if (to[k] != 0) continue;
    if (k >= d.size())
      c.invalid(cat("shape has a 0 at index ", k, ", but the operand has ", d.size(), " dims"));
    to[k] = d[k];
  }
  c.done("reshape", {c.in(0)}, Attrs().dims("to", to));
}

// Names of ONNX's element types, at their numbers.
constexpr std::array<const char*, 14> kTypes = {"",        "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                                "INT16",   "INT32",  "INT64",  "STRING", "BOOL",
                                                "FLOAT16", "DOUBLE", "UINT32", "UINT64"};
void cast(Call& c) {
  const std::string to = c.s("to", "");
  const auto at = std::find(kTypes.begin(), kTypes.end(), to);
  if (at == kTypes.end() || to.empty())
    c.invalid(cat("attribute to is '", to, "'; expected the name of a dtype such as FLOAT or INT64"));
  c.done("cast", {c.in(0)}, Attrs().dtype("to", dtype_of(at - kTypes.begin(), c.title())));
}

void concat_along(Call& c) {
  if (c.n_in() == 1) return c.alias(0, 0);
  c.done("concat", c.all(), Attrs().i("axis", c.axis(c.i("axis", 1), c.rank(0))));
}

void split(Call& c) {
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(0));
  const size_t n = c.node.outputs.size();
  Dims sizes = c.has(1) ? c.list(1) : Dims(c.ints("split"));
  for (keel_dim size : sizes)
    if (!KEEL_DIM_IS_HANDLE(size) && size < 0) c.invalid(cat("a size is ", size));
  const keel_dim all = c.dims(0)[static_cast<size_t>(axis)];
  if (sizes.empty()) sizes.assign(n, c.e.div(all, static_cast<int64_t>(n)));
  if (sizes.size() != n) c.invalid(cat("there are ", sizes.size(), " sizes for ", n, " results"));
  const Ids parts = c.e.ops("split", {c.in(0)}, Attrs().dims("sizes", sizes).i("axis", axis),
                            static_cast<uint32_t>(n), c.name);
  for (size_t k = 0; k < n; k++) c.set(k, parts[k]);
}

// Repeats along one axis; number and axis are operands, in the model as any numbers.
void tile(Call& c) {
  double times = 0, axis = 0;
  if (!stored_number(c, 1, &times) || !stored_number(c, 2, &axis))
    c.unsupported("tiles and axis must be numbers known at import");
  if (!(times >= 0 && times <= 1e9 && axis >= -8 && axis <= 8))
    c.invalid(cat("tiles is ", times, " and axis ", axis));
  Dims all(c.dims(0).size(), 1);
  all[static_cast<size_t>(c.axis(static_cast<int64_t>(axis), c.rank(0)))] = static_cast<int64_t>(times);
  c.done("tile", {c.in(0)}, Attrs().dims("times", all));
}

void expect_inference(Call& c) {
  c.expect_outputs(1);
  if (!c.i("is_test", 0)) c.unsupported("training: is_test is 0, its default; expected 1");
}

void batch_norm(Call& c) {
  expect_inference(c);
  if (c.i("spatial", 1) != 1) c.unsupported("spatial 0 (statistics for every element) is not supported");
  const auto statistic = [&](size_t i) { return Term(c, i).to(c.dtype(0)).v; };
  c.done("batch_norm", {c.in(0), statistic(1), statistic(2), statistic(3), statistic(4)},
         Attrs().f("eps", c.f("epsilon", 1e-5)));
}

void dropout(Call& c) {
  if (c.f("ratio", 0.5) != 0) expect_inference(c);
  c.expect_outputs(1);
  c.alias(0, 0);
}

constexpr const char* kAxis = "axis broadcast";
constexpr Rule kRules[] = {
    {"Add", 1, with_axis<"add">, kAxis},
    {"Sub", 1, with_axis<"sub">, kAxis},
    {"Mul", 1, with_axis<"mul">, kAxis},
    {"Div", 1, with_axis<"div">, kAxis},
    {"Pow", 1, with_axis<"pow">, kAxis},
    {"And", 1, with_axis<"logical_and">, kAxis},
    {"Or", 1, with_axis<"logical_or">, kAxis},
    {"Xor", 1, with_axis<"logical_xor">, kAxis},
    {"Equal", 1, with_axis<"equal">, kAxis},
    {"Less", 1, with_axis<"less">, kAxis},
    {"Greater", 1, with_axis<"greater">, kAxis},
    {"PRelu", 1, prelu},
    {"Reshape", 1, reshape, "shape"},
    {"Cast", 1, cast, "to"},
    {"Concat", 1, concat_along, "axis"},
    {"Split", 1, split, "axis split", bit(1)},
    {"Tile", 1, tile},
    {"BatchNormalization", 1, batch_norm, "epsilon is_test momentum spatial"},
    {"Dropout", 1, dropout, "is_test ratio"},
};

}  // namespace

Rules old_rules() { return kRules; }

}  // namespace onnx_import
