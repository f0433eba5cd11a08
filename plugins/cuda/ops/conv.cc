// conv.cc: convolution and its gradients, by cuBLASLt, cuDNN or own kernels (conv_plan.h).
#include "blas.h"
#include "conv_plan.h"
#include "dnn.h"
#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

constexpr int64_t kTile = 64, kDepth = 16;  // kernels/tiles.cuh
// Blocks that are enough for a device, and the shortest part of a sum for one of them. The number of parts
// depends on the sizes only, and so do the bits of results.
constexpr int64_t kEnough = 512, kShortest = 256;
// Fewer rows or columns fill too little of a tile.
constexpr int64_t kFew = 4, kFewElements = 1024;

// One of the three ops. Tensors by number: 0 and 1 are operands, 2 is the result.
struct Role {
  ConvolutionKind kind;
  ConvPlan (*plan)(const ConvSizes&);
  uint32_t x, w, y, left, right;
};
constexpr uint32_t kResult = 2;
constexpr Role kForward = {ConvolutionKind::kForward, PlanForward, 0, 1, 2, 1, 0};
constexpr Role kForImage = {ConvolutionKind::kForImage, PlanForImage, 2, 1, 0, 1, 0};
constexpr Role kForWeights = {ConvolutionKind::kForWeights, PlanForWeights, 1, 2, 0, 0, 1};

keel_tensor TensorOf(Op& op, uint32_t number) { return number == kResult ? op.Out(0) : op.In(number); }

void Encode(Op& op, const Role& role, ConvPlan p) {
  const keel_tensor y = op.Out(0);
  const int64_t count = keel_count(&y), tiles = p.groups * CeilDiv(p.rows, kTile) * CeilDiv(p.columns, kTile);
  const bool direct = p.rows < kFew || p.columns < kFew;
  if (direct)
    p.threads = p.inner >= kFewElements ? kThreads : 1;
  else
    p.parts = std::clamp<int64_t>(kEnough / std::max<int64_t>(1, tiles), 1,
                                  std::max<int64_t>(1, p.inner / kShortest));
  p.depth = CeilDiv(CeilDiv(p.inner, p.parts), kDepth) * kDepth;
  p.parts = p.depth ? CeilDiv(p.inner, p.depth) : 1;
  const std::vector<int64_t> numbers = p.Numbers();
  const std::string type = NameOf(keel::plugin::dtype_of(y));
  const std::vector<uint32_t> uses = {role.left, role.right, op.Result(), op.Result() + op.n_out};
  if (direct)
    return op.Add("conv", "conv_direct_" + type, Blocks(count, p.threads == 1 ? kThreads : 1), uses, numbers);
  op.Add("conv", "conv_" + type, count ? Blocks(tiles * p.parts, 1) : 0, uses, numbers);
  if (p.parts == 1) return;
  op.work.scratch_bytes = static_cast<uint64_t>(p.parts * count) * std::max(4, y.dtype.bits / 8);
  op.Add("conv", "conv_sum_" + type, Blocks(count), uses, numbers);
}

ConvPlan PlanOf(Op& op, const Role& role, const ConvSizes& sizes) {
  if (op.rc) return {};
  const ConvPlan p = role.plan(sizes);
  if (!p.FitsIn32Bits())
    op.Fail(KEEL_UNIMPLEMENTED, std::string(op.host->node_op(op.node)) + ": more than 2147483647 cells");
  return p;
}
ConvSizes SizesOf(Op& op, const Role& role) {
  return {op, TensorOf(op, role.x), TensorOf(op, role.w), TensorOf(op, role.y)};
}

template <const Role& ROLE>
void Convolve(Op& op) {
  const ConvPlan p = PlanOf(op, ROLE, SizesOf(op, ROLE));
  if (!op.rc) Encode(op, ROLE, p);
}

// An image of one dim is of two for cuDNN, with a height of 1.
ConvolutionShape ShapeOf(Op& op, const Role& role, const ConvSizes& s) {
  const auto& window = s.window;
  const bool is_line = window.rank == 1;
  ConvolutionShape shape = {role.kind, keel::plugin::dtype_of(op.Out(0)), {}, {}, {}, {}, {}, {}, {}};
  for (auto [number, dims] : {std::pair(role.x, &shape.x), {role.w, &shape.w}, {role.y, &shape.y}}) {
    const keel_tensor t = TensorOf(op, number);
    dims->assign(t.shape, t.shape + t.ndim);
    if (is_line) dims->insert(dims->begin() + 2, 1);
  }
  if (is_line) shape.stride = shape.dilation = {1}, shape.lo = shape.hi = {0};
  for (int64_t d = 0; d < window.rank; d++) {
    const int64_t end =
        (window.places[d] - 1) * window.stride[d] + (window.window[d] - 1) * window.dil[d] + 1;
    shape.stride.push_back(window.stride[d]), shape.dilation.push_back(window.dil[d]);
    shape.lo.push_back(window.lo[d]);
    shape.hi.push_back(std::max<int64_t>(0, end - window.lo[d] - window.image[d]));
  }
  return shape;
}

