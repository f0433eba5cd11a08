// copy.cc: ops that move elements: a strided copy from the operand to the result, or several.
#include "op.h"

namespace keel_cuda {
namespace {

struct Copies {
  int64_t count = 1, x_start = 0, y_start = 0;
  std::vector<int64_t> sizes, of_x, of_y;

  // Appends a dim, merged into the last one if a step of that passes over all of this one.
  void Add(int64_t size, int64_t x, int64_t y) {
    count *= size;
    if (size == 1) return;
    if (!sizes.empty() && of_x.back() == x * size && of_y.back() == y * size) {
      sizes.back() *= size, of_x.back() = x, of_y.back() = y;
      return;
    }
    sizes.push_back(size), of_x.push_back(x), of_y.push_back(y);
  }
  std::vector<int64_t> Numbers() const {
    std::vector<int64_t> numbers = {count, static_cast<int64_t>(sizes.size()), x_start, y_start};
    for (const auto* each : {&sizes, &of_x, &of_y}) numbers.insert(numbers.end(), each->begin(), each->end());
    return numbers;
  }
};

void Encode(Op& op, uint32_t from, uint32_t to, const keel_tensor& like, const Copies& copies) {
  op.Add("move", "copy_" + Width(like), Blocks(copies.count), {from, to}, copies.Numbers());
}
// Fills the result's dims; strides of the operand by dim of the result.
void EncodeView(Op& op, int64_t start, const int64_t* strides) {
  const keel_tensor y = op.Out(0);
  int64_t of_y[KEEL_MAX_RANK];
  row_major(y, of_y);
  Copies copies;
  copies.x_start = start;
  for (int i = 0; i < y.ndim; i++) copies.Add(y.shape[i], strides[i], of_y[i]);
  Encode(op, 0, op.Result(), y, copies);
}

void Whole(Op& op) {
  int64_t strides[KEEL_MAX_RANK];
  row_major(op.Out(0), strides);
  op.work.copies = true;
  EncodeView(op, 0, strides);
}
void Fill(Op& op) {
  const int64_t strides[KEEL_MAX_RANK] = {};
  EncodeView(op, 0, strides);
}

void Transpose(Op& op) {
  const auto perm = op.List("perm");
  int64_t of_x[KEEL_MAX_RANK], strides[KEEL_MAX_RANK] = {};
  row_major(op.In(0), of_x);
  for (size_t i = 0; i < perm.size(); i++) strides[i] = of_x[perm[i]];
  EncodeView(op, 0, strides);
}

void Broadcast(Op& op) {
  const keel_tensor x = op.In(0), y = op.Out(0);
  int64_t of_x[KEEL_MAX_RANK], strides[KEEL_MAX_RANK] = {};
  row_major(x, of_x);
  for (int i = 0; i < x.ndim; i++)
    if (x.shape[i] != 1) strides[y.ndim - x.ndim + i] = of_x[i];
  EncodeView(op, 0, strides);
}

void Slice(Op& op) {
  const auto start = op.List("start"), step = op.List("step");
  int64_t of_x[KEEL_MAX_RANK], strides[KEEL_MAX_RANK] = {}, first = 0;
  row_major(op.In(0), of_x);
  for (size_t i = 0; i < start.size(); i++) {
    first += start[i] * of_x[i];
    strides[i] = step[i] * of_x[i];
  }
  EncodeView(op, first, strides);
}

void Reverse(Op& op) {
  const keel_tensor x = op.In(0);
  int64_t strides[KEEL_MAX_RANK], first = 0;
  row_major(x, strides);
  for (int64_t axis : op.List("axes")) {
    first += (x.shape[axis] - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  EncodeView(op, first, strides);
}

// Each dim becomes two: how often, and the operand's.
void Tile(Op& op) {
  const keel_tensor x = op.In(0), y = op.Out(0);
  int64_t of_x[KEEL_MAX_RANK], of_y[KEEL_MAX_RANK];
  row_major(x, of_x), row_major(y, of_y);
  Copies copies;
  for (int i = 0; i < x.ndim; i++) {
    copies.Add(x.shape[i] ? y.shape[i] / x.shape[i] : 0, 0, of_y[i] * x.shape[i]);
    copies.Add(x.shape[i], of_x[i], of_y[i]);
  }
  Encode(op, 0, op.Result(), y, copies);
}

void Pad(Op& op) {
  const keel_tensor x = op.In(0), y = op.Out(0);
  const auto lo = op.List("lo"), gap = op.List("gap");
  int64_t of_x[KEEL_MAX_RANK], of_y[KEEL_MAX_RANK];
  row_major(x, of_x), row_major(y, of_y);
  Copies fill, copies;
  fill.Add(keel_count(&y), 0, 1);
  for (int i = 0; i < y.ndim; i++) {
    const size_t d = static_cast<size_t>(i);
    copies.y_start += lo[d] * of_y[i];
    copies.Add(x.shape[i], of_x[i], of_y[i] * (gap[d] + 1));
  }
  Encode(op, 1, op.Result(), y, fill);
  Encode(op, 0, op.Result(), y, copies);
}

void Triangle(Op& op) {
  const keel_tensor y = op.Out(0);
  const int64_t count = keel_count(&y);
  op.Add("move", "triangle_" + Width(y), Blocks(count), {0, op.Result()},
         {count, dim_from_end(y, 2), dim_from_end(y, 1), op.Int("k"), op.Int("upper") != 0});
}

// Piece i of the whole is `outer` rows; it begins at element `start` of the whole's first row.
void Piece(Op& op, uint32_t from, uint32_t to, const keel_tensor& whole, const keel_tensor& piece, bool split,
           int64_t* start) {
  const int64_t axis = op.Int("axis");
  const Lines all(whole, axis), part(piece, axis);
  const int64_t wide = all.size * all.inner, narrow = part.size * part.inner;
  Copies copies;
  (split ? copies.x_start : copies.y_start) = *start;
  copies.Add(all.outer, split ? wide : narrow, split ? narrow : wide);
  copies.Add(narrow, 1, 1);
  *start += narrow;
  Encode(op, from, to, whole, copies);
}
void Concat(Op& op) {
  const keel_tensor whole = op.Out(0);
  int64_t start = 0;
  for (uint32_t i = 0; i < op.n_in && !op.rc; i++) Piece(op, i, op.Result(), whole, op.In(i), false, &start);
}
void Split(Op& op) {
  const keel_tensor whole = op.In(0);
  int64_t start = 0;
  for (uint32_t i = 0; i < op.n_out && !op.rc; i++)
    Piece(op, 0, op.Result(i), whole, op.Out(i), true, &start);
}

}  // namespace

Impls CopyImpls() {
  constexpr const char* kCopy = "copy by strides";
  return {Row<Transpose>("transpose", nullptr, kCopy),
          Row<Broadcast>("broadcast_to", nullptr, kCopy),
          Row<Slice>("slice", nullptr, kCopy),
          Row<Reverse>("reverse", nullptr, kCopy),
          Row<Fill>("fill", nullptr, kCopy),
          Row<Tile>("tile", nullptr, kCopy),
          Row<Pad>("pad", nullptr, kCopy),
          Row<Triangle>("triangle", nullptr, "triangle"),
          Row<Whole>("identity", nullptr, "copy", KEEL_IMPL_INPLACE),
          Row<Whole>("stop_gradient", nullptr, "copy", KEEL_IMPL_INPLACE),
          Row<Whole>("reshape", nullptr, "copy", KEEL_IMPL_INPLACE),
          Row<Concat>("concat", nullptr, kCopy),
          Row<Split>("split", nullptr, kCopy)};
}

}  // namespace keel_cuda
