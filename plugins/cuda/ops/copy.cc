// copy.cc: ops that move elements: a strided copy from the operand to the result, or several.
#include "sdk/plugin/views.h"

#include "op.h"

namespace keel_cuda {
namespace {

using namespace keel::plugin;

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
template <View (*VIEW)(keel::plugin::Node&)>
void Copy(Op& op) {
  const keel_tensor y = op.Out(0);
  int64_t of_y[KEEL_MAX_RANK];
  row_major(y, of_y);
  const View view = VIEW(op);
  op.work.copies = VIEW == keel::plugin::whole;
  Copies copies;
  copies.x_start = view.start;
  for (int i = 0; i < y.ndim; i++) copies.Add(y.shape[i], view.strides[i], of_y[i]);
  Encode(op, 0, op.Result(), y, copies);
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
  return {MovementRow<Copy<transposed>>("transpose", kCopy),
          MovementRow<Copy<broadcast>>("broadcast_to", kCopy),
          MovementRow<Copy<sliced>>("slice", kCopy),
          MovementRow<Copy<reversed>>("reverse", kCopy),
          MovementRow<Copy<repeated>>("fill", kCopy),
          MovementRow<Tile>("tile", kCopy),
          MovementRow<Pad>("pad", kCopy),
          MovementRow<Triangle>("triangle", "triangle"),
          MovementRow<Copy<whole>>("identity", "copy", KEEL_IMPL_INPLACE),
          MovementRow<Copy<whole>>("stop_gradient", "copy", KEEL_IMPL_INPLACE),
          MovementRow<Copy<whole>>("reshape", "copy", KEEL_IMPL_INPLACE),
          MovementRow<Concat>("concat", kCopy),
          MovementRow<Split>("split", kCopy)};
}

}  // namespace keel_cuda
