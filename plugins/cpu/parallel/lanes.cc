// lanes.cc: see lanes.h. Costs are estimates from shapes alone, so the choice of concurrent launches never
// depends on the machine's load. A factor of two is accurate enough.
#include "plugins/cpu/parallel/lanes.h"

#include <algorithm>
#include <cmath>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {
namespace {

constexpr double kLaunch = 40, kElement = 0.3;  // ns
constexpr double kFlop = 1.0 / 60;              // ns, on one thread, f32
constexpr double kShared = 10'000,
                 kRegion = 1'500;  // ns: above kShared a launch uses a team, which costs kRegion

double Count(const keel_tensor& t) { return static_cast<double>(Product(t.shape, t.ndim)); }
// The product of all but the last dims.
double Outer(const keel_tensor& t, int32_t last) {
  return static_cast<double>(Product(t.shape, std::max(0, t.ndim - last)));
}

// For [.., m, k] x [.., k, n] in any transposition. The product of the three element counts is (m k n)^2
// times the cube of the shared leading dims.
double OfMatmul(const Node& node) {
  const keel_tensor b = node.In(1);
  return 2 * std::sqrt(Count(node.In(0)) * Count(b) * Count(node.Out(0)) / std::max(1.0, Outer(b, 2)));
}
// Weights are [out, in per group, window..].
double OfConv(const keel_tensor& image, const keel_tensor& weights) {
  return 2 * Count(image) * Count(weights) / static_cast<double>(std::max<int64_t>(1, weights.shape[0]));
}
// q [.., l, d], k [.., s, d], v [.., s, e]: two products.
double OfAttention(const Node& node) {
  const keel_tensor q = node.In(0), k = node.In(1);
  return 4 * Count(q) * Count(k) / std::max(1.0, Outer(k, 2) * static_cast<double>(k.shape[k.ndim - 1]));
}

// Ops whose cost is not proportional to their elements.
struct Formula {
  std::string_view op;
  double (*flops)(const Node&);
};
constexpr Formula kFormulas[] = {
    {"matmul", OfMatmul},
    {"conv", [](const Node& node) { return OfConv(node.Out(0), node.In(1)); }},
    {"conv_grad_x", [](const Node& node) { return OfConv(node.In(0), node.In(1)); }},
    {"conv_grad_w", [](const Node& node) { return OfConv(node.In(0), node.Out(0)); }},
    {"attention", OfAttention},
};

double OfElements(const Node& node) {
  uint32_t n_in = 0, n_out = 0;
  node.host->node_arity(node.node, &n_in, &n_out);
  double most = 0;
  for (uint32_t i = 0; i < n_in; i++) most = std::max(most, Count(node.In(i)));
  for (uint32_t i = 0; i < n_out; i++) most = std::max(most, Count(node.Out(i)));
  return most;
}

// On one thread.
double Nanoseconds(const Node& node) {
  keel_body body = {};
  body.struct_size = sizeof body;
  double sum = kLaunch;
  if (node.host->node_body(node.node, &body) == KEEL_OK) {
    for (uint32_t i = 0; i < body.n_nodes; i++) sum += Nanoseconds({node.host, body.nodes[i].node});
    return sum;
  }
  const std::string_view op = node.host->node_op(node.node);
  for (const Formula& f : kFormulas)
    if (f.op == op) return sum + kFlop * f.flops(node);
  return sum + kElement * OfElements(node);
}

}  // namespace

void RunLanes(keel_dev, uint32_t n, void (*lane)(void* arg), void* arg) {
  const Team lent(n);
  if (lent.Size() == 1) return lane(arg);
  RunParts(lent.Size(), [&](int) { lane(arg); });
}

uint64_t Cost(keel_dev, const keel_host* host, const keel_node* node, uint32_t threads) {
  try {
    double time = Nanoseconds({host, node});
    const double team = std::min<double>(threads, Budget());
    if (time > kShared && team > 1) time = kRegion + time / team;
    return static_cast<uint64_t>(std::min(time, 1e18));
  } catch (...) {
    return 0;  // unknown cost
  }
}

}  // namespace keel_cpu
