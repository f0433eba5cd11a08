// node.h: reading nodes, and the families of impls. All impls are prepared for each shape.
#ifndef KEEL_PLUGINS_VULKAN_NODE_H
#define KEEL_PLUGINS_VULKAN_NODE_H
#include <span>
#include <string_view>

#include "guard.h"
#include "launch.h"
#include "shaders.h"

namespace vulkan {

using Impls = std::vector<keel_impl>;
Impls ElementwiseImpls();
Impls MatmulImpls();
Impls ReduceImpls();
Impls LineImpls();
Impls GatherImpls();
Impls ScatterImpls();
Impls NormImpls();
Impls AttentionImpls();
Impls CopyImpls();
Impls NumberImpls();
Impls PoolImpls();
Impls ConvImpls();

// Why the generated shader of an elementwise op does not take elements of this dtype; NULL: it does.
const char* LackOfElementwise(const Optional& has, const char* op, keel_dt dtype);

// A row of the plugin's table. prepare and match are functions; no exception leaves them.
template <auto prepare, auto match>
keel_impl Row(const char* op, const char* types, const char* name, uint32_t flags = 0) {
  return {op, 1, 1, types, name, 0, flags, Guarded<match>, Guarded<prepare>, nullptr};
}

// The first failure is kept in `rc`; later reads return nothing. An omitted operand has dtype.bits 0.
class Node {
 public:
  Node(const keel_host* host, const keel_node* node) : host(host), node(node) {}
  keel_tensor In(uint32_t i) { return Tensor(host->node_in, i); }
  keel_tensor Out(uint32_t i) { return Tensor(host->node_out, i); }
  int64_t Int(const char* name) { return Attribute(name).i; }
  double Float(const char* name) { return Attribute(name).f; }
  std::string_view Text(const char* name) {
    const keel_attr a = Attribute(name);
    return {static_cast<const char*>(a.p), a.count};
  }
  std::span<const int64_t> List(const char* name) {
    const keel_attr a = Attribute(name);
    return {static_cast<const int64_t*>(a.p), a.count};
  }
  keel_rc Finish(const Work& work, keel_launch* launch) {
    return rc ? rc : vulkan::Finish(host, node, work, launch);
  }

  const keel_host* host;
  const keel_node* node;
  keel_rc rc = KEEL_OK;

 private:
  using Read = keel_rc (*)(const keel_node*, uint32_t, keel_tensor*);
  keel_tensor Tensor(Read read, uint32_t i) {
    keel_tensor t{};
    const keel_rc got = rc ? rc : read(node, i, &t);
    if (got != KEEL_NOT_FOUND) rc = got;
    return t;
  }
  keel_attr Attribute(const char* name) {
    keel_attr a{};
    if (!rc) rc = host->node_attr(node, name, &a);
    return a;
  }
};

// Numbers of elements: shaders count in 32 bits. KEEL_UNIMPLEMENTED for larger tensors.
keel_rc CheckCounts(Node& node);
inline int64_t Product(const int64_t* begin, const int64_t* end) {
  int64_t all = 1;
  for (; begin != end; begin++) all *= *begin;
  return all;
}
// At prepare only: strides of a row-major tensor.
void RowMajor(const keel_tensor& t, int64_t* strides);
// The same in the dims of `over`, to which t is broadcast: 0 where it has one element or no dim.
void BroadcastStrides(const keel_tensor& t, const keel_tensor& over, uint32_t* strides);
// A dim counted from the end: 1 is the last.
inline uint32_t DimFromEnd(const keel_tensor& t, int from_end) {
  return static_cast<uint32_t>(t.shape[t.ndim - from_end]);
}

}  // namespace vulkan
#endif