// Whether it is enough work for a library, with sizes that it counts in 32 bits.
bool IsLarge(Op& op, const ConvPlan& p) {
  constexpr int64_t kLeast = 64 * 64 * 64, kMost = INT32_MAX;
  for (uint32_t number = 0; number <= kResult; number++) {
    const keel_tensor t = TensorOf(op, number);
    if (keel_count(&t) == 0 || keel_count(&t) > kMost) return false;
  }
  return p.groups * p.rows * p.columns >= CeilDiv(kLeast, p.inner);
}

// Corrects results that contain 0 times an infinity or NaN of the left side (kernels/conv_mend.cu).
void AddMends(Op& op, const Role& role, const ConvolutionShape& shape, const ConvSizes& s,
              const ConvPlan& p) {
  const auto is_zero = [](int64_t each) { return each == 0; };
  const bool all_inside =
      role.kind == ConvolutionKind::kForImage
          ? s.window.IsPoints()
          : std::ranges::all_of(shape.lo, is_zero) && std::ranges::all_of(shape.hi, is_zero);
  if (all_inside) return;
  const std::string type = NameOf(shape.dtype);
  const std::vector<int64_t> numbers = p.Numbers();
  // No more than run at the same time: mostly they find nothing to do.
  const uint32_t blocks = std::min<uint32_t>(Blocks(p.groups * p.rows * p.columns), kEnough);
  std::vector<Step>& steps = op.work.steps;
  const auto own = static_cast<std::ptrdiff_t>(steps.size());
  const std::vector<uint32_t> uses = steps[0].uses;
  if (role.kind == ConvolutionKind::kForWeights) {
    op.Add("conv_mend", "conv_again_" + type, blocks, uses, numbers);
  } else {
    op.Add("conv_mend", "conv_check_" + type, kThreads, uses, numbers);
    op.Add("conv_mend", "conv_mend_" + type, blocks, uses, numbers);
  }
  op.work.mends.assign(std::make_move_iterator(steps.begin() + own), std::make_move_iterator(steps.end()));
  steps.erase(steps.begin() + own, steps.end());
}

// With the call of a library, and own kernels for operands that are not aligned.
void EncodeCall(Op& op, const Role& role, const ConvPlan& p) {
  if (!op.rc && !op.work.product) op.rc = KEEL_UNIMPLEMENTED;  // another row takes it
  if (!op.rc) Encode(op, role, p);
}

// A window of one cell: the image of each channel is a row of a matrix as it is, so that nothing is
// transposed. For the library rows are aligned.
template <const Role& ROLE>
void ConvolvePoints(Op& op) {
  const ConvSizes s = SizesOf(op, ROLE);
  const ConvPlan p = PlanOf(op, ROLE, s);
  if (op.rc) return;
  const keel_dt dtype = keel::plugin::dtype_of(op.Out(0));
  const int64_t batches = s.images * s.groups;
  const bool for_image = ROLE.kind == ConvolutionKind::kForImage;
  const ProductShape shape = {
      dtype,     p.rows, s.pixels, p.inner, batches, s.groups == 1 ? 0 : p.rows * p.inner, p.inner * s.pixels,
      for_image, false,  false};
  const bool is_aligned = s.pixels * (dtype >> 8 & 255) / 8 % LibraryCall::kAlignment == 0;
  if (s.window.IsPoints() && (s.groups == 1 || s.images == 1) && is_aligned && IsLarge(op, p))
    op.rc = FindProduct(op.device, shape, &op.work.product);
  EncodeCall(op, ROLE, p);
}

template <const Role& ROLE>
void ConvolveByDnn(Op& op) {
  const ConvSizes sizes = SizesOf(op, ROLE);
  const ConvPlan p = PlanOf(op, ROLE, sizes);
  if (op.rc) return;
  const ConvolutionShape shape = ShapeOf(op, ROLE, sizes);
  const bool has_rank = sizes.window.rank >= 1 && sizes.window.rank <= 3;
  if (has_rank && IsLarge(op, p)) op.rc = FindConvolution(op.device, shape, &op.work.product);
  EncodeCall(op, ROLE, p);
  if (op.rc) return;
  AddMends(op, ROLE, shape, sizes, p);
  op.work.scratch_bytes = std::max(op.work.scratch_bytes, op.work.product->bytes[3]);
}

template <void (*FILL)(Op&)>
keel_impl LibraryRow(const char* op, const char* name, int32_t priority) {
  keel_impl row = Row<FILL>(op, kFloatTypes, name);
  row.priority = priority;
  return row;
}

template <const Role& ROLE>
void AddRows(const char* op, Impls* rows) {
  if (ROLE.kind != ConvolutionKind::kForWeights)
    rows->push_back(LibraryRow<ConvolvePoints<ROLE>>(op, "cuBLASLt", 2));
  if (kHasDnn) rows->push_back(LibraryRow<ConvolveByDnn<ROLE>>(op, "cuDNN", 1));
  rows->push_back(Row<Convolve<ROLE>>(op, kFloatTypes, "products of matrices"));
}

}  // namespace

Impls ConvImpls() {
  Impls rows;
  AddRows<kForward>("conv", &rows);
  AddRows<kForImage>("conv_grad_x", &rows);
  AddRows<kForWeights>("conv_grad_w", &rows);
  return rows;
}

}  // namespace keel_cuda
