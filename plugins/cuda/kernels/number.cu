// number.cu: elements that are made from their index: iota, dim, one_hot.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"

enum Kind { kIota, kNumber, kOneHot };  // ops/number.cc

DEVICE i64 index_of(const KeelArgs& args, i64 i) {
  return args.numbers[5] == 8 ? operand<const i64>(args, 1)[i] : (i64)operand<const i32>(args, 1)[i];
}

// Operands: result, index of one_hot. Numbers: count, kind, size of the axis, inner, value of kNumber, bytes of
// an index.
template <class S>
DEVICE void number(const KeelArgs& args) {
  const i64 kind = args.numbers[1], size = args.numbers[2], inner = args.numbers[3];
  for (i64 i = first_element(); i < args.numbers[0]; i += grid_size()) {
    const i64 row = i / inner, at = row % size;
    i64 value = kind == kIota ? at : args.numbers[4];
    if (kind == kOneHot) value = index_of(args, row / size * inner + i % inner) == at;
    operand<S>(args, 0)[i] = Number<S>::to(Cast<S>::of(value));
  }
}

#define DTYPE(S, name) \
  KERNEL(number_##name) { number<S>(args); }
#include "dtypes.inc"
