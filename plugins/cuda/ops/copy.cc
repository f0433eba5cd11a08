// copy.cc: ops that move elements: a strided copy from the operand to the result, or several.
#include <optional>

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
  // Of elements of `factor` as many bytes, which is 1 unless WideFactor says so.
  std::vector<int64_t> Numbers(int64_t factor) const {
    std::vector<int64_t> numbers = {count / factor, static_cast<int64_t>(sizes.size()), x_start / factor,
                                    y_start / factor, Fits32Bits()};
    numbers.insert(numbers.end(), sizes.begin(), sizes.end());
    if (!sizes.empty()) numbers.back() /= factor;
    for (const auto* of : {&of_x, &of_y})
      for (size_t d = 0; d < of->size(); d++)
        numbers.push_back(d + 1 < of->size() ? (*of)[d] / factor : (*of)[d]);
    return numbers;
  }
  // Whether `factor` elements of the last dim are adjacent in x and y, and begin at multiples of their size.
  bool AreWide(int64_t factor) const {
    if (sizes.empty() || of_x.back() != 1 || of_y.back() != 1) return false;
    int64_t rest = sizes.back() % factor | x_start % factor | y_start % factor;
    for (size_t d = 0; d + 1 < sizes.size(); d++) rest |= of_x[d] % factor | of_y[d] % factor;
    return rest == 0;
  }
  int64_t WideFactor(int64_t bytes) const {
    int64_t factor = 16 / bytes;
    while (factor > 1 && !AreWide(factor)) factor /= 2;
    return factor;
  }

 private:
  bool Fits32Bits() const {
    int64_t most_x = count, most_y = count;
    for (size_t d = 0; d < sizes.size(); d++) {
      if (of_x[d] < 0 || of_y[d] < 0) return false;
      most_x += (sizes[d] - 1) * of_x[d], most_y += (sizes[d] - 1) * of_y[d];
    }
    return std::max(most_x, most_y) <= INT32_MAX;
  }
};

// The dim that is adjacent in x, where another one is in y, and both are large enough for tiles.
// kernels/move.cu
std::optional<size_t> TransposedDim(const Copies& copies) {
  constexpr int64_t kFew = 8;
  const size_t rank = copies.sizes.size();
  if (rank < 2 || copies.of_y.back() != 1 || copies.of_x.back() == 1 || copies.sizes.back() < kFew)
    return std::nullopt;
  for (size_t d = 0; d + 1 < rank; d++)
    if (copies.of_x[d] == 1 && copies.sizes[d] >= kFew) return d;
  return std::nullopt;
}
void EncodeTranspose(Op& op, uint32_t from, uint32_t to, const keel_tensor& like, Copies copies, size_t dim) {
  constexpr int64_t kTile = 32, kLargeTile = 64;
  const int64_t rows = copies.sizes[dim], columns = copies.sizes.back();
  const bool large = like.dtype.bits == 32 && std::min(rows, columns) >= kLargeTile;
  const int64_t tile = large || like.dtype.bits < 32 ? kLargeTile : kTile;
  std::vector<int64_t> numbers = {copies.count / rows / columns,
                                  rows,
                                  columns,
                                  copies.of_x.back(),
                                  copies.of_y[dim],
                                  copies.x_start,
                                  copies.y_start,
                                  static_cast<int64_t>(copies.sizes.size()) - 2};
  for (auto* each : {&copies.sizes, &copies.of_x, &copies.of_y}) {
    each->pop_back();
    each->erase(each->begin() + static_cast<int64_t>(dim));
    numbers.insert(numbers.end(), each->begin(), each->end());
  }
  op.Add("move", (large ? "transpose_large_" : "transpose_") + Width(like),
         Blocks(numbers[0] * CeilDiv(rows, tile) * CeilDiv(columns, tile), 1), {from, to}, numbers);
}

void Encode(Op& op, uint32_t from, uint32_t to, const keel_tensor& like, const Copies& copies) {
  constexpr int64_t kEach = 4;  // elements of a thread
  if (const std::optional<size_t> dim = TransposedDim(copies); dim && copies.count)
    return EncodeTranspose(op, from, to, like, copies, *dim);
  const int64_t factor = copies.WideFactor(like.dtype.bits / 8);
  op.Add("move", "copy_b" + std::to_string(like.dtype.bits * factor),
         Blocks(copies.count / factor, kThreads * kEach), {from, to}, copies.Numbers(factor));
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
  Impls impls = view_impls([]<View (*VIEW)(keel::plugin::Node&)>(const char* op, uint32_t flags) {
    return MovementRow<Copy<VIEW>>(op, VIEW == whole ? "copy" : kCopy, flags);
  });
  impls.insert(impls.end(), {MovementRow<Tile>("tile", kCopy), MovementRow<Pad>("pad", kCopy),
                             MovementRow<Triangle>("triangle", "triangle"),
                             MovementRow<Concat>("concat", kCopy), MovementRow<Split>("split", kCopy)});
  return impls;
}

}  // namespace keel_cuda
