// node.h: nodes, and the families of impls. All impls are prepared for each shape.
#ifndef KEEL_PLUGINS_VULKAN_NODE_H
#define KEEL_PLUGINS_VULKAN_NODE_H
#include <string_view>

#include "launch.h"
#include "sdk/plugin/guard.h"
#include "sdk/plugin/node.h"
#include "shaders.h"

namespace vulkan {

using keel::plugin::broadcast_strides, keel::plugin::dim_from_end, keel::plugin::Guarded,
    keel::plugin::product, keel::plugin::row_major;

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
Impls StorageImpls();
Impls SuppressImpls();
Impls TreeImpls();

// Why the generated shader of an elementwise op does not take elements of this dtype; NULL: it does.
const char* LackOfElementwise(const Optional& has, const char* op, keel_dt dtype);

// A row of the plugin's table. prepare and match are functions; no exception leaves them.
template <auto prepare, auto match>
keel_impl Row(const char* op, const char* types, const char* name, uint32_t flags = 0) {
  return {op, 1, 1, types, name, 0, flags, Guarded<match>, Guarded<prepare>, nullptr};
}

class Node : public keel::plugin::Node {
 public:
  using keel::plugin::Node::Node;
  keel_rc Finish(const Work& work, keel_launch* launch) {
    return rc ? rc : vulkan::Finish(host, node, work, launch);
  }
};

// Numbers of elements: shaders count in 32 bits. KEEL_UNIMPLEMENTED for larger tensors.
keel_rc CheckCounts(Node& node);

}  // namespace vulkan
#endif
