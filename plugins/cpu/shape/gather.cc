// gather.cc: ops that pick elements by indices given as data. All indices are checked before the loop that
// uses them, so the loop needs no checks and can run on several threads.
#include <cstring>

#include "plugins/cpu/shape/index.h"

namespace keel_cpu {
namespace {

// Copies blocks of one size; sizes known at compile time become moves.
template <int kBytes, class I>
void CopyBlocks(const char* from, const I* index, int64_t n, int64_t bytes, char* to) {
  const int64_t block = kBytes > 0 ? kBytes : bytes;
  for (int64_t k = 0; k < n; k++)
    std::memcpy(to + k * block, from + index[k] * block, static_cast<size_t>(kBytes > 0 ? kBytes : bytes));
}
template <class I>
auto CopierOf(int64_t bytes) {
  switch (bytes) {
    case 1:
      return CopyBlocks<1, I>;
    case 2:
      return CopyBlocks<2, I>;
    case 4:
      return CopyBlocks<4, I>;
    case 8:
      return CopyBlocks<8, I>;
    case 16:
      return CopyBlocks<16, I>;
    default:
      return CopyBlocks<0, I>;
  }
}

template <class I>
keel_rc RunGather(const keel_call* call) {
  const int64_t axis = State<int64_t>(call);
  const keel_tensor& x = *call->in[0];
  const I* index = In<I>(call, 1);
  const int64_t picks = keel_count(call->in[1]), n = x.shape[axis], outer = Product(x.shape, axis);
  const int64_t block = Product(x.shape + axis + 1, x.ndim - axis - 1) * ItemSize(x);
  CheckAll(call, index, picks, n);
  if (call->count == 0) return KEEL_OK;
  const char* from = In<char>(call, 0);
  char* to = Out<char>(call, 0);
  if (Pieces(block) > 1) {
    ParallelPieces(call, outer * picks, block, 1, [&](int64_t r, int64_t begin, int64_t end) {
      std::memcpy(to + r * block + begin, from + (r / picks * n + index[r % picks]) * block + begin,
                  static_cast<size_t>(end - begin));
    });
    return Done(call);
  }
  const auto copy = CopierOf<I>(block);
  ParallelFor(call, outer * picks, block / 4 + 2, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin, m; r < end; r += m) {
      const int64_t o = r / picks, k = r % picks;
      m = std::min(end - r, picks - k);
      copy(from + o * n * block, index + k, m, block, to + r * block);
    }
  });
  return Done(call);
}
keel_rc PrepareGather(const Node& node, keel_launch* launch) {
  return Keep(launch, node.Int("axis"),
              VisitIndex(node, 1, []<class I>() -> Run { return Guard<RunGather<I>>; }));
}

template <class T, class I>
keel_rc RunGatherElements(const keel_call* call) {
  const int64_t axis = State<int64_t>(call);
  const keel_tensor& x = *call->in[0];
  const keel_tensor& t = *call->in[1];
  if (call->count == 0) return KEEL_OK;
  int64_t steps[KEEL_MAX_RANK], step = 1;
  for (int d = x.ndim - 1; d >= 0; d--) {
    steps[d] = step;
    step *= x.shape[d];
    // The op allows indices to have other dims than x; positions outside x are an error too.
    if (d != axis) CheckIndex(t.shape[d] - 1, x.shape[d]);
  }
  const I* index = In<I>(call, 1);
  const T* from = In<T>(call, 0);
  T* y = Out<T>(call, 0);
  CheckAll(call, index, call->count, x.shape[axis]);
  const int64_t step_in = steps[axis];
  steps[axis] = 0;  // at: offset in x without the axis
  ParallelFor(call, call->count, 8, [&](int64_t begin, int64_t end) {
    int64_t place[KEEL_MAX_RANK] = {}, at = 0;
    for (int64_t d = t.ndim - 1, rest = begin; d >= 0; rest /= t.shape[d--])
      at += (place[d] = rest % t.shape[d]) * steps[d];
    for (int64_t e = begin; e < end; e++) {
      y[e] = from[at + index[e] * step_in];
      for (int d = t.ndim - 1; d >= 0; d--) {
        at += steps[d];
        if (++place[d] < t.shape[d]) break;
        at -= steps[d] * t.shape[d];
        place[d] = 0;
      }
    }
  });
  return Done(call);
}
keel_rc PrepareGatherElements(const Node& node, keel_launch* launch) {
  const Run run = VisitSize(ItemSize(node.Out(0)), [&]<class T>() -> Run {
    return VisitIndex(node, 1, []<class I>() -> Run { return Guard<RunGatherElements<T, I>>; });
  });
  return Keep(launch, node.Int("axis"), run);
}

template <class I>
keel_rc RunGatherNd(const keel_call* call) {
  const int64_t batch = State<int64_t>(call);
  const keel_tensor& x = *call->in[0];
  const keel_tensor& t = *call->in[1];
  const int64_t k = t.shape[t.ndim - 1], batches = Product(x.shape, batch);
  const int64_t rows = Product(t.shape + batch, t.ndim - 1 - batch);
  const int64_t slice = Product(x.shape + batch + k, x.ndim - batch - k), item = ItemSize(x);
  const int64_t each = Product(x.shape + batch, x.ndim - batch);
  const I* index = In<I>(call, 1);
  const char* from = In<char>(call, 0);
  char* to = Out<char>(call, 0);
  for (int64_t b = 0; b < batches; b++)
    InChunks(call, 0, rows, slice * item / 4 + 16, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++, index += k, to += slice * item) {
        const int64_t at = b * each + Locate(index, x.shape + batch, k, slice);
        if (Pieces(slice * item) > 1)
          CopyBytes(call, to, from + at * item, slice * item);
        else if (slice > 0)
          std::memcpy(to, from + at * item, static_cast<size_t>(slice * item));
      }
    });
  return Done(call);
}
keel_rc PrepareGatherNd(const Node& node, keel_launch* launch) {
  return Keep(launch, node.Int("batch"),
              VisitIndex(node, 1, []<class I>() -> Run { return Guard<RunGatherNd<I>>; }));
}

constexpr keel_impl kImpls[] = {
    Impl("gather", "copy blocks", Prepare<PrepareGather>, KEEL_IMPL_ANY_DIMS),
    Impl("gather_elements", "loop gather_elements", Prepare<PrepareGatherElements>, KEEL_IMPL_ANY_DIMS),
    Impl("gather_nd", "copy blocks", Prepare<PrepareGatherNd>, KEEL_IMPL_ANY_DIMS),
};

}  // namespace

Impls GatherImpls() { return kImpls; }

}  // namespace keel_cpu
