// relu_pool_grad.cc: see relu_pool_grad.h. Matcher follows values grad to the nodes that produce them and
// records those nodes; FindReluPoolGrads starts it at each select and reshape.
#include "plugins/cpu/regions/relu_pool_grad.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/pooling/loops.h"

namespace keel_cpu {
namespace {

class Matcher {
 public:
  explicit Matcher(const Body& body) : body_(body) {}

  // select(y > 0, dy, 0)
  std::optional<ReluPoolGrad> Relu(uint32_t n) {
    const BodyNode& select = body_.nodes[n];
    if (select.op != "select" || !Number(select.in[2], 0.0f)) return {};
    const BodyNode* greater = Before(select.in[0], "greater");
    if (greater == nullptr || !Number(greater->in[1], 0.0f)) return {};
    const uint32_t y = greater->in[0], dy = select.in[1], out = select.out[0];
    if (!Image(out) || Of(y).dims != Of(out).dims || Of(dy).dims != Of(out).dims || Of(y).dtype != KEEL_F32)
      return {};
    ReluPoolGrad grad = {{n, Of(select.in[0]).producer}, kNone, y, true, dy, out};
    if (const uint32_t p = Of(dy).producer; p != kNone && Inner(dy))
      if (const auto pool = Matcher(body_).Pool(p); pool && pool->y == y) {
        grad.nodes.insert(grad.nodes.end(), pool->nodes.begin(), pool->nodes.end());
        grad.index = pool->index;
        grad.dy = pool->dy;
      }
    return Sorted(grad);
  }

  // reshape(scatter_add(reshape(max_pool_index(y)), reshape(dy)))
  std::optional<ReluPoolGrad> Pool(uint32_t n) {
    const BodyNode& last = body_.nodes[n];
    if (last.op != "reshape" || !Image(last.out[0])) return {};
    nodes_ = {n};
    const BodyNode *sliced = Before(last.in[0], "slice"),
                   *add = Before(sliced ? sliced->in[0] : last.in[0], "scatter_add");
    if (add == nullptr || Of(add->out[0]).dtype != KEEL_F32) return {};
    const BodyNode *places = Before(add->in[0], "reshape"), *dy = Before(add->in[1], "reshape");
    if (places == nullptr || dy == nullptr) return {};
    const BodyNode* index = sliced ? Padded(places->in[0]) : Before(places->in[0], "max_pool_index");
    if (index == nullptr || Of(index->in[0]).dims != Of(last.out[0]).dims || index->node.Flag("column_major"))
      return {};
    const int64_t size = Of(index->in[0]).Count();
    if (add->node.Int("axis") != 0 || Of(add->out[0]).Count() != size + (sliced ? 1 : 0)) return {};
    if (sliced && (Of(sliced->out[0]).Count() != size || sliced->node.List("start") != Dims{0})) return {};
    const uint32_t number = Of(index->out[0]).producer;
    return Sorted({nodes_, number, index->in[0], false, dy->in[0], last.out[0]});
  }

 private:
  const BodyValue& Of(uint32_t v) const { return body_.values[v]; }
  // Used by the matched nodes only.
  bool Inner(uint32_t v) const { return Of(v).users.size() == 1 && Of(v).result == kNone; }
  bool Image(uint32_t v) const {
    return Of(v).dtype == KEEL_F32 && Of(v).dims.size() > 2 && Of(v).dims.size() <= 5 && Of(v).Count() > 0;
  }
  template <class T>
  bool Number(uint32_t v, T wanted) const {
    const bool is_float = Of(v).dtype == KEEL_F32, is_long = Of(v).dtype == KEEL_I64;
    if (Of(v).data == nullptr || Of(v).Count() != 1 || !(sizeof(T) == 4 ? is_float : is_long)) return false;
    T found;
    std::memcpy(&found, Of(v).data, sizeof found);
    return found == wanted;
  }
  const BodyNode* Before(uint32_t v, const char* op) {
    const uint32_t p = Of(v).producer;
    if (p == kNone || !Inner(v) || body_.nodes[p].op != op) return nullptr;
    nodes_.push_back(p);
    return &body_.nodes[p];
  }
  // select(index < 0, element count, index): a window wholly in the padding maps to an extra cell at the end.
  const BodyNode* Padded(uint32_t v) {
    const BodyNode* select = Before(v, "select");
    const BodyNode* less = select ? Before(select->in[0], "less") : nullptr;
    if (less == nullptr || less->in[0] != select->in[2] || !Number(less->in[1], int64_t{0})) return nullptr;
    const BodyValue& index = Of(select->in[2]);
    if (index.producer == kNone || index.result != kNone || index.users.size() != 2) return nullptr;
    const BodyNode& found = body_.nodes[index.producer];
    if (found.op != "max_pool_index" || !Number(select->in[1], Of(found.in[0]).Count())) return nullptr;
    nodes_.push_back(index.producer);
    return &found;
  }
  static ReluPoolGrad Sorted(ReluPoolGrad grad) {
    std::sort(grad.nodes.begin(), grad.nodes.end());
    return grad;
  }

