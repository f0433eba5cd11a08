// copy.cc: ops that move elements: the result's dims are read from the operand by strides; concat and split.
#include "sdk/plugin/views.h"

#include "shader_op.h"

namespace vulkan {
namespace {

using namespace keel::plugin;

enum Mode : uint32_t { kView, kTile, kPad, kTriangle };  // shaders/copy.comp

struct CopyNumbers {
  uint32_t count = 0, rank = 0;
  int32_t start = 0;
  uint32_t sizes[KEEL_MAX_RANK] = {};
  int32_t strides[KEEL_MAX_RANK] = {}, a[KEEL_MAX_RANK] = {}, b[KEEL_MAX_RANK] = {},
          limits[KEEL_MAX_RANK] = {};

  // Appends a dim, merged into the last one if a step of that passes over all of this one.
  void Add(int64_t size, int64_t stride) {
    if (size == 1) return;
    const bool merges = rank && strides[rank - 1] == stride * size;
    const uint32_t d = merges ? rank - 1 : rank++;
    sizes[d] = static_cast<uint32_t>(merges ? sizes[d] * size : size);
    strides[d] = static_cast<int32_t>(stride);
  }
};

void Finish(Op& op, Mode mode, CopyNumbers& n) {
  const keel_tensor y = op.Out(0);
  n.count = Count32(y);
  op.work.Set(n);
  op.work.Threads(n.count);
  op.work.pipeline = op.Movement("copy", y, {mode});
}
template <View (*VIEW)(keel::plugin::Node&)>
void Copy(Op& op) {
  const keel_tensor y = op.Out(0);
  const View view = VIEW(op);
  op.work.copies = VIEW == keel::plugin::whole;
  CopyNumbers n;
  n.start = static_cast<int32_t>(view.start);
  for (int i = 0; i < y.ndim; i++) n.Add(y.shape[i], view.strides[i]);
  Finish(op, kView, n);
}

// Numbers with the dims of the result and the strides of the operand, not merged.
CopyNumbers Dims(Op& op) {
  const keel_tensor x = op.In(0), y = op.Out(0);
  int64_t strides[KEEL_MAX_RANK];
  row_major(x, strides);
  CopyNumbers n;
  n.rank = static_cast<uint32_t>(y.ndim);
  for (int i = 0; i < y.ndim; i++) {
    n.sizes[i] = static_cast<uint32_t>(y.shape[i]);
    n.strides[i] = static_cast<int32_t>(strides[i]);
    n.limits[i] = static_cast<int32_t>(x.shape[i]);
  }
  return n;
}

void Tile(Op& op) {
  CopyNumbers n = Dims(op);
  for (uint32_t i = 0; i < n.rank; i++) n.a[i] = n.limits[i];
  Finish(op, kTile, n);
}

void Pad(Op& op) {
  CopyNumbers n = Dims(op);
  const auto lo = op.List("lo"), gap = op.List("gap");
  for (size_t i = 0; i < lo.size(); i++) {
    n.a[i] = static_cast<int32_t>(lo[i]);
    n.b[i] = static_cast<int32_t>(gap[i] + 1);
  }
  Finish(op, kPad, n);
}

void Triangle(Op& op) {
  CopyNumbers n = Dims(op);
  n.start = static_cast<int32_t>(std::clamp<int64_t>(op.Int("k"), -INT32_MAX, INT32_MAX));
  n.a[0] = op.Int("upper") != 0;
  Finish(op, kTriangle, n);
}

// A row of the whole is `inner` elements of each index along the axis.
void Pieces(Op& op, const keel_tensor& whole, uint32_t split) {
  const Lines lines(whole, op.Int("axis"));
  const uint32_t pieces = split ? op.n_out : op.n_in;
  std::vector<uint32_t> numbers = {Count32(whole), lines.size * lines.inner, pieces, 0};
  for (uint32_t i = 0; i < pieces; i++) {
    const keel_tensor piece = split ? op.Out(i) : op.In(i);
    numbers.push_back(numbers.back() + static_cast<uint32_t>(piece.shape[op.Int("axis")]) * lines.inner);
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(numbers.data());
  op.work.all_numbers.assign(bytes, bytes + numbers.size() * sizeof numbers[0]);
  op.work.Threads(numbers[0]);
  op.work.pipeline = op.Movement("pieces", whole, {split});
}
void Concat(Op& op) { Pieces(op, op.Out(0), 0); }
void Split(Op& op) { Pieces(op, op.In(0), 1); }

}  // namespace

Impls CopyImpls() {
  constexpr const char *kCopy = "copy by strides", *kPiece = "copy of pieces";
  Impls impls = view_impls([]<View (*VIEW)(keel::plugin::Node&)>(const char* op, uint32_t flags) {
    return MovementRow<Copy<VIEW>>(op, VIEW == whole ? "copy" : kCopy, flags);
  });
  impls.insert(impls.end(), {MovementRow<Tile>("tile", kCopy), MovementRow<Pad>("pad", kCopy),
                             MovementRow<Triangle>("triangle", kCopy), MovementRow<Concat>("concat", kPiece),
                             MovementRow<Split>("split", kPiece)});
  return impls;
}

}  // namespace vulkan
