// map.cc: compiles the body of a `call` to a program of elementwise loops; see map.h.
#include "map.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "cast_loops.h"

namespace keel_cpu {
namespace {

bool Is(const char* op, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [=](const char* n) { return std::strcmp(op, n) == 0; });
}

struct Compiled {
  MapStep step = {};
  int64_t cost = 1;
};

std::optional<Compiled> OneOfThree(const Node& node, const char* op) {
  const keel_tensor y = node.Out(0);
  Compiled c;
  if (Is(op, {"select"})) {
    c.step.kind = MapStep::kSelect;
    c.step.select = Selects().select(ItemSize(y));
  } else if (Is(op, {"clamp"})) {
    c.step.kind = MapStep::kClamp;
    c.step.clamp = Selects().clamp(keel_dt_of(&y));
  } else {
    return std::nullopt;
  }
  return c;
}
std::optional<Compiled> OneOfTwo(const Node& node, const char* op) {
  const keel_tensor x = node.In(0);
  const BinaryOp* found = FindBinary(op, keel_dt_of(&x));
  if (found == nullptr) return std::nullopt;
  Compiled c;
  c.step.kind = MapStep::kBinary;
  c.step.binary = found->loops;
  c.step.failure = found->failure;
  c.cost = found->cost;
  return c;
}
std::optional<Compiled> OneOfOne(const Node& node, const char* op) {
  const keel_tensor x = node.In(0), y = node.Out(0);
  const bool cast = Is(op, {"cast"});
  const UnaryOp* found = cast ? nullptr : FindUnary(node);
  if (!cast && found == nullptr) return std::nullopt;
  Compiled c;
  c.step.kind = MapStep::kUnary;
  c.step.unary = cast ? FindCast(keel_dt_of(&x), keel_dt_of(&y)) : found->loop;
  c.cost = cast ? 2 : found->cost;
  return c;
}

// The instruction of one node, its operands left out; nothing if this is no op of elements.
std::optional<Compiled> Find(const Node& node, const keel_body_node& n) {
  constexpr std::optional<Compiled> (*kByArity[])(const Node&, const char*) = {OneOfOne, OneOfTwo,
                                                                               OneOfThree};
  if (n.n_out != 1 || n.n_in < 1 || n.n_in > 3) return std::nullopt;
  std::optional<Compiled> c = kByArity[n.n_in - 1](node, node.host->node_op(node.node));
  if (!c) return c;
  c->step.n_in = static_cast<uint8_t>(n.n_in);
  c->step.size_out = static_cast<uint8_t>(ItemSize(node.Out(0)));
  return c;
}

template <int kSize>
void CopyLoop(const void* x, void* y, int64_t n) {
  if (x != y) std::memcpy(y, x, static_cast<size_t>(n * kSize));
}
MapStep Copy(uint16_t from, uint16_t to, uint8_t size) {
  MapStep s = {};
  s.kind = MapStep::kUnary;
  s.n_in = 1;
  s.size_out = size;
  s.in[0] = from;
  s.out = to;
  s.unary = size == 1 ? CopyLoop<1> : size == 2 ? CopyLoop<2> : size == 4 ? CopyLoop<4> : CopyLoop<8>;
  return s;
}

class Compiler {
 public:
  explicit Compiler(const Node& node) : node_(node) {
    body_.struct_size = sizeof(body_);
    if (node.host->node_body(node.node, &body_) != KEEL_OK) return;
    map_.n_in = static_cast<uint16_t>(std::min<uint32_t>(node.InCount(), UINT16_MAX));
    map_.n_out = static_cast<uint16_t>(std::min<uint32_t>(body_.n_results, UINT16_MAX));
    ok_ = map_.n_in <= kMapOperands && map_.n_out <= kMapResults && map_.n_out > 0 && ReadNodes();
    if (!ok_) return;
    for (uint32_t i = 0; i < map_.n_in; i++) map_.sizes.push_back(static_cast<uint8_t>(ItemSize(node.In(i))));
    for (uint32_t i = 0; i < map_.n_out; i++)
      map_.sizes.push_back(static_cast<uint8_t>(ItemSize(node.Out(i))));
    std::vector<uint16_t> every;
    for (uint16_t r = 0; r < map_.n_out; r++) every.push_back(r);
    Compile(every, &map_.all);
    for (uint16_t r = 0; map_.n_out > 1 && r < map_.n_out; r++) {
      map_.single.emplace_back();
      Compile({r}, &map_.single.back());
    }
  }
  bool ok() const { return ok_; }
  Map Take() { return std::move(map_); }

