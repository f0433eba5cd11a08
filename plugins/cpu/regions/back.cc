// back.cc: see back.h. How to read it: Matcher follows values back to the nodes that make them
// and notes those; FindBacks begins at each select and reshape.
#include "plugins/cpu/regions/back.h"

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
  std::optional<Back> Relu(uint32_t n) {
    const BodyNode& select = body_.nodes[n];
    if (select.op != "select" || !Number(select.in[2], 0.0f)) return {};
    const BodyNode* greater = Before(select.in[0], "greater");
    if (greater == nullptr || !Number(greater->in[1], 0.0f)) return {};
    const uint32_t y = greater->in[0], dy = select.in[1], out = select.out[0];
    if (!Image(out) || Of(y).dims != Of(out).dims || Of(dy).dims != Of(out).dims || Of(y).dtype != KEEL_F32)
      return {};
    Back back = {{n, Of(select.in[0]).producer}, kNone, y, true, dy, out};
    if (const uint32_t p = Of(dy).producer; p != kNone && Inner(dy))
      if (const auto pool = Matcher(body_).Pool(p); pool && pool->y == y) {
        back.nodes.insert(back.nodes.end(), pool->nodes.begin(), pool->nodes.end());
        back.index = pool->index;
        back.dy = pool->dy;
      }
    return Sorted(back);
  }

  // reshape(scatter_add(reshape(max_pool_index(y)), reshape(dy)))
  std::optional<Back> Pool(uint32_t n) {
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
  // Only needed by the nodes in question.
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
  // select(index < 0, the number of elements, index): windows wholly in the padding have one place more.
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
  static Back Sorted(Back back) {
    std::sort(back.nodes.begin(), back.nodes.end());
    return back;
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

// In place of what it reads, where nobody needs that later.
void EmitMask(Builder& b, const Back& back) {
  const Dims& dims = b.Value(back.out).dims;
  Layout layout = b.LayoutOf(b.Blocked(back.dy) ? back.dy : back.y);
  if (layout.get_dims() != dims) layout = ChannelsLast(dims);
  auto own = std::make_unique<OwnLaunch>();
  Keep(&own->launch, Mask{static_cast<int64_t>(layout.get_size() / sizeof(float)), WherePositiveLoop()},
       Guard<RunMask>);
  const int y = b.Need(back.y, layout), dy = b.Need(back.dy, layout);
  const bool over = b.MayTake(back.dy, back.nodes.back());
  const int out = over ? b.Take(back.dy, back.nodes.back(), layout) : b.Made(back.out, layout);
  if (over) b.MadeIn(back.out, layout, out);
  b.EmitOwn(std::move(own), {back.y, back.dy}, {back.out}, {y, dy, out});
}

}  // namespace

// Later nodes first: a relu takes a pool along.
std::vector<Back> FindBacks(const Body& body) {
  std::vector<Back> backs;
  std::vector<bool> taken(body.nodes.size());
  for (uint32_t n = static_cast<uint32_t>(body.nodes.size()); n-- > 0;) {
    if (taken[n]) continue;
    std::optional<Back> back = Matcher(body).Relu(n);
    if (!back) back = Matcher(body).Pool(n);
    if (!back) continue;
    for (uint32_t i : back->nodes) taken[i] = true;
    backs.push_back(std::move(*back));
  }
  return backs;
}

void EmitBack(Builder& b, const Back& back) {
  if (back.index == kNone) return EmitMask(b, back);
  const BodyNode& index = b.body.nodes[back.index];
  const Dims &x = b.Value(back.y).dims, &y = b.Value(index.out[0]).dims;
  auto own = std::make_unique<OwnLaunch>();
  KeepUnpool(index, x, y, back.positive, &own->launch);
  const int from = b.Need(back.y, ChannelsLast(x)), dy = b.Need(back.dy, ChannelsLast(y));
  b.EmitOwn(std::move(own), {back.y, back.dy}, {back.out}, {from, dy, b.Made(back.out, ChannelsLast(x))});
}

}  // namespace keel_cpu
