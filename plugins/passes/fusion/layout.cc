// layout.cc: connected image ops become one call, which a device may run in its own layout (blocks of
// channels for convolutions, with fused epilogues). Operands and results of the call stay plain.
//
// Kinds classifies the nodes; regions grow along values, separately for forward and backward; join() merges
// two regions if that saves a layout change; regions with a convolution are offered to the device, which may
// refuse parts.
#include <algorithm>

#include "plugins/passes/edit/elementwise.h"
#include "plugins/passes/edit/numbers.h"
#include "plugins/passes/fusion/regions.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

constexpr size_t kLeastRank = 3;  // batch, channels and one image dim

bool is_image(const Edit& e, keel_value v) {
  const Type t = e.type(v);
  return t.dtype == KEEL_F32 && t.rank() >= kLeastRank && is_number(t.dims[1]);
}
// Also of integers, as quantised images and their sums are.
bool is_any_image(const Edit& e, keel_value v) {
  const Type t = e.type(v);
  const bool fits = t.dtype == KEEL_F32 || t.dtype == KEEL_I32 || t.dtype == KEEL_I8 || t.dtype == KEEL_U8;
  return fits && t.rank() >= kLeastRank && is_number(t.dims[1]);
}

bool is_window(std::string_view op) { return op == "conv" || op == "max_pool" || op == "avg_pool"; }

// Whether n is the mean over all image dims and no others.
bool is_global_mean(const Edit& e, NodeId n) {
  if (!e.is(n, "reduce_mean")) return false;
  const Ints axes = e.list(n, "axes");
  const size_t rank = e.type(e.in(n, 0)).rank();
  return axes.size() == rank - 2 &&
         std::count_if(axes.begin(), axes.end(), [](int64_t a) { return a < 2; }) == 0;
}

bool is_gradient(std::string_view op) { return op == "conv_grad_x" || op == "conv_grad_w"; }
bool is_anchor(std::string_view op) { return op == "conv" || op == "conv_integer" || is_gradient(op); }

// Whether n sums all dims but the channels of images (a bias gradient).
bool is_channel_sum(const Edit& e, NodeId n) {
  if (!e.is(n, "sum_to") || !is_image(e, e.in(n, 0))) return false;
  const Dims from = e.type(e.in(n, 0)).dims, to = e.type(e.out(n)).dims;
  if (to.size() + 1 < from.size() || e.type(e.out(n)).count() != from[1]) return false;
  return to[to.size() + 1 - from.size()] == from[1];
}
// select(y > 0, dy, 0), the gradient of relu.
bool is_relu_gradient(const Edit& e, NodeId n) {
  if (!e.is(n, "select") || !is_image(e, e.in(n, 1)) || !is_all(e, e.in(n, 2), 0)) return false;
  const NodeId greater = e.made_by(e.in(n, 0), "greater");
  return greater != kNone && e.same_type(e.in(greater, 0), e.in(n, 1)) && is_all(e, e.in(greater, 1), 0);
}
// A comparison used only by a relu gradient.
bool is_relu_mask(const Edit& e, NodeId n) {
  if (!e.is(n, "greater") || !e.single_use(e.out(n))) return false;
  return is_relu_gradient(e, e.users(e.out(n))[0]);
}

// Forward and backward nodes grow separate regions.
enum Kind : uint8_t { kNeither, kForward, kBackward };

bool goes_back(const Edit& e, NodeId n) {
  const keel_value x = e.in(n, 0);
  return is_channel_sum(e, n) || is_relu_gradient(e, n) || is_relu_mask(e, n) ||
         (is_gradient(e.op(n)) && is_image(e, x) && is_image(e, e.out(n)));
}
bool goes_forward(const Edit& e, NodeId n) {
  const keel_value x = e.in(n, 0);
  const std::string_view op = e.op(n);
  if (is_global_mean(e, n)) return is_image(e, x);
  if (is_gradient(op) || !is_image(e, e.out(n))) return false;
  if (is_window(op) || op == "batch_norm") return is_image(e, x);
  if (op == "concat") return e.integer(n, "axis") == 1;
  if (is_unary(e, n)) return is_image(e, x) && op != "cast";
  return is_binary(e, n) && (is_image(e, x) || is_image(e, e.in(n, 1)));
}

// Of a graph with quantised convolutions: ops on images of integers are members, too.
bool goes_forward_quantised(const Edit& e, NodeId n) {
  if (goes_forward(e, n)) return true;
  const bool member = is_unary(e, n) || is_binary(e, n) || e.is(n, "max_pool") || e.is(n, "conv_integer") ||
                      (e.is(n, "concat") && e.integer(n, "axis") == 1);
  return member && is_any_image(e, e.in(n, 0)) && is_any_image(e, e.out(n));
}

// The kind of each node, by position.
class Kinds {
 public:
  Kinds(const Edit& e, const Regions& regions) : e_(e), regions_(regions) {
    for (uint32_t p = 0; p < regions.size(); p++) quantised_ |= e.is(regions.node(p), "conv_integer");
    for (uint32_t p = 0; p < regions.size(); p++) kinds_.push_back(find(regions.node(p)));
  }
  Kind operator[](size_t place) const { return kinds_[place]; }

