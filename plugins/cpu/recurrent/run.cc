// run.cc: see net.h.
#include <algorithm>
#include <cstring>

#include "plugins/cpu/map/tiles.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/recurrent/net.h"

namespace keel_cpu {
namespace {

// The rows and units of a task.
struct Area {
  int64_t row, rows, unit, units;
};

// Rows of a block are short: a call of memcpy for each would take longer than the copy.
void CopyRows(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t rows, int64_t bytes) {
  WithUsual<128>(bytes, [&](auto n) {
    for (int64_t r = 0; r < rows; r++)
      std::memcpy(to + r * to_step, from + r * from_step, static_cast<size_t>(n));
  });
}

// Copies an area of rows, broadcast by steps of 0, to [rows][units].
void Gather(const char* from, const StepSource& s, const Area& a, char* to) {
  from += (a.row * s.row + a.unit * s.column) * s.size;
  if (s.column == 1) return CopyRows(from, s.row * s.size, to, a.units * s.size, a.rows, a.units * s.size);
  VisitSize(s.size, [&]<class T>() {
    for (int64_t r = 0; r < a.rows; r++)
      std::fill_n(reinterpret_cast<T*>(to) + r * a.units, a.units,
                  reinterpret_cast<const T*>(from)[r * s.row]);
  });
}

class NetRun {
 public:
  NetRun(const keel_call* call, const Net& net)
      : call_(call),
        net_(net),
        scratch_(static_cast<char*>(call->scratch)),
        tiles_(net.Tiles()),
        areas_(tiles_ * net.Blocks()) {}

  keel_rc All() {
    if (net_.rows == 0) return KEEL_OK;
    Begin();
    for (step_ = 0; step_ < net_.steps; step_++) {
      entry_ = net_.reverse ? net_.steps - 1 - step_ : step_;
      group_ = step_ / net_.ahead, in_group_ = step_ - group_ * net_.ahead;
      CopyEntries();
      for (const NetStage& stage : net_.stages) {
        RunStage(stage);
        if (Cancelled(call_)) return KEEL_CANCELLED;
      }
    }
    for (uint32_t i = 0; i < net_.carried.size(); i++) End(net_.kept[net_.carried[i]], Out<char>(call_, i));
    return KEEL_OK;
  }

 private:
  int Now() const { return static_cast<int>(step_ & 1); }
  template <class F>
  void EachArea(const F& f) const {
    for (int64_t u = 0; u < areas_; u++) f(AreaOf(u));
  }
  // Blocks of units are the outer loop, as their panels are large.
  Area AreaOf(int64_t u) const {
    const int64_t block = tiles_ == 1 ? u : u / tiles_;
    const int64_t row = (u - block * tiles_) * net_.tile, unit = block * net_.block;
    return {row, std::min(net_.tile, net_.rows - row), unit, std::min(net_.block, net_.units - unit)};
  }
  int64_t InBlocks(const Area& a) const { return a.row * net_.units + a.rows * a.unit; }

