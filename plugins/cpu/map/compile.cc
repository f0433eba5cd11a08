// compile.cc: compiles the body of a `call` to a program of elementwise loops; see map.h.
#include <algorithm>
#include <cstring>
#include <optional>

#include "plugins/cpu/map/instructions.h"
#include "plugins/cpu/parallel/fetch.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

// The nodes of one step: a single one, or several with machine code.
struct Unit {
  std::vector<uint32_t> nodes;
  bool fused = false;
};

class Compiler {
 public:
  explicit Compiler(const MapBody& b)
      : host_(b.host), operands_(b.operands), body_(*b.body), n_nodes_(b.n_nodes), outputs_(b.outputs) {
    map_.n_in = static_cast<uint16_t>(std::min<size_t>(operands_.size(), UINT16_MAX));
    map_.n_out = static_cast<uint16_t>(std::min<size_t>(outputs_.size(), UINT16_MAX));
    ok_ = map_.n_in <= kMapOperands && map_.n_out <= kMapResults && map_.n_out > 0 && ReadNodes();
    if (!ok_) return;
    for (uint32_t i = 0; i < map_.n_in; i++)
      map_.sizes.push_back(static_cast<uint8_t>(ItemSize(operands_[i])));
    for (const MapBody::Output& m : outputs_) map_.sizes.push_back(static_cast<uint8_t>(ItemSize(m.type)));
  }
  // Whether there are enough slots. Machine code is compiled only for programs that are kept.
  bool Fits() {
    std::vector<uint16_t> every;
    for (uint16_t r = 0; r < map_.n_out; r++) every.push_back(r);
    return ok_ && Program(every, &map_.all);
  }
  Map Take() {
    Fuse(&map_.all);
    FindWhole();
    for (uint16_t r = 0; map_.n_out > 1 && r < map_.n_out; r++) {
      map_.single.emplace_back();
      Program({r}, &map_.single.back());
    }
    return std::move(map_);
  }

 private:
  bool ReadNodes() {
    for (uint32_t i = 0; i < n_nodes_; i++) {
      const keel_body_node& n = body_.nodes[i];
      if (std::any_of(n.in, n.in + n.n_in, [](uint32_t v) { return v == KEEL_NO_VALUE; })) return false;
      std::optional<Instruction> c = FindInstruction(Node{host_, n.node}, n);
      if (!c) return false;
      compiled_.push_back(*c);
    }
    return true;
  }

  // The nodes that the results depend on, in order.
  std::vector<uint32_t> Needed(const std::vector<uint16_t>& results) const {
    std::vector<bool> needed(body_.n_values);
    for (uint16_t r : results) needed[outputs_[r].value] = true;
    std::vector<uint32_t> nodes;
    for (uint32_t i = n_nodes_; i-- > 0;) {
      const keel_body_node& n = body_.nodes[i];
      if (!needed[n.out]) continue;
      nodes.push_back(i);
      for (uint32_t k = 0; k < n.n_in; k++) needed[n.in[k]] = true;
    }
    std::reverse(nodes.begin(), nodes.end());
    return nodes;
  }

  bool Program(const std::vector<uint16_t>& results, MapProgram* p) {
    std::vector<Unit> units;
    std::vector<bool> read(body_.n_values);
    for (uint32_t i : Needed(results)) {
      units.push_back({{i}});
      for (uint32_t k = 0; k < body_.nodes[i].n_in; k++) read[body_.nodes[i].in[k]] = true;
    }
    for (uint16_t r : results) read[outputs_[r].value] = true;
    for (uint16_t v = 0; v < map_.n_in; v++)
      if (read[v]) p->operands.push_back(v);
    p->results = results;
    return Compile(units, *p, &p->plain, nullptr);
  }

