// layout.cc: connected image ops become one call, which a device may run in a layout of its own: blocks of
// channels for convolutions, with what follows them fused. Operands and results of the call are plain.
//
// How to read it: belongs() says which nodes may lie in a region; the regions grow along values; those
// with a convolution in them go to the device, which may refuse parts.
#include <algorithm>

#include "elementwise.h"
#include "passes.h"
#include "regions.h"

namespace keel_passes {
namespace {

constexpr size_t kLeastRank = 3;  // batch, channels and an image

bool is_image(const Edit& e, keel_value v) {
  const Type t = e.type(v);
  return t.dtype == KEEL_F32 && t.rank() >= kLeastRank && is_number(t.dims[1]);
}

bool is_window(std::string_view op) { return op == "conv" || op == "max_pool" || op == "avg_pool"; }

// Over the whole image and nothing else.
bool is_global_mean(const Edit& e, NodeId n) {
  if (!e.is(n, "reduce_mean")) return false;
  const Ints axes = e.list(n, "axes");
  const size_t rank = e.type(e.in(n, 0)).rank();
  return axes.size() == rank - 2 &&
         std::count_if(axes.begin(), axes.end(), [](int64_t a) { return a < 2; }) == 0;
}

bool belongs(const Edit& e, NodeId n) {
  const keel_value x = e.in(n, 0);
  if (x == KEEL_NO_VALUE || e.outs(n).size() != 1) return false;
  const std::string_view op = e.op(n);
  if (is_global_mean(e, n)) return is_image(e, x);
  if (!is_image(e, e.out(n))) return false;
  if (is_window(op) || op == "batch_norm") return is_image(e, x);
  if (op == "concat") return e.integer(n, "axis") == 1;
  const uint32_t traits = elementwise(op);
  if (traits & kUnary) return is_image(e, x) && op != "cast";
  return (traits & kBinary) && (is_image(e, x) || is_image(e, e.in(n, 1)));
}

}  // namespace

void layout(Edit& e) {
  Regions regions(e);
  std::vector<bool> in_region(regions.size());
  for (uint32_t p = 0; p < regions.size(); p++) {
    in_region[p] = belongs(e, regions.node(p));
    if (!in_region[p]) continue;
    for (uint32_t from : regions.producers(p))
      if (in_region[from]) regions.fuse(p, from);
  }
  Claims claims(e, "layout", 2);
  for (uint32_t p = 0; p < regions.size(); p++) {
    if (regions.region(p) != p) continue;
    std::vector<NodeId> nodes;
    for (uint32_t place : regions.members(p)) nodes.push_back(regions.node(place));
    const auto is_conv = [&](NodeId n) { return e.is(n, "conv"); };
    if (std::any_of(nodes.begin(), nodes.end(), is_conv)) claims.claim(std::move(nodes));
  }
}

}  // namespace keel_passes
