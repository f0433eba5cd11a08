// integer.cc: conv_integer: which nodes this plugin serves, and loops for images that neither oneDNN nor
// integer_images.cc serves.
//
// oneDNN's sums are exact with VNNI instructions only: without them pairs of products saturate at 16 bits.
#include "plugins/cpu/conv/integer.h"

#include <algorithm>

#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/regions/body.h"

namespace keel_cpu {
namespace {

enum Operand { kXZero = 2, kWZero = 3 };

// Element i of an 8-bit tensor.
int32_t At(const keel_tensor& t, int64_t i) {
  const void* p = keel_ptr(&t);
  return keel_dt_of(&t) == KEEL_I8 ? static_cast<const int8_t*>(p)[i] : static_cast<const uint8_t*>(p)[i];
}

// A constant zero point: one number, or one per output channel (as of an operand of w's rank). Empty: another
// operand, which the op's body serves.
std::vector<int32_t> ZeroPoints(const Node& node, uint32_t i) {
  if (!node.Has(i)) return {0};
  const keel_tensor t = node.In(i);
  const int64_t n = t.data == nullptr ? 0 : keel_count(&t);
  bool same = n > 0;
  for (int64_t k = 1; k < n; k++) same &= At(t, k) == At(t, 0);
  if (same) return {At(t, 0)};
  if (n == 0 || i != kWZero || t.ndim != node.In(1).ndim || t.shape[0] != n) return {};
  std::vector<int32_t> all(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; k++) all[static_cast<size_t>(k)] = At(t, k);
  return all;
}

// Whether x has one zero point that is no constant.
bool ZeroVaries(const Node& node) {
  if (!node.Has(kXZero)) return false;
  const keel_tensor zero = node.In(kXZero);
  return zero.data == nullptr && keel_count(&zero) == 1;
}

struct IntegerLoop {
  Conv s;
  IntegerWeights weights;
};

// A row of results is one loop per window cell, as in loop.cc.
template <class T>
keel_rc RunLoop(const keel_call* call) {
  const IntegerLoop& own = State<IntegerLoop>(call);
  const Conv& s = own.s;
  if (call->count == 0) return KEEL_OK;
  const int64_t pixels = s.w.Cells(s.w.image), cells = s.w.Cells(s.w.window), row = s.w.out[s.w.rank - 1],
                rows = Product(s.w.out, s.w.rank - 1), in = s.PerGroupIn();
  const T* x = In<T>(call, 0);
  const int32_t zero = own.weights.x_zero_varies ? In<T>(call, kXZero)[0] : own.weights.x_zero;
  int32_t* y = Out<int32_t>(call, 0);
  ParallelFor(call, s.n * s.o * rows, row * in * cells, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const int64_t image = r / rows / s.o, o = r / rows % s.o, first_in = o / s.PerGroupOut() * in;
      int64_t place[kMaxImage];
      Unravel(r % rows, s.w.out, s.w.rank - 1, place);
      auto* sums = reinterpret_cast<uint32_t*>(y + r * row);  // which wrap
      std::fill(sums, sums + row, 0u);
      for (int64_t c = 0; c < in && !Cancelled(call); c++) {
        const T* channel = x + (image * s.c + first_in + c) * pixels;
        const int16_t* window = own.weights.w.data() + (o * in + c) * cells;
        EachCell(s.w, place, [&](int64_t cell, int64_t at, int64_t first, int64_t m, int64_t step) {
          const int32_t k = window[cell];
          for (int64_t i = 0; i < m; i++)
            sums[first + i] += static_cast<uint32_t>(k * (channel[at + i * step] - zero));
        });
      }
    }
  });
  return Done(call);
}

keel_rc PrepareLoop(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), w = node.In(1), y = node.Out(0);
  if (!ServesIntegers(node)) Throw(KEEL_INTERNAL, "conv_integer: the node does not fit its impl");
  IntegerLoop own = {ReadConv(node, x, w, y), ReadIntegerWeights(node)};
  Complete(&own.s.w);
  const bool is_signed = keel_dt_of(&x) == KEEL_I8;
  return Keep(launch, std::move(own), is_signed ? Guard<RunLoop<int8_t>> : Guard<RunLoop<uint8_t>>);
}

keel_rc PrepareConvInteger(const Node& node, keel_launch* launch) {
  const keel_tensor y = node.Out(0);
  // As a node of a region, oneDNN has already refused it.
  return IsInner(node) || keel_count(&y) == 0 ? PrepareLoop(node, launch) : PrepareSingleOp(node, launch);
}

constexpr keel_impl kImpls[] = {Impl("conv_integer", "convolution of 8-bit integers",
                                     Prepare<PrepareConvInteger>, KEEL_IMPL_THREAD_BITS, nullptr, 0,
                                     Match<ServesIntegers>)};

}  // namespace

bool ServesIntegers(const Node& node) {
  return node.In(1).data != nullptr && (ZeroVaries(node) || !ZeroPoints(node, kXZero).empty()) &&
         !ZeroPoints(node, kWZero).empty();
}

IntegerWeights ReadIntegerWeights(const Node& node) {
  const keel_tensor w = node.In(1);
  const std::vector<int32_t> zeros = ZeroPoints(node, kWZero);
  const bool varies = ZeroVaries(node);
  IntegerWeights made = {varies ? 0 : ZeroPoints(node, kXZero)[0], varies,
                         std::vector<int16_t>(static_cast<size_t>(keel_count(&w)))};
  const size_t each = made.w.size() / zeros.size();
  for (size_t i = 0; i < made.w.size(); i++)
    made.w[i] = static_cast<int16_t>(At(w, static_cast<int64_t>(i)) - zeros[i / each]);
  return made;
}

bool ServesOneDnn(const IntegerWeights& weights) {
  return Int8Loops().bytes && !weights.x_zero_varies &&
         std::ranges::all_of(weights.w, [](int16_t w) { return w == static_cast<int8_t>(w); });
}

Impls ConvIntegerImpls() { return kImpls; }

}  // namespace keel_cpu