  void FindWhole() {
    const bool fused = !map_.all.fused.empty();
    const MapCode& code = fused ? map_.all.fused[0].code : map_.all.plain;
    const uint32_t ones = fused ? map_.all.fused[0].ones : Ones(map_.all, false);
    const keel_tensor& y = outputs_[0].type;
    const int64_t n = keel_count(&y);
    const auto like_first = [&](const MapBody::Output& m) { return DimsOf(m.type) == DimsOf(y); };
    const auto flat = [&](uint16_t v) {
      const keel_tensor& x = operands_[v];
      return HasDims(x) && keel_count(&x) == (ones >> v & 1 ? 1 : n);
    };
    const bool all = HasDims(y) && n <= code.tile && std::ranges::none_of(code.steps, &MapStep::CanFail) &&
                     std::ranges::all_of(outputs_, like_first) &&
                     std::ranges::all_of(map_.all.operands, flat);
    if (!all) return;
    SingleTileMap& whole = map_.whole;
    if (code.steps.size() == 1 && code.steps[0].kind == MapStep::kFused)
      whole.code = code.steps[0].fused;
    else
      whole.steps = SharedSteps(code.steps);
    whole.ones = ones;
    for (uint16_t v : map_.all.operands)
      if (const keel_tensor& x = operands_[v]; x.data && keel_count(&x) == 1) {
        whole.known |= 1u << v;
        std::memcpy(&whole.elements[v], keel_ptr(&x), map_.sizes[v]);
      }
  }

  // ---- several nodes as one step

  void Fuse(MapProgram* p) {
    const uint32_t flat = Ones(*p, false), rows = Ones(*p, true);
    are_far_ = AreFar(*p);
    AddFused(flat, p);
    if (rows != flat) AddFused(rows, p);
  }
  // Operands that have one element by their declared dims: in total, or in each row.
  uint32_t Ones(const MapProgram& p, bool in_rows) const {
    const keel_tensor& y = outputs_[p.results[0]].type;
    int last = y.ndim - 1;
    while (last >= 0 && y.shape[last] == 1) last--;
    uint32_t ones = 0;
    for (uint16_t v : p.operands) {
      const keel_tensor& x = operands_[v];
      const int d = last - (y.ndim - x.ndim);
      const bool one = in_rows ? d < 0 || x.shape[d] == 1
                               : std::all_of(x.shape, x.shape + x.ndim, [](int64_t n) { return n == 1; });
      if (one && last >= 0) ones |= 1u << v;
    }
    return ones;
  }
  void AddFused(uint32_t ones, MapProgram* p) {
    // fewer nodes if too many values are alive for the registers
    for (size_t most : {SIZE_MAX, size_t{12}}) {
      MapFused fused = {ones, {}, {}};
      const std::vector<Unit> units = Grouped(*p, ones, most);
      const auto made = std::count_if(units.begin(), units.end(), [](const Unit& u) { return u.fused; });
      if (made == 0) return;
      if (!Compile(units, *p, &fused.code, &fused.kept)) continue;
      const bool whole = made == 1 && std::all_of(units.begin(), units.end(), [&](const Unit& u) {
                           return u.fused || one_[body_.nodes[u.nodes[0]].out];
                         });
      if (whole) fused.code.tile = kWholeTile;
      return p->fused.push_back(std::move(fused));
    }
  }
  // Nodes whose operands all have one element come first; then adjacent nodes with machine code are merged.
  std::vector<Unit> Grouped(const MapProgram& p, uint32_t ones, size_t most) {
    one_.assign(body_.n_values, false);
    for (uint16_t v : p.operands) one_[v] = ones >> v & 1;
    std::vector<Unit> units, groups;
    for (uint32_t i : Needed(p.results)) {
      const keel_body_node& n = body_.nodes[i];
      one_[n.out] = std::all_of(n.in, n.in + n.n_in, [&](uint32_t v) { return one_[v]; });
      const bool fused = compiled_[i].jit && !one_[n.out];
      if (one_[n.out])
        units.push_back({{i}});
      else if (fused && !groups.empty() && groups.back().fused && groups.back().nodes.size() < most)
        groups.back().nodes.push_back(i);
      else
        groups.push_back({{i}, fused});
    }
    const bool fetches = groups.size() > 1 && are_far_;  // which the loop of a single op does not
    for (Unit& u : groups) u.fused = u.fused && (u.nodes.size() > 1 || fetches);
    units.insert(units.end(), groups.begin(), groups.end());
    return units;
  }

