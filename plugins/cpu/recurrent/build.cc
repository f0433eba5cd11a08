// build.cc: makes a net of a form: sources, places and packed weights.
#include <algorithm>
#include <utility>

#include "plugins/cpu/recurrent/net.h"
#include "plugins/cpu/recurrent/stage_body.h"

namespace keel_cpu {
namespace {

// Elements between rows of a left operand: rows a multiple of 4 KiB apart would share a set of the cache.
constexpr int64_t kApart = 16;
constexpr int64_t kAhead = 12;  // steps, without pairs

bool IsOne(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d == 1; });
}

class Builder {
 public:
  explicit Builder(const Node& scan) : scan_(scan) {
    if (!ReadRecurrent(scan, &form_)) Throw(KEEL_UNIMPLEMENTED, "this scan is not a recurrent net");
    net_.op = MatmulLoops(KEEL_F32);
    net_.rows = form_.state[0], net_.units = form_.units;
    net_.steps = form_.is_scan ? scan.Int("length") : 1;
    net_.reverse = form_.is_scan && scan.Flag("reverse");
    if (net_.rows == 1) net_.pair = Pairs();
    const int64_t ahead = net_.pair.run != nullptr ? net_.pair.rows : kAhead;
    if (net_.rows < kManyRows) net_.ahead = std::max<int64_t>(1, std::min<int64_t>(ahead, net_.steps));
    FindKept();
    for (uint32_t s = 0; s < form_.stages; s++) AddStage(s);
    ChooseBlocks();
    for (uint32_t s = 0; s < form_.stages; s++) Layout(s);
    Pack();
  }
  keel_rc Keep(keel_launch* launch) {
    const uint64_t bytes = AddPlaces();
    return keel_cpu::Keep(launch, std::move(net_), Guard<RunNet>, bytes);
  }

 private:
  void FindKept() {
    number_.assign(form_.values.size(), KEEL_NO_VALUE);
    for (uint32_t v = 0; v < form_.values.size(); v++) {
      const StepValue& x = form_.values[v];
      if (x.kind != StepValue::kComputed || !x.is_kept) continue;
      number_[v] = static_cast<uint32_t>(net_.kept.size());
      net_.kept.emplace_back().size = DtypeOf(x.dtype).bits / 8;
    }
    for (uint32_t i = 0; i < form_.results.size(); i++) {
      const uint32_t kept = number_[form_.results[i]];
      if (i < form_.carry)
        net_.carried.push_back(kept);
      else
        net_.kept[kept].outs.push_back(i);
    }
    for (const StepProduct& p : form_.products)
      if (form_.values[p.left].kind != StepValue::kEntry) net_.kept[SourceOf(p.left).number].is_left = true;
  }

  // A value as the operand of a map, a product or a sum; of a sum the number is missing.
  StepSource SourceOf(uint32_t v) const {
    const StepValue& x = form_.values[v];
    if (x.kind == StepValue::kCarry) return {StepSource::kBefore, net_.carried[x.number]};
    if (x.kind == StepValue::kComputed) return {StepSource::kNow, number_[v]};
    if (x.kind == StepValue::kSum) return {StepSource::kSum};
    StepSource s = {StepSource::kOutside, x.number, x.kind == StepValue::kConstant ? x.data : nullptr};
    const size_t rank = x.dims.size();
    const int64_t last = rank > 0 ? x.dims[rank - 1] : 1;
    s.column = last == 1 ? 0 : 1;
    s.row = rank > 1 && x.dims[rank - 2] != 1 ? last : 0;
    s.size = DtypeOf(x.dtype).bits / 8;
    s.first = x.first * s.size;
    if (x.kind == StepValue::kEntry && form_.is_scan)
      s.entry = Product(x.dims.data(), static_cast<int64_t>(rank)) * s.size;
    return s;
  }

