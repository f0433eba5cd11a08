// op.h: the families of impls. A function fills an Op from its node. All impls are
// prepared for each shape.
#ifndef KEEL_PLUGINS_CUDA_OP_H
#define KEEL_PLUGINS_CUDA_OP_H
#include <string>
#include <string_view>

#include "launch.h"
#include "sdk/plugin/guard.h"
#include "sdk/plugin/node.h"
#include "sdk/plugin/numbers.h"

namespace keel_cuda {

using keel::plugin::broadcast_strides, keel::plugin::dim_from_end, keel::plugin::Guarded,
    keel::plugin::product, keel::plugin::row_major;
using Impls = std::vector<keel_impl>;
Impls ElementwiseImpls();
Impls FusedImpls();
Impls CopyImpls();
Impls GatherImpls();
Impls NumberImpls();
Impls ReduceImpls();
Impls MatmulImpls();
Impls AttentionImpls();
Impls GemvImpls();
Impls EpilogueImpls();
Impls Int8Impls();
Impls BlocksImpls();
Impls LineImpls();
Impls ScatterImpls();
Impls PoolImpls();
Impls ConvImpls();
Impls SortImpls();
Impls NormImpls();
Impls StorageImpls();
Impls SuppressImpls();
Impls TreeImpls();

using keel::plugin::kAllTypes, keel::plugin::kFloatTypes, keel::plugin::kNumTypes;

inline bool IsFloat(const keel_tensor& t) { return keel::plugin::Computed(keel_dt_of(&t)).floating; }
// "b32": kernels that move elements need only their width.
inline std::string Width(const keel_tensor& t) { return "b" + std::to_string(t.dtype.bits); }

// A tensor viewed as [outer, size, inner] around an axis.
struct Lines {
  int64_t outer, size, inner;
  Lines(const keel_tensor& t, int64_t axis)
      : outer(product(t.shape, t.shape + axis)),
        size(t.shape[axis]),
        inner(product(t.shape + axis + 1, t.shape + t.ndim)) {}
};

class Op : public keel::plugin::Node {
 public:
  Op(keel_dev d, const keel_host* host, const keel_node* node) : Node(host, node), device(d) {
    host->node_arity(node, &n_in, &n_out);
  }
  void Fail(keel_rc code, const std::string& message) {
    if (!rc) rc = host->fail(code, message.c_str());
  }
  // A kernel of kernels/FILE.cu, after those before. Nothing if blocks is 0.
  void Add(const std::string& file, const std::string& name, uint32_t blocks, std::vector<uint32_t> uses,
           std::vector<int64_t> numbers, uint32_t threads = kThreads);
  void AddKernel(CUfunction kernel, uint32_t blocks, std::vector<uint32_t> uses, std::vector<int64_t> numbers,
                 uint32_t threads = kThreads);
  // The address of a copy on the device, which lives as long as the launch; sets rc.
  int64_t Upload(const std::vector<uint64_t>& words);
  // Whether a kernel's parameter has room for them; sets rc.
  bool Fits(const std::vector<uint32_t>& uses, const std::vector<int64_t>& numbers);
  uint32_t Result(uint32_t i = 0) const { return n_in + i; }

  keel_dev device;
  uint32_t n_in = 0, n_out = 0;
  Work work;
};

// Why these kernels do not take a dtype; NULL: they do.
const char* LackOfNumbers(keel_dt dtype);
const char* LackOfWidth(keel_dt dtype);
// 1 if they take all operands and results.
int32_t MatchNumbers(keel_dev d, const keel_host* host, const keel_node* node);
int32_t MatchWidths(keel_dev d, const keel_host* host, const keel_node* node);

template <void (*FILL)(Op&)>
keel_rc Prepared(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Op op(d, host, of);
  if (!op.rc) FILL(op);
  return op.rc ? op.rc : Finish(std::move(op.work), launch);
}
// `types` exclude storage dtypes.
template <void (*FILL)(Op&)>
keel_impl Row(const char* op, const char* types, const char* name, uint32_t flags = 0) {
  return {op, 1, 1, types, name, 0, flags, nullptr, Guarded<Prepared<FILL>>, nullptr};
}
// Of kernels that compute with any number, or that move elements and need only their width.
template <void (*FILL)(Op&)>
keel_impl NumbersRow(const char* op, const char* name, uint32_t flags = 0) {
  return {op, 1, 1, nullptr, name, 0, flags, Guarded<MatchNumbers>, Guarded<Prepared<FILL>>, nullptr};
}
template <void (*FILL)(Op&)>
keel_impl MovementRow(const char* op, const char* name, uint32_t flags = 0) {
  return {op, 1, 1, nullptr, name, 0, flags, Guarded<MatchWidths>, Guarded<Prepared<FILL>>, nullptr};
}

}  // namespace keel_cuda
#endif