  MapStep FusedStep(const Unit& unit, const std::vector<uint16_t>& slot, int64_t at,
                    std::vector<FlatCode>* kept) {
    MapStep s = {};
    JitBody body;
    std::vector<JitPort> in, out;
    std::vector<uint32_t> number(body_.n_values, KEEL_NO_VALUE);
    auto add = [&](uint32_t v, const keel_tensor& t) {
      number[v] = static_cast<uint32_t>(body.values.size());
      body.values.push_back(TypeOf(t));
      return number[v];
    };
    for (uint32_t i : unit.nodes) {
      const keel_body_node& n = body_.nodes[i];
      const Node node{host_, n.node};
      JitOp op = {compiled_[i].jit, {}, 0, static_cast<uint8_t>(n.n_in)};
      for (uint32_t k = 0; k < n.n_in; k++) {
        if (number[n.in[k]] == KEEL_NO_VALUE)
          in.push_back(
              {add(n.in[k], node.In(k)), slot[n.in[k]], one_[n.in[k]], n.in[k] < map_.n_in ? ahead_ : 0});
        op.in[k] = number[n.in[k]];
      }
      op.out = add(n.out, node.Out(0));
      body.ops.push_back(op);
      if (last_[n.out] <= at) continue;
      out.push_back({op.out, slot[n.out], false});
      s.writes |= uint64_t{1} << slot[n.out];
    }
    s.kind = MapStep::kFused;
    kept->push_back(CompileFlat(body, in, out));
    s.fused = kept->back().get();
    ok_ = ok_ && s.fused;
    return s;
  }

  // ---- slots

  // By value: the last unit that reads it; the number of units for a result; -1 if unused.
  void FindUses(const std::vector<Unit>& units, const std::vector<uint16_t>& results) {
    last_.assign(body_.n_values, -1);
    for (size_t u = 0; u < units.size(); u++)
      for (uint32_t i : units[u].nodes)
        for (uint32_t k = 0; k < body_.nodes[i].n_in; k++)
          last_[body_.nodes[i].in[k]] = static_cast<int64_t>(u);
    for (uint16_t r : results) last_[outputs_[r].value] = static_cast<int64_t>(units.size());
  }

  // Result 0 may share memory with an operand, so it is written after the last read of any operand.
  bool MayWriteAt(uint16_t result, int64_t i) const {
    if (result != 0) return true;
    for (uint32_t v = 0; v < map_.n_in; v++)
      if (last_[v] > i) return false;
    return true;
  }

  uint16_t AllocateSlot(const std::vector<uint16_t>& results, uint32_t value, int64_t i) {
    for (uint16_t r : results)
      if (outputs_[r].value == value && MayWriteAt(r, i)) return static_cast<uint16_t>(map_.n_in + r);
    for (uint16_t t = 0; t < kMapTemps; t++)
      if (busy_[t] < i) {
        busy_[t] = last_[value];
        return static_cast<uint16_t>(map_.n_in + map_.n_out + t);
      }
    ok_ = false;
    return 0;
  }

  // Bytes of an element, at least 4.
  int64_t Widest(const std::vector<Unit>& units, const MapProgram& p) const {
    uint8_t widest = 4;
    for (uint16_t v : p.operands) widest = std::max(widest, map_.sizes[v]);
    for (const Unit& unit : units)
      for (uint32_t i : unit.nodes) widest = std::max(widest, compiled_[i].step.size_out);
    return widest;
  }
  // Whether the operands come from the third-level cache or from memory.
  bool AreFar(const MapProgram& p) const {
    int64_t bytes = 0;
    for (uint16_t v : p.operands) {
      const keel_tensor& x = operands_[v];
      if (!HasDims(x)) return false;
      bytes += keel_count(&x) * map_.sizes[v];
    }
    return bytes > FetchedByMaps();
  }