  void AddStage(uint32_t number) {
    const StageBody body(scan_, form_, number);
    std::optional<Map> map = CompileMap(body.map);
    if (!map) Throw(KEEL_UNIMPLEMENTED, "the ops of this scan are not elementwise");
    net_.stages.push_back({});
    NetStage& stage = net_.stages.back();
    for (uint32_t v : body.operands) AddOperand(v, number, &stage);
    for (uint32_t v : body.results) stage.results.push_back(number_[v]);
    const bool single = IsOne(form_.values[body.results[0]].dims);
    for (size_t i = 0; i < body.operands.size(); i++)
      if (!single && IsOne(form_.values[body.operands[i]].dims)) stage.ones |= 1u << i;
    stage.map = std::move(*map);
    for (const Sum& sum : form_.sums)
      if (sum.stage == number) AddSum(sum, &stage);
  }
  void AddOperand(uint32_t v, uint32_t stage_number, NetStage* stage) {
    StepSource s = SourceOf(v);
    const StepValue& x = form_.values[v];
    if (s.kind == StepSource::kSum)
      for (uint32_t i = 0; i < x.number; i++) s.number += form_.sums[i].stage == stage_number ? 1 : 0;
    const bool whole = IsOne(x.dims) || (net_.rows == 1 && s.column == 1);
    if (s.kind == StepSource::kOutside && s.entry == 0 && !whole) {
      const StepSource from = s;
      s = {StepSource::kPacked, static_cast<uint32_t>(net_.packed.size())};
      s.size = from.size;
      net_.packed.push_back({from, 0});
    }
    stage->operands.push_back(s);
  }
  void AddSum(const Sum& sum, NetStage* stage) {
    NetSum made;
    for (const std::vector<SumPart>& group : GroupsOf(sum)) {
      NetPart part = {SourceOf(LeftOf(group.back())), 0, 0, 0};
      for (const SumPart& each : group) part.depth += form_.products[each.product].depth;
      part.panel_bytes = PanelBytes(part.depth);
      part.share = (part.depth + net_.ahead - 1) / net_.ahead;
      part.is_joint = group.size() > 1;
      if (part.is_joint) {
        KeptValue& kept = net_.kept[part.left.number];
        kept.front = SourceOf(LeftOf(group[0]));
        kept.front_depth = form_.products[group[0].product].depth;
      }
      made.panel_bytes += part.panel_bytes;
      (IsAhead(group[0]) ? made.ahead : made.parts).push_back(part);
    }
    for (uint32_t v : sum.starts) {
      made.starts.push_back(SourceOf(v));
      if (made.starts.back().row != 0) made.start_row = net_.units;
    }
    stage->panel_bytes += made.panel_bytes;
    stage->sums.push_back(std::move(made));
  }

  uint32_t LeftOf(const SumPart& part) const { return form_.products[part.product].left; }
  bool IsEntry(const SumPart& part) const { return form_.values[LeftOf(part)].kind == StepValue::kEntry; }
  bool IsAhead(const SumPart& part) const { return net_.ahead > 1 && IsEntry(part); }
  int64_t PanelBytes(int64_t depth) const {
    return (depth * net_.op->panel * net_.op->packed_size + 63) / 64 * 64;
  }
  // Whether the left operands can be in one buffer: a carried value and an entry in front of it.
  bool CanJoin(const SumPart& entry, const SumPart& carried) const {
    if (net_.rows < kManyRows || !form_.is_scan || !IsEntry(entry)) return false;
    const StepValue &x = form_.values[LeftOf(entry)], &h = form_.values[LeftOf(carried)];
    if (h.kind != StepValue::kCarry) return false;
    const KeptValue& kept = net_.kept[net_.carried[h.number]];
    return kept.front_depth == 0 || kept.front.number == x.number;
  }
  // The products with entries of several steps come first.
  std::vector<std::vector<SumPart>> GroupsOf(const Sum& sum) const {
    const std::vector<SumPart>& all = sum.parts;
    if (all.size() == 2 && CanJoin(all[0], all[1])) return {all};
    if (all.size() == 2 && CanJoin(all[1], all[0])) return {{all[1], all[0]}};
    std::vector<std::vector<SumPart>> groups;
    for (const bool ahead : {true, false})
      for (const SumPart& part : all)
        if (IsAhead(part) == ahead) groups.push_back({part});
    return groups;
  }