  void Begin() {
    for (const PackedOperand& p : net_.packed)
      EachArea([&](const Area& a) {
        Gather(Outside(p.from), p.from, a, scratch_ + p.at + InBlocks(a) * p.from.size);
      });
    for (const NetStage& stage : net_.stages)
      for (const NetSum& sum : stage.sums) AddStarts(sum);
    for (uint32_t i = 0; i < net_.carried.size(); i++) {
      const KeptValue& v = net_.kept[net_.carried[i]];
      const StepSource whole = {StepSource::kOutside, i, nullptr, net_.units, 1, 0, 0, v.size};
      const char* from = In<char>(call_, static_cast<int>(i));
      EachArea([&](const Area& a) { Gather(from, whole, a, scratch_ + v.blocks[1] + InBlocks(a) * v.size); });
      if (v.is_left && net_.rows > 1)
        CopyRows(from, net_.units * v.size, RowOf(v, 1, 0), v.width * v.size, net_.rows, net_.units * v.size);
    }
  }
  void AddStarts(const NetSum& sum) const {
    float* to = reinterpret_cast<float*>(scratch_ + sum.start);
    const int64_t rows = sum.start_row == 0 ? 1 : net_.rows;
    for (const StepSource& s : sum.starts)
      for (int64_t r = 0; r < rows; r++) {
        const auto* from = reinterpret_cast<const float*>(Outside(s)) + r * s.row;
        float* row = to + r * net_.units;
        for (int64_t j = 0; j < net_.units; j++) row[j] = (&s == sum.starts.data() ? 0 : row[j]) + from[j];
      }
  }
  void End(const KeptValue& v, char* to) const {
    const char* from = scratch_ + v.blocks[(net_.steps + 1) & 1];
    EachArea([&](const Area& a) { CopyOut(from + InBlocks(a) * v.size, v.size, a, to); });
  }
  // From [rows][units] of an area to rows.
  void CopyOut(const char* from, int64_t size, const Area& a, char* to) const {
    CopyRows(from, a.units * size, to + (a.row * net_.units + a.unit) * size, net_.units * size, a.rows,
             a.units * size);
  }
  // A value's rows as a left operand: elements from one to the next, and where one begins.
  char* RowOf(const KeptValue& v, int turn, int64_t row) const {
    if (net_.rows == 1) return scratch_ + v.blocks[turn];
    return scratch_ + v.rows[turn] + (row * v.width + v.beside_depth) * v.size;
  }
  void CopyEntries() const {
    for (const KeptValue& v : net_.kept)
      if (v.beside_depth > 0) {
        const int64_t bytes = v.beside_depth * v.size;
        CopyRows(Outside(v.beside), bytes, scratch_ + v.rows[1 - Now()], v.width * v.size, net_.rows, bytes);
      }
  }
  // Fetches an area's share of the next step's entry, of so many bytes, while this step multiplies.
  template <bool kWrites>
  void FetchNext(const char* entry, int64_t bytes, const Area& a) const {
    const int64_t next = net_.reverse ? -1 : 1;
    if (a.row > 0 || step_ + 1 == net_.steps) return;
    const int64_t end = bytes * (a.unit + a.units) / net_.units;
    for (int64_t i = bytes * a.unit / net_.units; i < end; i += 64)
      __builtin_prefetch(entry + next * bytes + i, kWrites, 2);
  }
  void FetchNext(const Area& a) const {
    for (const KeptValue& v : net_.kept) {
      if (v.beside_depth == 0) continue;
      const int64_t bytes = net_.rows * net_.units * v.size;
      FetchNext<false>(Outside(v.beside), net_.rows * v.beside_depth * v.size, a);
      for (uint32_t out : v.outs)
        FetchNext<true>(Out<char>(call_, static_cast<int>(out)) + entry_ * bytes, bytes, a);
    }
  }
  const char* Outside(const StepSource& s) const {
    const char* base = s.data != nullptr ? s.data : In<char>(call_, static_cast<int>(s.number));
    return base + s.first + s.entry * entry_;
  }

  void RunStage(const NetStage& stage) const {
    const int64_t cost = stage.cost * net_.tile;
    ParallelFor(call_, areas_, cost, [&](int64_t begin, int64_t end) {
      const bool backward = Now() == 1;  // each second step finds the panels read last in a cache
      for (int64_t u = begin; u < end; u++) RunArea(stage, AreaOf(backward ? begin + end - 1 - u : u));
    });
  }

  Matrix Rows(const NetPart& part, const Area& a) const {
    const StepSource& s = part.left;
    if (s.kind == StepSource::kOutside) return {Outside(s) + a.row * s.row * s.size, s.row, 1};
    const KeptValue& v = net_.kept[s.number];
    const char* row = RowOf(v, s.kind == StepSource::kBefore ? 1 - Now() : Now(), a.row);
    return {part.is_joint ? row - v.beside_depth * v.size : row, v.width, 1};
  }
  // ---- products with entries of several steps

