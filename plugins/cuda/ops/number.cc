// number.cc: ops that make elements from their index: iota, dim, one_hot, random.
#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

enum Kind : int64_t { kIota, kNumber, kOneHot };  // kernels/number.cu

void Encode(Op& op, Kind kind, int64_t size, int64_t inner, int64_t value, int64_t index_bytes) {
  const keel_tensor y = op.Out(0);
  const int64_t count = keel_count(&y);
  op.Add("number", "number_" + NameOf(keel::plugin::dtype_of(y)), Blocks(count), {op.Result(), 0},
         {count, kind, size, inner, value, index_bytes});
}
void Iota(Op& op) {
  const Lines lines(op.Out(0), op.Int("axis"));
  Encode(op, kIota, lines.size, lines.inner, 0, 0);
}
void Dim(Op& op) { Encode(op, kNumber, 1, 1, op.Int("of"), 0); }
void OneHot(Op& op) {
  const Lines lines(op.Out(0), op.Int("axis"));
  Encode(op, kOneHot, lines.size, lines.inner, 0, op.In(0).dtype.bits / 8);
}

// Bits of uniform numbers: the significand's.
int64_t UniformBits(keel_dt dtype) {
  return dtype == KEEL_F64 ? 53 : dtype == KEEL_F32 ? 24 : dtype == KEEL_F16 ? 11 : 8;
}
void Random(Op& op) {
  const keel_tensor y = op.Out(0);
  const keel_dt dtype = keel::plugin::dtype_of(y);
  const int64_t count = keel_count(&y);
  op.Add("random", "random_" + NameOf(dtype), Blocks(count), {0, op.Result()},
         {count, op.Text("kind") == "normal" ? 0 : UniformBits(dtype)});
}

}  // namespace

Impls NumberImpls() {
  return {NumbersRow<Iota>("iota", "iota"), NumbersRow<Dim>("dim", "number"),
          NumbersRow<OneHot>("one_hot", "one_hot"), NumbersRow<Random>("random", "Philox")};
}

}  // namespace keel_cuda
