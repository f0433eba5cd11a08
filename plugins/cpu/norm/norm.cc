// norm.cc: softmax, log_softmax, layer_norm, rms_norm, batch_norm and lrn, one launch each.
#include "plugins/cpu/norm/loops.h"

#include <cmath>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/parallel/stream.h"

namespace keel_cpu {
namespace {

struct Norm {
  const NormOp* op;
  int64_t axis;
  double eps;
};

const NormOp* Find(const Node& node) {
  const keel_tensor x = node.In(0);
  for (int i = 0; i < Norms().n; i++)
    if (Norms().dtypes[i].dtype == keel_dt_of(&x)) return &Norms().dtypes[i];
  Throw(KEEL_UNIMPLEMENTED, std::string(node.host->node_op(node.node)) + " has no CPU loop for this dtype");
}

template <bool kLog>
keel_rc RunSoftmax(const keel_call* call) {
  constexpr int64_t kCost = 8;
  const Norm& s = State<Norm>(call);
  const keel_tensor& t = *call->in[0];
  if (call->count == 0) return KEEL_OK;
  const int64_t outer = Product(t.shape, s.axis), n = t.shape[s.axis], size = s.op->size;
  const int64_t inner = Product(t.shape + s.axis + 1, t.ndim - s.axis - 1),
                chunks = (inner + kColumns - 1) / kColumns;
  const char* x = In<char>(call, 0);
  char* y = Out<char>(call, 0);
  ParallelFor(call, outer * chunks, n * std::min(inner, kColumns) * kCost, [&](int64_t begin, int64_t end) {
    if (inner == 1)
      return (kLog ? s.op->log_softmax : s.op->softmax)(x + begin * n * size, end - begin, n,
                                                        y + begin * n * size, call->env->cancelled);
    for (int64_t unit = begin; unit < end; unit++) {
      const int64_t first = unit % chunks * kColumns, at = (unit / chunks * n * inner + first) * size;
      (kLog ? s.op->log_softmax_columns : s.op->softmax_columns)(
          x + at, n, inner, std::min(kColumns, inner - first), y + at, call->env->cancelled);
    }
  });
  return Done(call);
}
template <bool kLog>
keel_rc PrepareSoftmax(const Node& node, keel_launch* launch) {
  return Keep(launch, Norm{Find(node), node.Int("axis"), 0}, RunSoftmax<kLog>);
}

template <bool kCentred>
keel_rc RunLayerNorm(const keel_call* call) {
  const Norm& s = State<Norm>(call);
  const keel_tensor& t = *call->in[0];
  if (call->count == 0) return KEEL_OK;
  const int64_t n = t.shape[t.ndim - 1], row = n * s.op->size;
  const char* x = In<char>(call, 0);
  const char* g = In<char>(call, 1);
  const char* b = kCentred ? In<char>(call, 2) : nullptr;
  char* y = Out<char>(call, 0);
  ParallelFor(call, call->count / n, n * 3, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++)
      (kCentred ? s.op->layer_norm : s.op->rms_norm)(x + r * row, g, b, n, s.eps, y + r * row,
                                                     call->env->cancelled);
  });
  return Done(call);
}
template <bool kCentred>
keel_rc PrepareLayerNorm(const Node& node, keel_launch* launch) {
  return Keep(launch, Norm{Find(node), 0, node.Real("eps")}, RunLayerNorm<kCentred>);
}