  int64_t StepsOf(int64_t group) const { return std::min(net_.ahead, net_.steps - group * net_.ahead); }
  // The entries of a group of steps, which are in order in memory.
  const float* Entries(const NetPart& part, int64_t group) const {
    const int64_t first = group * net_.ahead, count = StepsOf(group);
    const StepSource& s = part.left;
    return reinterpret_cast<const float*>(In<char>(call_, static_cast<int>(s.number)) + s.first +
                                          s.entry * (net_.reverse ? net_.steps - first - count : first));
  }
  float* Made(const NetSum& sum, const Area& a, int64_t group) const {
    return reinterpret_cast<float*>(scratch_ + sum.made[group & 1]) + net_.ahead * net_.rows * a.unit;
  }
  const float* MadeNow(const NetSum& sum, const Area& a) const {
    const int64_t at = net_.reverse ? StepsOf(group_) - 1 - in_group_ : in_group_;
    return Made(sum, a, group_) + (at * net_.rows + a.row) * a.units;
  }
  // Whether the products with the next group's entries are made meanwhile.
  bool IsPaired(const NetSum& sum, const Area& a, int64_t group) const {
    return net_.pair.run != nullptr && a.units % net_.op->panel == 0 && sum.ahead.size() == 1 &&
           sum.parts.size() == 1 && (group + 2) * net_.ahead <= net_.steps;
  }
  // The sums' products with entries, if no step before made them; the panels begin at `panel`.
  void MakeAhead(const NetSum& sum, const Area& a, const char* panel) const {
    if (a.row > 0 || in_group_ > 0 || (group_ > 0 && IsPaired(sum, a, group_ - 1))) return;
    for (const NetPart& part : sum.ahead) {
      const Matrix left = {Entries(part, group_), part.depth, 1};
      const bool first = &part == sum.ahead.data();
      const Start start = first && net_.rows == 1 ? StartOf(sum, a) : Start{};
      panel = Multiply(part, left, StepsOf(group_) * net_.rows, a.units, panel, start, !first,
                       Made(sum, a, group_));
    }
  }

  // ---- sums

  Start StartOf(const NetSum& sum, const Area& a) const {
    if (sum.starts.empty()) return {};
    const auto row = static_cast<int64_t>(sum.start_row);
    return {reinterpret_cast<const float*>(scratch_ + sum.start) + a.row * row + a.unit, row};
  }
  // Returns the end of the panels.
  const char* Multiply(const NetPart& part, const Matrix& left, int64_t rows, int64_t units,
                       const char* panel, const Start& start, bool adds, float* to) const {
    const MatmulOp& op = *net_.op;
    const int64_t panels = op.Panels(units);
    if (rows == 1 && !adds && part.depth <= op.part && units % op.panel == 0) {
      op.multiply_row(left, panel, part.panel_bytes, panels, part.depth, start.data, to);
      return panel + panels * part.panel_bytes;
    }
    Start first = start;
    for (int64_t p = 0; p < panels; p++, panel += part.panel_bytes) {
      const Next next = {panel + part.panel_bytes, part.panel_bytes};
      op.multiply(left, {panel, op.panel, next, first}, rows, units, part.depth, p, adds, to);
      if (start.data != nullptr) first.data = static_cast<const float*>(first.data) + op.panel;
    }
    return panel;
  }
  // The panels of a part and, a share of one for each, those of the next group's entries.
  void MultiplyPaired(const NetSum& sum, const Area& a, const char* ahead, const char* panel,
                      float* to) const {
    const NetPart &one = sum.parts[0], &many = sum.ahead[0];
    const int64_t panels = net_.op->Panels(a.units), columns = net_.op->panel;
    const float *left = static_cast<const float*>(Rows(one, a).data), *begun = MadeNow(sum, a);
    const float *entries = Entries(many, group_ + 1),
                *start = static_cast<const float*>(StartOf(sum, a).data);
    const int64_t depth = (many.depth + net_.ahead - 1) / net_.ahead;
    int64_t share = in_group_ * panels % net_.ahead, other = in_group_ * panels / net_.ahead;
    for (int64_t p = 0; p < panels; p++, panel += one.panel_bytes) {
      const int64_t begin = std::min(share * depth, many.depth), end = std::min(begin + depth, many.depth);
      float* made = Made(sum, a, group_ + 1) + other * columns;
      const float* weights =
          reinterpret_cast<const float*>(ahead + other * many.panel_bytes) + begin * columns;
      const float* first = share > 0 ? made : start == nullptr ? nullptr : start + other * columns;
      net_.pair.run(
          {left, one.depth, reinterpret_cast<const float*>(panel), begun + p * columns, to + p * columns},
          {entries + begin, many.depth, end - begin, weights, first, share > 0 ? a.units : 0, made, a.units});
      if (++share == net_.ahead) share = 0, other++;
    }
  }
  // The sums of an area, each [rows][units].
  void Add(const NetStage& stage, const Area& a, float* to) const {
    const int64_t panels = net_.op->Panels(a.units);
    const char* panel = net_.weights.get() + stage.panels[static_cast<size_t>(a.unit / net_.block)];
    for (const NetSum& sum : stage.sums) {
      const char* ahead = panel;
      if (!sum.ahead.empty()) MakeAhead(sum, a, panel);
      for (const NetPart& part : sum.ahead) panel += panels * part.panel_bytes;
      if (IsPaired(sum, a, group_)) {
        MultiplyPaired(sum, a, ahead, panel, to);
        panel += panels * sum.parts[0].panel_bytes;
      } else {
        panel = AddParts(sum, a, panel, to);
      }
      to += kMostElements;
    }
  }
  const char* AddParts(const NetSum& sum, const Area& a, const char* panel, float* to) const {
    const bool begun = !sum.ahead.empty();
    const float* made = begun ? MadeNow(sum, a) : nullptr;
    Start start = begun && net_.rows == 1 ? Start{made, 0} : StartOf(sum, a);
    if (sum.parts.empty()) {
      if (start.data == nullptr) start.data = made, start.row = a.units;
      CopyRows(static_cast<const char*>(start.data), start.row * 4, reinterpret_cast<char*>(to), a.units * 4,
               a.rows, a.units * 4);
      if (start.data == made) return panel;
    }
    for (const NetPart& part : sum.parts) {
      const bool first = &part == sum.parts.data();
      panel = Multiply(part, Rows(part, a), a.rows, a.units, panel, first ? start : Start{}, !first, to);
    }
    if (begun && net_.rows > 1)
      for (int64_t i = 0; i < a.rows * a.units; i++) to[i] += made[i];
    return panel;
  }

