// number.cc: ops that make elements from their index: iota, dim, one_hot.
#include "shader_op.h"

namespace vulkan {
namespace {

enum Kind : uint32_t { kIota, kNumber, kOneHot };  // shaders/number.comp

void Make(Op& op, Kind kind, uint64_t value, uint32_t size, uint32_t inner, uint32_t index_bytes) {
  const keel_tensor y = op.Out(0);
  const struct {
    uint64_t value;
    uint32_t count, size, inner;
  } numbers = {value, Count32(y), size, inner};
  op.work.Set(numbers);
  op.work.Threads(numbers.count);
  op.work.pipeline = op.Numbers("number", y, {kind, index_bytes});
}
void Iota(Op& op) {
  const Lines lines(op.Out(0), op.Int("axis"));
  Make(op, kIota, 0, lines.size, lines.inner, 8);
}
void Dim(Op& op) {
  const keel_tensor y = op.Out(0);
  const int64_t of = op.Int("of");
  Make(op, kNumber, IsFloat(y) ? BitsOf(y, static_cast<double>(of)) : static_cast<uint64_t>(of), 1, 1, 8);
}
void OneHot(Op& op) {
  const Lines lines(op.Out(0), op.Int("axis"));
  Make(op, kOneHot, 0, lines.size, lines.inner, op.In(0).dtype.bits / 8u);
}

}  // namespace

Impls NumberImpls() {
  return {NumbersRow<Iota>("iota", nullptr, "iota"), NumbersRow<Dim>("dim", nullptr, "number"),
          NumbersRow<OneHot>("one_hot", nullptr, "one_hot")};
}

}  // namespace vulkan