 private:
  Kind find(NodeId n) const {
    if (e_.ins(n).empty() || e_.in(n, 0) == KEEL_NO_VALUE || e_.outs(n).size() != 1) return kNeither;
    if (goes_back(e_, n) || is_sum(n)) return kBackward;
    if (!quantised_) return goes_forward(e_, n) ? kForward : kNeither;
    return (is_anchor(e_.op(n)) || follows(n)) && goes_forward_quantised(e_, n) ? kForward : kNeither;
  }
  // Whether n uses a result of a member: in front of a quantised convolution images are plain and small.
  bool follows(NodeId n) const {
    return std::ranges::any_of(e_.ins(n), [&](keel_value v) {
      const NodeId from = v == KEEL_NO_VALUE ? kNone : e_.producer(v);
      return from != kNone && kinds_[regions_.place_of(from)] == kForward;
    });
  }
  // A sum of gradients from two users.
  bool is_sum(NodeId n) const {
    if (!e_.is(n, "add") || !is_image(e_, e_.out(n))) return false;
    bool back = false;
    for (keel_value v : e_.ins(n)) {
      if (!e_.same_type(v, e_.out(n))) return false;
      const NodeId from = e_.producer(v);
      back |= from != kNone && kinds_[regions_.place_of(from)] == kBackward;
    }
    return back;
  }
  const Edit& e_;
  const Regions& regions_;
  bool quantised_ = false;  // the graph has quantised convolutions
  std::vector<Kind> kinds_;
};

template <class F>
bool has(const Edit& e, const Regions& regions, uint32_t region, F&& is) {
  const std::vector<uint32_t>& members = regions.members(region);
  return std::any_of(members.begin(), members.end(), [&](uint32_t m) { return is(e.op(regions.node(m))); });
}

// Known not to fail: indices from a pool are in range.
bool is_pool_gradient(const Edit& e, NodeId n) {
  if (!e.is(n, "scatter_add")) return false;
  const NodeId flat = e.made_by(e.in(n, 0), "reshape");
  if (flat == kNone) return false;
  const NodeId select = e.made_by(e.in(flat, 0), "select");  // with padding
  return e.made_by(select == kNone ? e.in(flat, 0) : e.in(select, 2), "max_pool_index") != kNone;
}

// Whether n works on images in a way that excludes it from regions: it needs them plain, or fuses into one
// loop with its neighbours.
bool wants_plain(const Edit& e, NodeId n) {
  const auto plain = [&](keel_value v) {
    return v != KEEL_NO_VALUE && is_image(e, v) && !e.constant(v) && e.type(v).dims.back() != 1;
  };
  const Ids in = e.ins(n);
  return !e.is(n, "max_pool_index") && !e.is(n, "reshape") && std::any_of(in.begin(), in.end(), plain);
}

// A gradient reads results of an earlier region but depends on it through other nodes too (dense layers, a
// loss, the gradient of a pool). Taking these nodes along avoids plain images between the two regions. They
// must be few, as a region runs them one by one.
void join(Edit& e, Regions& regions, const Kinds& kinds, uint32_t a, uint32_t b) {
  constexpr size_t kFew = 32;
  const std::vector<uint32_t> between = regions.between(a, b);
  if (between.size() > kFew + regions.members(a).size() + regions.members(b).size()) return;
  const auto good = [&](uint32_t p) {
    const NodeId n = regions.node(p);
    if (kinds[p] == kBackward || has(e, regions, regions.region(p), is_anchor)) return true;
    const bool pure = e.effects(n) == 0 || is_pool_gradient(e, n);
    return pure && !wants_plain(e, n) && e.supported(n) && !e.is(n, "call");
  };
  if (!std::all_of(between.begin(), between.end(), good)) return;
  for (uint32_t p : between)
    if (!regions.fuse(p, a)) return;
  regions.fuse(b, a);
}
void join_gradients(Edit& e, Regions& regions, const Kinds& kinds) {
  int looks = 256;
  for (uint32_t p = 0; p < regions.size(); p++) {
    if (kinds[p] != kBackward) continue;
    for (uint32_t from : regions.producers(p)) {
      const uint32_t a = regions.region(from), b = regions.region(p);
      if (kinds[from] == kNeither || a == b || looks == 0 || !has(e, regions, a, is_anchor) ||
          !has(e, regions, b, is_gradient))
        continue;
      looks--;
      join(e, regions, kinds, a, b);
    }
  }
}

}  // namespace

void layout(Edit& e) {
  Regions regions(e);
  const Kinds kinds(e, regions);
  for (uint32_t p = 0; p < regions.size(); p++)
    for (uint32_t from : regions.producers(p))
      if (kinds[p] != kNeither && kinds[from] == kinds[p]) regions.fuse(p, from);
  join_gradients(e, regions, kinds);
  Claims claims(e, "layout", 2);
  for (uint32_t p = 0; p < regions.size(); p++) {
    if (regions.region(p) != p) continue;
    std::vector<NodeId> nodes;
    for (uint32_t place : regions.members(p)) nodes.push_back(regions.node(place));
    if (has(e, regions, p, is_anchor)) claims.claim(std::move(nodes));
  }
}

}  // namespace keel_passes