  // Programs are called once for each tile and block, so few rows have longer blocks.
  void ChooseBlocks() {
    constexpr int64_t kBlock = 32, kTile = 24;
    int64_t most = kMostElements;
    for (NetStage& stage : net_.stages) {
      stage.code = &stage.map.all.plain;
      for (const MapFused& fused : stage.map.all.fused)
        if (fused.ones == stage.ones) {
          stage.code = &fused.code;
          break;
        }
      most = std::min({most, stage.code->tile, stage.map.all.plain.tile});
    }
    net_.block = net_.rows == 1 ? 4 * kBlock : net_.rows <= 4 ? 2 * kBlock : kBlock;
    net_.tile = std::min({std::max<int64_t>(net_.rows, 1), kTile, most / net_.block});
  }
  // Assigns places to the panels of a stage.
  void Layout(uint32_t number) {
    NetStage& stage = net_.stages[number];
    stage.cost = net_.block * stage.code->cost;
    for (const NetSum& sum : stage.sums)
      for (const auto* parts : {&sum.ahead, &sum.parts})
        for (const NetPart& part : *parts) stage.cost += part.depth * net_.block / 16;
    for (int64_t first = 0; first < net_.units; first += net_.block) {
      stage.panels.push_back(weight_bytes_);
      const int64_t panels = net_.op->Panels(std::min(net_.block, net_.units - first));
      weight_bytes_ += static_cast<uint64_t>(panels * stage.panel_bytes);
    }
  }
  void Pack() {
    net_.weights = AllocateConstant(weight_bytes_);
    for (uint32_t number = 0; number < form_.stages; number++) {
      char* to = net_.weights.get() + net_.stages[number].panels[0];
      for (int64_t first = 0; first < net_.units; first += net_.block)
        for (const Sum& sum : form_.sums)
          if (sum.stage == number)
            for (const std::vector<SumPart>& group : GroupsOf(sum)) to = PackGroup(group, first, to);
    }
  }
  char* PackGroup(const std::vector<SumPart>& group, int64_t first, char* to) const {
    const int64_t n = std::min(net_.block, net_.units - first);
    for (int64_t i = 0; i < net_.op->Panels(n); i++) {
      int64_t depth = 0;
      for (const SumPart& part : group) {
        const StepProduct& p = form_.products[part.product];
        const float* from = p.weights + part.matrix * p.matrix + (part.column + first) * p.column;
        net_.op->pack({from, p.row, p.column}, p.depth, n, i,
                      to + depth * net_.op->panel * net_.op->packed_size);
        depth += p.depth;
      }
      to += PanelBytes(depth);
    }
    return to;
  }
  uint64_t AddPlaces() {
    uint64_t end = 0;
    const auto take_bytes = [&](int64_t bytes) {
      return std::exchange(end, (end + static_cast<uint64_t>(bytes) + 63) / 64 * 64);
    };
    const auto take = [&](int64_t size) { return take_bytes(net_.rows * net_.units * size); };
    for (KeptValue& v : net_.kept) {
      v.width = v.front_depth + net_.units + kApart;
      for (int turn = 0; turn < 2; turn++) {
        v.blocks[turn] = take(v.size);
        if (v.is_left && net_.rows > 1) v.rows[turn] = take_bytes(net_.rows * v.width * v.size);
      }
    }
    for (PackedOperand& p : net_.packed) p.at = take(p.from.size);
    for (NetStage& stage : net_.stages)
      for (NetSum& sum : stage.sums) {
        if (!sum.starts.empty()) sum.start = take(sizeof(float));
        for (uint64_t& at : sum.made)
          if (!sum.ahead.empty()) at = take(static_cast<int64_t>(sizeof(float)) * net_.ahead);
      }
    return end;
  }

  const Node& scan_;
  RecurrentForm form_;
  Net net_;
  std::vector<uint32_t> number_;  // by value: its number among the kept
  uint64_t weight_bytes_ = 0;
};

}  // namespace

keel_rc PrepareNet(const Node& node, keel_launch* launch) { return Builder(node).Keep(launch); }

}  // namespace keel_cpu
