// move.cu: ops that move elements, by their width. KEEL_WIDTH is a list of widths, for the instances.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"

// Numbers: count, rank, start in x, start in y, sizes, strides of x, strides of y. ops/copy.cc
template <class T>
DEVICE void copy(const KeelArgs& args) {
  const T* x = operand<const T>(args, 0);
  T* y = operand<T>(args, 1);
  for (i64 i = first_element(); i < args.numbers[0]; i += grid_size()) {
    i64 at[2];
    find_offsets<2>(args.numbers + 4, (int)args.numbers[1], i, at);
    y[args.numbers[3] + at[1]] = x[args.numbers[2] + at[0]];
  }
}

// Numbers: count, rows, columns, diagonal, whether the upper triangle stays.
template <class T>
DEVICE void triangle(const KeelArgs& args) {
  const T* x = operand<const T>(args, 0);
  T* y = operand<T>(args, 1);
  const i64 rows = args.numbers[1], columns = args.numbers[2];
  for (i64 i = first_element(); i < args.numbers[0]; i += grid_size()) {
    const i64 diagonal = i % columns - i / columns % rows;
    const bool stays = args.numbers[4] ? diagonal >= args.numbers[3] : diagonal <= args.numbers[3];
    y[i] = stays ? x[i] : (T)0;
  }
}

DEVICE i64 index_at(const KeelArgs& args, i64 bytes, i64 i) {
  return bytes == 8 ? operand<const i64>(args, 1)[i] : (i64)operand<const i32>(args, 1)[i];
}
DEVICE bool is_out(const KeelArgs& args, i64 index, i64 bound) {
  if ((u64)index < (u64)bound) return false;
  store_fault(args, index, bound > 0xffffffff ? 0 : (u32)bound);
  return true;
}

// Operands x, index; result. Numbers: count, bytes of an index, size of the axis, number of indices, inner.
template <class T>
DEVICE void gather(const KeelArgs& args) {
  const i64 size = args.numbers[2], picked = args.numbers[3], inner = args.numbers[4];
  for (i64 j = first_element(); j < args.numbers[0]; j += grid_size()) {
    const i64 row = j / inner, index = index_at(args, args.numbers[1], row % picked);
    if (is_out(args, index, size)) continue;
    operand<T>(args, 2)[j] = operand<const T>(args, 0)[(row / picked * size + index) * inner + j % inner];
  }
}

// Numbers: count, bytes of an index, rank, axis, sizes of the index, bounds of x, strides of x.
template <class T>
DEVICE void gather_elements(const KeelArgs& args) {
  const i64 rank = args.numbers[2], *sizes = args.numbers + 4;
  for (i64 j = first_element(); j < args.numbers[0]; j += grid_size()) {
    i64 rest = j, at = 0;
    bool found = true;
    for (i64 d = rank - 1; d >= 0 && found; d--) {
      i64 index = rest % sizes[d];
      rest /= sizes[d];
      if (d == args.numbers[3]) index = index_at(args, args.numbers[1], j);
      found = !is_out(args, index, sizes[rank + d]);
      at += index * sizes[2 * rank + d];
    }
    if (found) operand<T>(args, 2)[j] = operand<const T>(args, 0)[at];
  }
}

// Numbers: count, bytes of an index, indices of a row, rows of a batch, elements of a slice, of a batch of x,
// bounds, strides.
template <class T>
DEVICE void gather_nd(const KeelArgs& args) {
  const i64 k = args.numbers[2], rows = args.numbers[3], slice = args.numbers[4];
  for (i64 j = first_element(); j < args.numbers[0]; j += grid_size()) {
    const i64 row = j / slice;
    i64 at = row / rows * args.numbers[5] + j % slice;
    bool found = true;
    for (i64 d = 0; d < k && found; d++) {
      const i64 index = index_at(args, args.numbers[1], row * k + d);
      found = !is_out(args, index, args.numbers[6 + d]);
      at += index * args.numbers[6 + k + d];
    }
    if (found) operand<T>(args, 2)[j] = operand<const T>(args, 0)[at];
  }
}

#define WIDTH(T, name)                                            \
  KERNEL(copy_##name) { copy<T>(args); }                          \
  KERNEL(triangle_##name) { triangle<T>(args); }                  \
  KERNEL(gather_##name) { gather<T>(args); }                      \
  KERNEL(gather_elements_##name) { gather_elements<T>(args); }    \
  KERNEL(gather_nd_##name) { gather_nd<T>(args); }
WIDTH(u8, b8)
WIDTH(u16, b16)
WIDTH(u32, b32)
WIDTH(u64, b64)
