// integer.cc: conv_integer: which nodes oneDNN can serve, and loops for those among them that it refuses.
//
// oneDNN's sums are exact with VNNI instructions only: without them pairs of products saturate at 16 bits.
#include "plugins/cpu/conv/integer.h"

#include <algorithm>

#include "plugins/cpu/matmul/int8.h"
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

// A constant operand whose elements are all equal; absent: 0.
bool Uniform(const Node& node, uint32_t i, int32_t* value) {
  *value = 0;
  if (!node.Has(i)) return true;
  const keel_tensor t = node.In(i);
  if (t.data == nullptr || keel_count(&t) < 1) return false;
  *value = At(t, 0);
  for (int64_t k = 1; k < keel_count(&t); k++)
    if (At(t, k) != *value) return false;
  return true;
}

struct IntegerLoop {
  Conv s;
  int32_t zero = 0;  // of x
  std::vector<int8_t> weights;
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
        const int8_t* window = own.weights.data() + (o * in + c) * cells;
        EachCell(s.w, place, [&](int64_t cell, int64_t at, int64_t first, int64_t m, int64_t step) {
          const int32_t k = window[cell];
          for (int64_t i = 0; i < m; i++)
            sums[first + i] += static_cast<uint32_t>(k * (channel[at + i * step] - own.zero));
        });
      }
    }
  });
  return Done(call);
}

keel_rc PrepareLoop(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0), w = node.In(1), y = node.Out(0);
  ConvZeros zeros;
  if (!ServesIntegers(node, &zeros)) Throw(KEEL_INTERNAL, "conv_integer: the node does not fit its impl");
  IntegerLoop own = {ReadConv(node, x, w, y), zeros.x, SignedWeights(node, zeros)};
  Complete(&own.s.w);
  const bool is_signed = keel_dt_of(&x) == KEEL_I8;
  return Keep(launch, std::move(own), is_signed ? Guard<RunLoop<int8_t>> : Guard<RunLoop<uint8_t>>);
}

keel_rc PrepareConvInteger(const Node& node, keel_launch* launch) {
  const keel_tensor y = node.Out(0);
  // As a node of a region, oneDNN has already refused it.
  return IsInner(node) || keel_count(&y) == 0 ? PrepareLoop(node, launch) : PrepareSingleOp(node, launch);
}

bool Matches(const Node& node) {
  ConvZeros zeros;
  return ServesIntegers(node, &zeros);
}

constexpr keel_impl kImpls[] = {Impl("conv_integer", "oneDNN convolution of 8-bit integers",
                                     Prepare<PrepareConvInteger>, KEEL_IMPL_THREAD_BITS, nullptr, 0,
                                     Match<Matches>)};

}  // namespace

bool ServesIntegers(const Node& node, ConvZeros* zeros) {
  const keel_tensor w = node.In(1);
  const int32_t shift = keel_dt_of(&w) == KEEL_U8 ? 128 : 0;
  return Int8Loops().bytes && w.data != nullptr && Uniform(node, kXZero, &zeros->x) &&
         Uniform(node, kWZero, &zeros->w) && zeros->w == shift;
}

std::vector<int8_t> SignedWeights(const Node& node, const ConvZeros& zeros) {
  const keel_tensor w = node.In(1);
  std::vector<int8_t> all(static_cast<size_t>(keel_count(&w)));
  for (size_t i = 0; i < all.size(); i++)
    all[i] = static_cast<int8_t>(At(w, static_cast<int64_t>(i)) - zeros.w);
  return all;
}

Impls ConvIntegerImpls() { return kImpls; }

}  // namespace keel_cpu