  void RunArea(const NetStage& stage, const Area& a) const {
    alignas(64) float sums[kMostSums * kMostElements];
    alignas(64) char temps[kMapTemps * kSlotBytes], gathered[kMapOperands * kSlotBytes];
    FetchNext(a);
    Add(stage, a, sums);
    char* at[kMapSlots];
    bool one[kMapSlots];
    for (size_t i = 0; i < stage.operands.size(); i++) {
      one[i] = stage.ones >> i & 1;
      at[i] = Operand(stage.operands[i], a, one[i], sums, gathered + i * kSlotBytes);
    }
    char** to = at + stage.operands.size();
    for (size_t i = 0; i < stage.results.size(); i++) {
      const KeptValue& v = net_.kept[stage.results[i]];
      to[i] = scratch_ + v.blocks[Now()] + InBlocks(a) * v.size;
    }
    for (int t = 0; t < stage.code->temps; t++)
      to[stage.results.size() + static_cast<size_t>(t)] = temps + t * kSlotBytes;
    for (const MapStep& s : stage.code->steps) RunMapStep(s, at, one, a.rows * a.units);
    for (size_t i = 0; i < stage.results.size(); i++) Spread(net_.kept[stage.results[i]], a, to[i]);
  }
  char* Operand(const StepSource& s, const Area& a, bool one, float* sums, char* gathered) const {
    switch (s.kind) {
      case StepSource::kSum:
        return reinterpret_cast<char*>(sums + s.number * kMostElements);
      case StepSource::kBefore:
      case StepSource::kNow: {
        const KeptValue& v = net_.kept[s.number];
        return scratch_ + v.blocks[s.kind == StepSource::kNow ? Now() : 1 - Now()] + InBlocks(a) * v.size;
      }
      case StepSource::kPacked:
        return scratch_ + net_.packed[s.number].at + InBlocks(a) * s.size;
      case StepSource::kOutside:
        break;
    }
    const char* from = Outside(s);
    if (one) return const_cast<char*>(from);
    if (a.rows == 1 && s.column == 1) return const_cast<char*>(from) + (a.row * s.row + a.unit) * s.size;
    Gather(from, s, a, gathered);
    return gathered;
  }
  // Copies an area of a value to where it is needed as rows.
  void Spread(const KeptValue& v, const Area& a, const char* from) const {
    if (v.is_left && net_.rows > 1)
      CopyRows(from, a.units * v.size, RowOf(v, Now(), a.row) + a.unit * v.size, v.width * v.size, a.rows,
               a.units * v.size);
    for (uint32_t out : v.outs)
      CopyOut(from, v.size, a,
              Out<char>(call_, static_cast<int>(out)) + entry_ * net_.rows * net_.units * v.size);
  }

  const keel_call* call_;
  const Net& net_;
  char* scratch_;
  const int64_t tiles_, areas_;
  int64_t step_ = 0, entry_ = 0;      // of the operands and results
  int64_t group_ = 0, in_group_ = 0;  // of steps whose products with entries are made at once
};

}  // namespace

keel_rc RunNet(const keel_call* call) { return NetRun(call, State<Net>(call)).All(); }

}  // namespace keel_cpu
