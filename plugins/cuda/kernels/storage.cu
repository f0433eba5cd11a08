// storage.cu: cast from and to storage dtypes by the tables of sdk/plugin/storage_table.h. A thread makes a number, or
// a byte of codes.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"

// from_bits, to_bits: of a code; 0: that side has numbers. table: the address of the results by code, or of the keys of
// `steps` steps and then their codes.
struct Numbers {
  i64 elements, from_bits, to_bits, wraps, is_float, sign, all, steps, table;
};
DEVICE const Numbers& numbers_of(const KeelArgs& args) { return *(const Numbers*)args.numbers; }

DEVICE u64 bits_of(f32 x) { return __float_as_uint(x); }
DEVICE u64 bits_of(f64 x) { return (u64)__double_as_longlong(x); }
template <class C>
DEVICE u64 bits_of(C x) {
  return (u64)x;
}
template <class C>
struct OfBits {
  static DEVICE C number(u64 bits) { return (C)bits; }
};
template <>
struct OfBits<f32> {
  static DEVICE f32 number(u64 bits) { return __uint_as_float((u32)bits); }
};
template <>
struct OfBits<f64> {
  static DEVICE f64 number(u64 bits) { return __longlong_as_double((i64)bits); }
};

DEVICE u64 key_of(const Numbers& n, u64 bits) {
  bits &= (u64)n.all;
  if (!n.is_float) return bits ^ (u64)n.sign;
  return bits & (u64)n.sign ? bits ^ (u64)n.all : bits + (u64)n.sign;
}

// Operands x, result.
DEVICE u64 from_code(const KeelArgs& args, i64 i) {
  const Numbers& n = numbers_of(args);
  const i64 in_a_byte = 8 / n.from_bits;
  const u32 byte = operand<const u8>(args, 0)[i / in_a_byte];
  return ((const u64*)n.table)[byte >> i % in_a_byte * n.from_bits & ((1u << n.from_bits) - 1)];
}
template <class S>
DEVICE u64 code_of_number(const KeelArgs& args, i64 i) {
  const Numbers& n = numbers_of(args);
  const u64 bits = bits_of(Number<S>::from(operand<const S>(args, 0)[i]));
  if (n.wraps) return bits;
  const u64 *keys = (const u64*)n.table, key = key_of(n, bits);
  i64 low = 0, high = n.steps;
  while (high - low > 1) {
    const i64 middle = (low + high) / 2;
    (keys[middle] <= key ? low : high) = middle;
  }
  return keys[n.steps + low];
}
template <class S>
DEVICE u8 made_byte(const KeelArgs& args, i64 at) {
  const Numbers& n = numbers_of(args);
  const i64 in_a_byte = 8 / n.to_bits, first = at * in_a_byte;
  u32 made = 0;
  for (i64 k = 0; k < in_a_byte && first + k < n.elements; k++) {
    const u64 code = n.from_bits ? from_code(args, first + k) : code_of_number<S>(args, first + k);
    made |= ((u32)code & ((1u << n.to_bits) - 1)) << k * n.to_bits;
  }
  return (u8)made;
}

// S: the dtype of the side with numbers; any if both have codes.
template <class S>
DEVICE void storage(const KeelArgs& args) {
  const Numbers& n = numbers_of(args);
  const i64 count = n.to_bits ? (n.elements * n.to_bits + 7) / 8 : n.elements;
  for (i64 i = first_element(); i < count; i += grid_size())
    if (n.to_bits)
      operand<u8>(args, 1)[i] = made_byte<S>(args, i);
    else
      operand<S>(args, 1)[i] = Number<S>::to(OfBits<Compute<S>>::number(from_code(args, i)));
}

#define DTYPE(S, name) \
  KERNEL(storage_##name) { storage<S>(args); }
#include "dtypes.inc"