// n elements past the caches; apart, so that GCC inlines the loop over small planes.
__attribute__((noinline)) void StreamBatchNorm(const Norm& s, const char* x, const void* const* channels,
                                               int64_t c, int64_t n, char* y) {
  const int64_t size = s.op->size;
  const auto by = [&](NormOp::BatchNorm loop) {
    return [=, &s](int64_t begin, int64_t end, char* to) {
      loop(x + begin * size, channels, c, end - begin, s.eps, to);
    };
  };
  if (s.op->batch_norm_stream != nullptr && BeforeLine(y) % size == 0)
    EachPast(y, size, n, by(s.op->batch_norm), by(s.op->batch_norm_stream));
  else
    EachTile(y, size, n, by(s.op->batch_norm));
}
keel_rc RunBatchNorm(const keel_call* call) {
  const Norm& s = State<Norm>(call);
  const keel_tensor& t = *call->in[0];
  if (call->count == 0) return KEEL_OK;
  const int64_t c = t.shape[1], n = Product(t.shape + 2, t.ndim - 2), plane = n * s.op->size;
  const void* channels[4];
  for (int i = 0; i < 4; i++) channels[i] = In<char>(call, i + 1);
  const char* x = In<char>(call, 0);
  char* y = Out<char>(call, 0);
  const bool streams = Streams(call, 0, call->count * s.op->size);
  ParallelPieces(call, t.shape[0] * c, n, 4, [&](int64_t p, int64_t begin, int64_t end) {
    const int64_t at = p * plane + begin * s.op->size;
    if (!streams) return s.op->batch_norm(x + at, channels, p % c, end - begin, s.eps, y + at);
    StreamBatchNorm(s, x + at, channels, p % c, end - begin, y + at);
  });
  return Done(call);
}
keel_rc PrepareBatchNorm(const Node& node, keel_launch* launch) {
  return Keep(launch, Norm{Find(node), 0, node.Real("eps")}, RunBatchNorm);
}

struct Lrn {
  int64_t size;
  double alpha, beta, bias;
};
template <class T>
keel_rc RunLrn(const keel_call* call) {
  using C = Compute<T>;
  constexpr int64_t kChunk = 256;
  const Lrn& s = State<Lrn>(call);
  const keel_tensor& t = *call->in[0];
  if (call->count == 0) return KEEL_OK;
  const int64_t c = t.shape[1], n = Product(t.shape + 2, t.ndim - 2), below = (s.size - 1) / 2;
  const T* x = In<T>(call, 0);
  T* y = Out<T>(call, 0);
  ParallelPieces(
      call, t.shape[0] * c, n, 4 * (std::min(s.size, c) + 16), [&](int64_t p, int64_t begin, int64_t end) {
        C sum[kChunk];
        const int64_t first = std::max<int64_t>(0, p % c - std::min(below, c));
        const int64_t stop = std::min(c, p % c + std::min(s.size - below, c));
        const T* image = x + p / c * c * n;
        for (int64_t at = begin; at < end; at += kChunk) {
          const int64_t m = std::min(kChunk, end - at);
          std::fill(sum, sum + m, C{0});
          for (int64_t k = first; k < stop; k++)
            for (int64_t i = 0; i < m; i++)
              sum[i] += Widen(image[k * n + at + i]) * Widen(image[k * n + at + i]);
          for (int64_t i = 0; i < m; i++) {
            const C base =
                static_cast<C>(s.bias) + static_cast<C>(s.alpha / static_cast<double>(s.size)) * sum[i];
            Narrow(Widen(x[p * n + at + i]) / std::pow(base, static_cast<C>(s.beta)), y[p * n + at + i]);
          }
        }
      });
  return Done(call);
}
keel_rc PrepareLrn(const Node& node, keel_launch* launch) {
  const keel_tensor x = node.In(0);
  return Keep(launch, Lrn{node.Int("size"), node.Real("alpha"), node.Real("beta"), node.Real("bias")},
              VisitFloats(keel_dt_of(&x), []<class T>() -> Run { return RunLrn<T>; }));
}

constexpr uint32_t kFlags = KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE;
constexpr keel_impl kImpls[] = {
    Impl("softmax", "vector softmax", Prepare<PrepareSoftmax<false>>, kFlags),
    Impl("log_softmax", "vector log_softmax", Prepare<PrepareSoftmax<true>>, kFlags),
    Impl("layer_norm", "vector layer_norm", Prepare<PrepareLayerNorm<true>>, kFlags),
    Impl("rms_norm", "vector rms_norm", Prepare<PrepareLayerNorm<false>>, kFlags),
    Impl("batch_norm", "loop batch_norm", Prepare<PrepareBatchNorm>, kFlags),
    Impl("lrn", "loop lrn", Prepare<PrepareLrn>, KEEL_IMPL_ANY_DIMS),
};

}  // namespace

Impls NormImpls() { return kImpls; }

}  // namespace keel_cpu
