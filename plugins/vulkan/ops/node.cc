// node.cc: see node.h.
#include "node.h"

#include <string>

namespace vulkan {

keel_rc CheckCounts(Node& node) {
  uint32_t n_in = 0, n_out = 0;
  node.host->node_arity(node.node, &n_in, &n_out);
  for (uint32_t i = 0; i < n_in + n_out && !node.rc; i++) {
    const keel_tensor t = i < n_in ? node.In(i) : node.Out(i - n_in);
    if (node.rc || !t.dtype.bits || keel_count(&t) <= INT32_MAX) continue;
    const std::string text = std::string(node.host->node_op(node.node)) + ": a tensor of " +
                             std::to_string(keel_count(&t)) + " elements; expected at most 2147483647";
    node.rc = node.host->fail(KEEL_UNIMPLEMENTED, text.c_str());
  }
  return node.rc;
}

}  // namespace vulkan