  const Body& body_;
  std::vector<uint32_t> nodes_;
};

struct Mask {
  int64_t n;
  WherePositive loop;
};
keel_rc RunMask(const keel_call* call) {
  const Mask& m = State<Mask>(call);
  ParallelFor(call, m.n, 1, [&](int64_t begin, int64_t end) {
    m.loop(In<float>(call, 0) + begin, In<float>(call, 1) + begin, end - begin, Out<float>(call, 0) + begin);
  });
  return Done(call);
}

// Writes over its operand if that has no later use.
void EmitMask(Builder& b, const ReluPoolGrad& grad) {
  const Dims& dims = b.Value(grad.out).dims;
  Layout layout = b.LayoutOf(b.Blocked(grad.dy) ? grad.dy : grad.y);
  if (layout.get_dims() != dims) layout = ChannelsLast(dims);
  auto own = std::make_unique<OwnLaunch>();
  Keep(&own->launch, Mask{static_cast<int64_t>(layout.get_size() / sizeof(float)), WherePositiveLoop()},
       Guard<RunMask>);
  const int y = b.BufferIn(grad.y, layout), dy = b.BufferIn(grad.dy, layout);
  const bool over = b.MayOverwrite(grad.dy, grad.nodes.back());
  const int out =
      over ? b.OverwriteBuffer(grad.dy, grad.nodes.back(), layout) : b.ResultBuffer(grad.out, layout);
  if (over) b.AssignBuffer(grad.out, layout, out);
  b.EmitOwn(std::move(own), {grad.y, grad.dy}, {grad.out}, {y, dy, out});
}

}  // namespace

// Later nodes first, as a relu gradient includes a preceding pool gradient.
std::vector<ReluPoolGrad> FindReluPoolGrads(const Body& body) {
  std::vector<ReluPoolGrad> grads;
  std::vector<bool> taken(body.nodes.size());
  for (uint32_t n = static_cast<uint32_t>(body.nodes.size()); n-- > 0;) {
    if (taken[n]) continue;
    std::optional<ReluPoolGrad> grad = Matcher(body).Relu(n);
    if (!grad) grad = Matcher(body).Pool(n);
    if (!grad) continue;
    for (uint32_t i : grad->nodes) taken[i] = true;
    grads.push_back(std::move(*grad));
  }
  return grads;
}

void EmitReluPoolGrad(Builder& b, const ReluPoolGrad& grad) {
  if (grad.index == kNone) return EmitMask(b, grad);
  const BodyNode& index = b.body.nodes[grad.index];
  const Dims &x = b.Value(grad.y).dims, &y = b.Value(index.out[0]).dims;
  auto own = std::make_unique<OwnLaunch>();
  KeepUnpool(index, x, y, grad.positive, &own->launch);
  const int from = b.BufferIn(grad.y, ChannelsLast(x)), dy = b.BufferIn(grad.dy, ChannelsLast(y));
  b.EmitOwn(std::move(own), {grad.y, grad.dy}, {grad.out},
            {from, dy, b.ResultBuffer(grad.out, ChannelsLast(x))});
}

}  // namespace keel_cpu
