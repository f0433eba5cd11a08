// launch.cc: a dozen ops on f32: the shader and the push constants of each. Unsupported shapes are declined.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>

#include "device.h"

namespace sketch {
namespace {

enum Elementwise : uint32_t { kAdd, kSub, kMul, kDiv, kMaximum, kMinimum, kNeg, kAbs, kExp, kSqrt, kRelu };

struct Op {
  const char* name;
  Shader shader;
  uint32_t constant;
};
constexpr Op kOps[] = {
    {"add", kElementwise, kAdd},   {"sub", kElementwise, kSub},         {"mul", kElementwise, kMul},
    {"div", kElementwise, kDiv},   {"maximum", kElementwise, kMaximum}, {"minimum", kElementwise, kMinimum},
    {"neg", kElementwise, kNeg},   {"abs", kElementwise, kAbs},         {"exp", kElementwise, kExp},
    {"sqrt", kElementwise, kSqrt}, {"relu", kElementwise, kRelu},       {"matmul", kMatmul, 0},
    {"reduce_sum", kReduce, 0},    {"reduce_max", kReduce, 1},          {"gather", kGather, 0}};

struct State {
  VkPipeline pipeline = nullptr;
  bool transposes_a = false, transposes_b = false;  // matmul
  int64_t axis = 0;                                 // gather
  std::vector<int64_t> axes;                        // reductions
};

uint64_t Address(const keel_tensor* t) { return reinterpret_cast<uint64_t>(keel_ptr(t)); }
uint32_t Product(const int64_t* begin, const int64_t* end) {
  return static_cast<uint32_t>(std::accumulate(begin, end, int64_t{1}, std::multiplies<>()));
}
bool RowMajor(const keel_tensor* t) {
  int64_t step = 1;
  for (int d = t->ndim - 1; d >= 0 && t->strides; step *= t->shape[d--])
    if (t->shape[d] != 1 && t->strides[d] != step) return false;
  return true;
}
keel_rc Decline(const keel_call* call, const char* why) {
  return call->env->host->fail(KEEL_UNIMPLEMENTED, why);
}

template <typename Push>
keel_rc Dispatch(const keel_call* call, const Push& push, uint32_t threads) {
  static_assert(sizeof push <= kPushBytes);
  count_add(COUNT_LAUNCHES, 1);
  if (!threads) return KEEL_OK;
  VkCommandBuffer commands;
  if (keel_rc rc = call->env->queue->Record(call, &commands)) return rc;
  const Vulkan& vk = vulkan();
  const uint32_t group = 64, most = 65535;
  vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                     static_cast<const State*>(call->state)->pipeline);
  vk.CmdPushConstants(commands, call->env->dev->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
  vk.CmdDispatch(commands, std::min((threads + group - 1) / group, most), 1, 1);
  return KEEL_OK;
}

constexpr int kRank = 4;
// Strides of an operand in the dims of the result; 0 where it is broadcast.
void Broadcast(const keel_tensor* t, uint32_t* out) {
  int64_t step = 1;
  for (int d = 1; d <= t->ndim; d++) {
    int64_t size = t->shape[t->ndim - d], stride = t->strides ? t->strides[t->ndim - d] : step;
    out[kRank - d] = size == 1 ? 0 : static_cast<uint32_t>(stride);
    step *= size;
  }
}

keel_rc RunElementwise(const keel_call* call) {
  struct {
    uint64_t a, b, y;
    uint32_t n, dims[kRank], a_strides[kRank], b_strides[kRank];
  } push{};
  const keel_tensor *y = call->out[0], *a = call->in[0], *b = call->in[call->n_in - 1];
  if (y->ndim > kRank) return Decline(call, "more than 4 dims");
  push.a = Address(a), push.b = Address(b), push.y = Address(y);
  push.n = static_cast<uint32_t>(call->count);
  std::fill(std::begin(push.dims), std::end(push.dims), 1u);
  for (int d = 1; d <= y->ndim; d++) push.dims[kRank - d] = static_cast<uint32_t>(y->shape[y->ndim - d]);
  Broadcast(a, push.a_strides);
  Broadcast(b, push.b_strides);
  return Dispatch(call, push, push.n);
}

keel_rc RunMatmul(const keel_call* call) {
  auto* state = static_cast<const State*>(call->state);
  const keel_tensor *a = call->in[0], *b = call->in[1], *y = call->out[0];
  if (y->ndim != 2 || !RowMajor(a) || !RowMajor(b)) return Decline(call, "only row-major matrices");
  const auto a_row = static_cast<uint32_t>(a->shape[1]), b_row = static_cast<uint32_t>(b->shape[1]);
  const bool ta = state->transposes_a, tb = state->transposes_b;
  const struct {
    uint64_t a, b, y;
    uint32_t rows, columns, inner, a_of_row, a_of_inner, b_of_inner, b_of_column;
  } push = {Address(a),
            Address(b),
            Address(y),
            static_cast<uint32_t>(y->shape[0]),
            static_cast<uint32_t>(y->shape[1]),
            static_cast<uint32_t>(a->shape[ta ? 0 : 1]),
            ta ? 1 : a_row,
            ta ? a_row : 1,
            tb ? 1 : b_row,
            tb ? b_row : 1};
  return Dispatch(call, push, push.rows * push.columns);
}

// Adjacent axes are reduced as one.
keel_rc RunReduce(const keel_call* call) {
  auto* state = static_cast<const State*>(call->state);
  const keel_tensor* x = call->in[0];
  std::vector<int64_t> axes = state->axes;
  std::sort(axes.begin(), axes.end());
  const int64_t first = axes.empty() ? 0 : axes.front(), last = axes.empty() ? x->ndim : axes.back() + 1;
  if (!RowMajor(x) || (!axes.empty() && last - first != static_cast<int64_t>(axes.size())))
    return Decline(call, "only neighbouring axes of row-major arrays");
  const struct {
    uint64_t x, y;
    uint32_t outer, axis, inner;
  } push = {Address(x), Address(call->out[0]), Product(x->shape, x->shape + first),
            Product(x->shape + first, x->shape + last), Product(x->shape + last, x->shape + x->ndim)};
  return Dispatch(call, push, push.outer * push.inner);
}

keel_rc RunGather(const keel_call* call) {
  auto* state = static_cast<const State*>(call->state);
  const keel_tensor *x = call->in[0], *index = call->in[1];
  if (!RowMajor(x) || !RowMajor(index)) return Decline(call, "only row-major arrays");
  const int64_t* at = x->shape + state->axis;
  const uint64_t fault = call->env->fault;
  const struct {
    uint64_t x, index, y, fault;
    uint32_t word, outer, axis, count, inner;
  } push = {Address(x),
            Address(index),
            Address(call->out[0]),
            fault,
            call->fault | KEEL_RANGE,
            Product(x->shape, at),
            static_cast<uint32_t>(*at),
            static_cast<uint32_t>(keel_count(index)),
            Product(at + 1, x->shape + x->ndim)};
  return Dispatch(call, push, push.outer * push.count * push.inner);
}

keel_rc ReadAttributes(const keel_host* host, const keel_node* node, const Op& op, State* out) {
  keel_attr a;
  if (op.shader == kMatmul) {
    if (keel_rc rc = host->node_attr(node, "ta", &a)) return rc;
    out->transposes_a = a.i != 0;
    if (keel_rc rc = host->node_attr(node, "tb", &a)) return rc;
    out->transposes_b = a.i != 0;
  } else if (op.shader == kReduce) {
    if (keel_rc rc = host->node_attr(node, "axes", &a)) return rc;
    auto* axes = static_cast<const int64_t*>(a.p);
    out->axes.assign(axes, axes + a.count);
  } else if (op.shader == kGather) {
    if (keel_rc rc = host->node_attr(node, "axis", &a)) return rc;
    out->axis = a.i;
  }
  return KEEL_OK;
}

void Release(keel_dev, void* state) { delete static_cast<State*>(state); }

keel_rc Prepare(keel_dev d, const keel_host* host, const keel_node* node, keel_launch* launch) {
  using Run = keel_rc (*)(const keel_call*);
  constexpr Run kRuns[kShaders] = {RunElementwise, RunMatmul, RunReduce, RunGather};
  const char* name = host->node_op(node);
  const Op& op = *std::find_if(std::begin(kOps), std::end(kOps),
                               [&](const Op& o) { return !std::strcmp(o.name, name); });
  auto state = std::make_unique<State>();
  if (keel_rc rc = ReadAttributes(host, node, op, state.get())) return rc;
  if (keel_rc rc = d->Pipeline(op.shader, op.constant, &state->pipeline)) return rc;
  count_add(COUNT_PREPARES, 1);
  launch->run = kRuns[op.shader];
  launch->release = Release;
  launch->state = state.release();
  return KEEL_OK;
}

}  // namespace

const std::vector<keel_impl>& Impls() {
  static const std::vector<keel_impl> all = [] {
    std::vector<keel_impl> made;
    for (const Op& op : kOps)
      made.push_back({op.name, 1, 1, op.shader == kGather ? "T=f32|i32 I=i32" : "T=f32", "Vulkan sketch", 0,
                      KEEL_IMPL_ANY_DIMS, nullptr, Prepare, nullptr});
    return made;
  }();
  return all;
}

}  // namespace sketch
