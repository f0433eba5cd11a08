// random.cc: operators that draw random numbers. Each node has a variable of the module, its key: a run reads
// it and adds 1, so each run draws other numbers, and a session that starts again draws the same ones. The
// attribute seed is the first key.
#include <bit>

#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

// The seed, a float or (of Dropout) an integer. Keys of nodes without one are far from each other.
uint64_t first_key(Call& c) {
  const Attribute* seed = c.attribute("seed");
  if (!seed) return (uint64_t{c.e.variables()} + 1) << 32;
  if (seed->type == kAttrInt) return static_cast<uint64_t>(seed->i);
  return std::bit_cast<uint32_t>(static_cast<float>(c.f("seed", 0)));
}

keel_value key_of(Call& c) {
  const keel_attr variable = c.e.variable("random." + c.name, first_key(c));
  const keel_value key = c.e.op("read", {}, Attrs().as("var", variable));
  c.e.ops("assign_add", {c.e.scalar(KEEL_U64, 1)}, Attrs().as("var", variable), 0);
  return key;
}

Term drawn(Call& c, const Dims& dims, keel_dt dtype, const char* kind = "uniform") {
  return {c.e,
          c.e.op("random", {key_of(c)}, Attrs().dims("dims", dims).dtype("dtype", dtype).word("kind", kind))};
}

// The attribute shape, or the dims of operand 0.
Dims dims_of(Call& c) {
  if (c.n_in() > 0) return c.dims(0);
  const Ints shape = c.ints("shape");
  for (int64_t d : shape)
    if (d < 0) c.invalid(cat("shape contains ", d, "; expected sizes"));
  return {shape.begin(), shape.end()};
}

// The attribute dtype, else the dtype of operand 0.
keel_dt dtype_of(Call& c) {
  const keel_dt otherwise = c.n_in() > 0 ? c.dtype(0) : keel_dt{KEEL_F32};
  return c.i("dtype", 0) ? c.type("dtype", otherwise) : otherwise;
}

keel_dt float_of(Call& c) {
  const keel_dt dtype = dtype_of(c);
  if (!is_float(dtype))
    c.unsupported(cat("random numbers of ", dtype_name(dtype), "; expected a float dtype"));
  return dtype;
}

void random_normal(Call& c) {
  c.set(0, (drawn(c, dims_of(c), float_of(c), "normal") * c.f("scale", 1) + c.f("mean", 0)).v);
}

void random_uniform(Call& c) {
  const double low = c.f("low", 0), high = c.f("high", 1);
  c.set(0, (drawn(c, dims_of(c), float_of(c)) * (high - low) + low).v);
}

// 1 with the probability that is the element of operand 0.
void bernoulli(Call& c) {
  const Term p(c, 0);
  c.set(0, (drawn(c, p.dims(), p.dtype()) < p).to(dtype_of(c)).v);
}

// The class with the greatest sum of its logarithmic probability and Gumbel noise.
void multinomial(Call& c) {
  const Term logits(c, 0);
  if (logits.rank() != 2)
    c.invalid(cat("its operand has ", logits.rank(), " dims; expected [batch, classes]"));
  const int64_t samples = c.i("sample_size", 1);
  if (samples < 1) c.invalid(cat("sample_size is ", samples, "; expected 1 or more"));
  const keel_dt to = c.type("dtype", KEEL_I32);
  if (to != KEEL_I32 && to != KEEL_I64)
    c.unsupported(cat("classes as ", dtype_name(to), "; expected i32 or i64"));
  const Term u = 1 - drawn(c, {logits.dim(0), samples, logits.dim(1)}, logits.dtype());  // in (0, 1]
  const Term noise = -(-u.op("log")).op("log");
  c.set(0, (noise + logits.unsqueeze(1)).op("arg_max", Attrs().i("axis", 2)).to(to).v);
}

void dropout_in_training(Call& c, const Term& ratio) {
  const Term x(c, 0);
  const Term kept = drawn(c, x.dims(), KEEL_F32).op("greater_equal", ratio.to(KEEL_F32));
  c.set(0, select(kept, x / (1 - ratio.to(x.dtype())), 0).v);
  if (c.wants(1)) c.set(1, kept.v);
}

void dropout(Call& c) {
  double ratio = c.f("ratio", 0.5);
  const bool known = !c.has(1) || stored_number(c, 1, &ratio);
  if (const Sizes* training = c.has(2) ? c.known(2) : nullptr) {
    if (training->v.size() != 1) c.invalid("training_mode has dims; expected a scalar");
    if (training->v[0] != 0 && (!known || ratio != 0))
      return dropout_in_training(c, known ? Term(c.e, c.e.scalar(KEEL_F32, ratio)) : Term(c, 1).reshape({}));
  }
  c.alias(0, 0);
  if (c.wants(1)) c.set(1, c.e.op("fill", {c.e.scalar(KEEL_BOOL, 1)}, Attrs().dims("dims", c.dims(0))));
}

constexpr const char* kNormal = "dtype mean scale seed shape";
constexpr const char* kUniform = "dtype high low seed shape";
constexpr Rule kRules[] = {
    {"RandomNormal", 1, random_normal, kNormal},
    {"RandomNormalLike", 1, random_normal, kNormal},
    {"RandomUniform", 1, random_uniform, kUniform},
    {"RandomUniformLike", 1, random_uniform, kUniform},
    {"Bernoulli", 15, bernoulli, "dtype seed"},
    {"Dropout", 12, dropout, "seed", bit(2)},
    {"Dropout", 7, dropout, "ratio"},
    {"Multinomial", 7, multinomial, "dtype sample_size seed"},
};

}  // namespace

Rules random_rules() { return kRules; }

}  // namespace onnx_import