  // Compiles the units; whether all have code.
  bool Compile(const std::vector<Unit>& units, const MapProgram& p, MapCode* code,
               std::vector<FlatCode>* kept) {
    FindUses(units, p.results);
    std::fill(busy_, busy_ + kMapTemps, int64_t{-1});
    std::vector<uint16_t> slot(body_.n_values);
    for (uint16_t v : p.operands) slot[v] = v;
    const int tile = static_cast<int>(kSlotBytes / Widest(units, p));
    code->tile = tile;
    ahead_ = units.size() > 1 && are_far_ ? tile : 0;
    for (int64_t u = 0; ok_ && u < static_cast<int64_t>(units.size()); u++) {
      const Unit& unit = units[static_cast<size_t>(u)];
      for (uint32_t i : unit.nodes) {
        const uint32_t out = body_.nodes[i].out;
        if (!unit.fused || last_[out] > u) slot[out] = AllocateSlot(p.results, out, u);
        code->cost += compiled_[i].cost;
      }
      code->steps.push_back(unit.fused ? FusedStep(unit, slot, u, kept) : PlainStep(unit.nodes[0], slot));
    }
    AddCopies(p.results, slot, code);
    code->temps =
        static_cast<int>(std::count_if(busy_, busy_ + kMapTemps, [](int64_t last) { return last >= 0; }));
    code->cost = std::max<int64_t>(code->cost, 1);
    return std::exchange(ok_, true);
  }
  MapStep PlainStep(uint32_t node, const std::vector<uint16_t>& slot) const {
    const keel_body_node& n = body_.nodes[node];
    MapStep s = compiled_[node].step;
    for (uint32_t k = 0; k < n.n_in; k++) s.in[k] = slot[n.in[k]];
    s.out = slot[n.out];
    return s;
  }
  // Result 0 is last here too: another result may be a copy of an operand.
  void AddCopies(const std::vector<uint16_t>& results, const std::vector<uint16_t>& slot,
                 MapCode* code) const {
    for (size_t at = results.size(); at-- > 0;) {
      const uint16_t r = results[at], from = slot[outputs_[r].value],
                     to = static_cast<uint16_t>(map_.n_in + r);
      if (from != to) code->steps.push_back(CopyStep(from, to, map_.sizes[to]));
    }
  }

  const keel_host* host_;
  const std::vector<keel_tensor>& operands_;
  const keel_body& body_;
  const uint32_t n_nodes_;
  const std::vector<MapBody::Output>& outputs_;
  bool ok_ = false;
  Map map_;
  std::vector<Instruction> compiled_;  // by node
  std::vector<int64_t> last_;          // by value
  std::vector<bool> one_;              // by value: one element
  bool are_far_ = false;               // the operands of the program that is fused
  int ahead_ = 0;                      // JitPort::ahead of operands
  int64_t busy_[kMapTemps];            // by temporary: the last unit that reads its content
};

// A body with elementwise nodes only.
struct ElementwiseBody {
  explicit ElementwiseBody(const Node& call) : map{call.host, OperandsOf(call), &body, 0, {}} {
    body.struct_size = sizeof(body);
    if (call.host->node_body(call.node, &body) != KEEL_OK) return;
    map.n_nodes = body.n_nodes;
    for (uint32_t i = 0; i < body.n_results; i++) map.outputs.push_back({body.results[i], call.Out(i)});
  }
  keel_body body = {};
  MapBody map;
};

int32_t MatchMap(keel_dev, const keel_host* host, const keel_node* node) {
  try {
    return FitsMap(ElementwiseBody(Node{host, node}).map);
  } catch (...) {
    return 0;  // declined: unreadable body, or a dtype without loops
  }
}
keel_rc PrepareMap(const Node& node, keel_launch* launch) {
  std::optional<Map> map = CompileMap(ElementwiseBody(node).map);
  if (!map) Throw(KEEL_UNIMPLEMENTED, "the body of this call has ops that are not elementwise");
  return Keep(launch, std::move(*map), RunMap);
}

constexpr keel_impl kImpls[] = {{"call", 1, 1, nullptr, "map in tiles", 0,
                                 KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE, MatchMap, Prepare<PrepareMap>,
                                 nullptr}};

}  // namespace

std::vector<keel_tensor> OperandsOf(const Node& call) {
  std::vector<keel_tensor> operands;
  for (uint32_t i = 0; i < call.InCount(); i++) operands.push_back(call.In(i));
  return operands;
}

bool FitsMap(const MapBody& b) { return Compiler(b).Fits(); }

std::optional<Map> CompileMap(const MapBody& b) {
  Compiler compiler(b);
  if (!compiler.Fits()) return std::nullopt;
  return compiler.Take();
}

Impls MapImpls() { return kImpls; }

}  // namespace keel_cpu