 private:
  bool ReadNodes() {
    for (uint32_t i = 0; i < body_.n_nodes; i++) {
      const keel_body_node& n = body_.nodes[i];
      if (std::any_of(n.in, n.in + n.n_in, [](uint32_t v) { return v == KEEL_NO_VALUE; })) return false;
      std::optional<Compiled> c = Find(Node{node_.host, n.node}, n);
      if (!c) return false;
      compiled_.push_back(*c);
    }
    return true;
  }

  // Which nodes the results need, and where each value is read last.
  void FindUses(const std::vector<uint16_t>& results) {
    last_.assign(body_.n_values, -1);
    for (uint16_t r : results) last_[body_.results[r]] = static_cast<int64_t>(body_.n_nodes);
    for (int64_t i = int64_t{body_.n_nodes} - 1; i >= 0; i--) {
      const keel_body_node& n = body_.nodes[i];
      if (last_[n.out] < 0) continue;
      for (uint32_t k = 0; k < n.n_in; k++) last_[n.in[k]] = std::max(last_[n.in[k]], i);
    }
  }

  // Result 0 may lie in the place of an operand, so it is written when no operand is read any more.
  bool MayWriteAt(uint16_t result, int64_t i) const {
    if (result != 0) return true;
    for (uint32_t v = 0; v < map_.n_in; v++)
      if (last_[v] > i) return false;
    return true;
  }

  uint16_t Place(const std::vector<uint16_t>& results, uint32_t value, int64_t i) {
    for (uint16_t r : results)
      if (body_.results[r] == value && MayWriteAt(r, i)) return static_cast<uint16_t>(map_.n_in + r);
    for (uint16_t t = 0; t < kMapTemps; t++)
      if (busy_[t] < i) {
        busy_[t] = last_[value];
        return static_cast<uint16_t>(map_.n_in + map_.n_out + t);
      }
    ok_ = false;
    return 0;
  }

  void Compile(const std::vector<uint16_t>& results, MapProgram* p) {
    FindUses(results);
    std::fill(busy_, busy_ + kMapTemps, int64_t{-1});
    std::vector<uint16_t> slot(body_.n_values);
    uint8_t widest = 1;
    for (uint16_t v = 0; v < map_.n_in; v++) {
      slot[v] = v;
      if (last_[v] >= 0) p->operands.push_back(v), widest = std::max(widest, map_.sizes[v]);
    }
    for (uint32_t i = 0; i < body_.n_nodes && ok_; i++) {
      const keel_body_node& n = body_.nodes[i];
      if (last_[n.out] < 0) continue;
      MapStep s = compiled_[i].step;
      for (uint32_t k = 0; k < n.n_in; k++) s.in[k] = slot[n.in[k]];
      s.out = slot[n.out] = Place(results, n.out, i);
      widest = std::max(widest, s.size_out);
      p->steps.push_back(s);
      p->cost += compiled_[i].cost;
    }
    // Result 0 comes last here too: a result may be an operand as it is.
    for (size_t at = results.size(); at-- > 0 && ok_;) {
      const uint16_t r = results[at], from = slot[body_.results[r]],
                     to = static_cast<uint16_t>(map_.n_in + r);
      if (from != to) p->steps.push_back(Copy(from, to, map_.sizes[to]));
    }
    p->results = results;
    p->temps =
        static_cast<int>(std::count_if(busy_, busy_ + kMapTemps, [](int64_t last) { return last >= 0; }));
    p->tile = kSlotBytes / std::max<int64_t>(widest, 4);
    p->cost = std::max<int64_t>(p->cost, 1);
  }

  Node node_;
  keel_body body_ = {};
  bool ok_ = false;
  Map map_;
  std::vector<Compiled> compiled_;  // by node
  std::vector<int64_t> last_;       // by value: the last node that reads it; -1: nobody
  int64_t busy_[kMapTemps];         // by temporary: the last node that reads what it holds
};

int32_t MatchMap(keel_dev, const keel_host* host, const keel_node* node) {
  try {
    return Compiler(Node{host, node}).ok();
  } catch (...) {
    return 0;  // a body that cannot be read, or a dtype without loops: not for this impl
  }
}
keel_rc PrepareMap(const Node& node, keel_launch* launch) {
  Compiler compiler(node);
  if (!compiler.ok()) Throw(KEEL_UNIMPLEMENTED, "the body of this call is not one of elementwise ops");
  return Keep(launch, compiler.Take(), RunMap);
}

constexpr keel_impl kImpls[] = {{"call", 1, 1, nullptr, "map in tiles", 0,
                                 KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE, MatchMap, Prepare<PrepareMap>,
                                 nullptr}};

}  // namespace

Impls MapImpls() { return kImpls; }

}  // namespace keel_cpu
