// fold_numbers.cc: arithmetic on a few stored floats, as models compute trip counts and sizes from scales.
// The operators round as the devices do: each result once, to its dtype.
#include <cmath>

#include "plugins/onnx/import/fold.h"

namespace onnx_import {
namespace {

constexpr size_t kMostNumbers = 64;
constexpr double kExact = 1LL << 53;  // integers up to it are floats of 64 bits

struct Numbers {
  keel_dt dtype = KEEL_F32;
  Ints shape;
  std::vector<double> v;
};

// Operand i, of floats of 32 or 64 bits.
bool floats(Call& c, size_t i, Numbers* out) {
  const Data* d = c.has(i) ? c.e.data(c.value(i)) : nullptr;
  if (!d || (d->dtype != KEEL_F32 && d->dtype != KEEL_F64) || d->count() > static_cast<int64_t>(kMostNumbers))
    return false;
  out->dtype = d->dtype;
  out->shape = d->dims;
  out->v.resize(static_cast<size_t>(d->count()));
  for (size_t k = 0; k < out->v.size(); k++)
    if (!number_at(*d, static_cast<int64_t>(k), &out->v[k])) return false;
  return true;
}

// Any numbers that a cast reads.
bool numbers(Call& c, Numbers* out) {
  if (const Sizes* s = c.known(0)) {
    out->shape = s->shape;
    for (keel_dim d : s->v) {
      if (KEEL_DIM_IS_HANDLE(d) || std::fabs(static_cast<double>(d)) > kExact) return false;
      out->v.push_back(static_cast<double>(d));
    }
    return out->v.size() <= kMostNumbers;
  }
  const Data* d = c.has(0) ? c.e.data(c.value(0)) : nullptr;
  if (!d || !is_float(d->dtype) || d->count() > static_cast<int64_t>(kMostNumbers)) return false;
  out->shape = d->dims;
  out->v.resize(static_cast<size_t>(d->count()));
  for (size_t k = 0; k < out->v.size(); k++)
    if (!number_at(*d, static_cast<int64_t>(k), &out->v[k])) return false;
  return true;
}

bool set_numbers(Call& c, const Numbers& n) {
  auto value = std::make_shared<Value>();
  value->name = c.name;
  value->data = store(n.dtype, n.shape, n.v);
  c.set(0, std::move(value));
  return true;
}

// In double and then in float, these four round like float alone.
double add(double a, double b) { return a + b; }
double sub(double a, double b) { return a - b; }
double mul(double a, double b) { return a * b; }
double div(double a, double b) { return a / b; }

template <double (*f)(double, double)>
bool binary(Call& c) {
  Numbers a, b, out;
  if (c.opset < 7 || c.n_in() != 2 || !floats(c, 0, &a) || !floats(c, 1, &b) || a.dtype != b.dtype)
    return false;
  if (!broadcast_shape(a.shape, b.shape, &out.shape)) return false;
  const auto from_a = broadcast_sources(a.shape, out.shape), from_b = broadcast_sources(b.shape, out.shape);
  if (from_a.size() > kMostNumbers) return false;
  out.dtype = a.dtype;
  for (size_t k = 0; k < from_a.size(); k++) out.v.push_back(f(a.v[from_a[k]], b.v[from_b[k]]));
  return set_numbers(c, out);
}

double neg(double x) { return -x; }
double abs(double x) { return std::fabs(x); }
double ceil(double x) { return std::ceil(x); }
double floor(double x) { return std::floor(x); }
double relu(double x) { return x < 0 ? 0 : x; }

template <double (*f)(double)>
bool unary(Call& c) {
  Numbers x;
  if (c.opset < 6 || !floats(c, 0, &x)) return false;
  for (double& v : x.v) v = f(v);
  return set_numbers(c, x);
}

// To floats; to bool, of floats: fold.cc casts everything else.
bool cast(Call& c) {
  const int64_t to = c.i("to", 0);
  Numbers x;
  if ((to != kFloat && to != kDouble && to != kBool) || !numbers(c, &x)) return false;
  x.dtype = to == kFloat ? KEEL_F32 : KEEL_F64;
  if (to != kBool) return set_numbers(c, x);
  Sizes out = {KEEL_BOOL, x.shape, {}};
  for (double v : x.v) out.v.push_back(v != 0);
  c.set(0, std::move(out));
  return true;
}

constexpr Mover kNumbers[] = {
    {"Add", binary<add>},  {"Sub", binary<sub>}, {"Mul", binary<mul>},  {"Div", binary<div>},
    {"Neg", unary<neg>},   {"Abs", unary<abs>},  {"Ceil", unary<ceil>}, {"Floor", unary<floor>},
    {"Relu", unary<relu>}, {"Cast", cast},
};

}  // namespace

std::span<const Mover> number_folds() { return kNumbers; }

}  // namespace onnx_import
