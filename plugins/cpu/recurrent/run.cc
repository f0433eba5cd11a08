// run.cc: a net's steps, stage by stage, areas in parallel; see net.h.
#include <algorithm>
#include <cstring>

#include "plugins/cpu/map/tiles.h"
#include "plugins/cpu/parallel/fetch.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/recurrent/step.h"

namespace keel_cpu {
namespace {

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
  NetRun(const keel_call* call, const Net& net) : net_(net), s_(call, net) {}

  keel_rc All() {
    if (net_.rows == 0) return KEEL_OK;
    Begin();
    for (int64_t step = 0; step < net_.steps; step++) {
      s_.Go(step);
      CopyEntries();
      for (const NetStage& stage : net_.stages) {
        RunStage(stage);
        if (Cancelled(s_.call)) return KEEL_CANCELLED;
      }
    }
    for (uint32_t i = 0; i < net_.carried.size(); i++)
      End(net_.kept[net_.carried[i]], Out<char>(s_.call, static_cast<int>(i)));
    return KEEL_OK;
  }

 private:
  template <class F>
  void EachArea(const F& f) const {
    for (int64_t u = 0; u < s_.areas; u++) f(s_.AreaOf(u));
  }

  // ---- before and after the steps

  void Begin() const {
    for (const PackedOperand& p : net_.packed)
      EachArea([&](const Area& a) {
        Gather(s_.Outside(p.from), p.from, a, s_.scratch + p.at + s_.InBlocks(a) * p.from.size);
      });
    for (const NetStage& stage : net_.stages)
      for (const NetSum& sum : stage.sums) AddStarts(sum);
    for (uint32_t i = 0; i < net_.carried.size(); i++)
      BeginCarried(net_.kept[net_.carried[i]], In<char>(s_.call, static_cast<int>(i)));
  }
  // The operand is the value of the step before the first.
  void BeginCarried(const KeptValue& v, const char* from) const {
    const StepSource whole = {StepSource::kOutside, 0, nullptr, net_.units, 1, 0, 0, v.size};
    EachArea([&](const Area& a) { Gather(from, whole, a, s_.BlockOf(v, 1, a)); });
    const int64_t bytes = net_.units * v.size;
    if (v.is_left && net_.rows > 1)
      CopyRows(from, bytes, s_.RowOf(v, 1, 0), v.width * v.size, net_.rows, bytes);
  }
  void AddStarts(const NetSum& sum) const {
    float* to = reinterpret_cast<float*>(s_.scratch + sum.start);
    const int64_t rows = sum.start_row == 0 ? 1 : net_.rows;
    for (const StepSource& s : sum.starts)
      for (int64_t r = 0; r < rows; r++) {
        const auto* from = reinterpret_cast<const float*>(s_.Outside(s)) + r * s.row;
        float* row = to + r * net_.units;
        for (int64_t j = 0; j < net_.units; j++) row[j] = (&s == sum.starts.data() ? 0 : row[j]) + from[j];
      }
  }
  void End(const KeptValue& v, char* to) const {
    const int last = static_cast<int>((net_.steps + 1) & 1);
    EachArea([&](const Area& a) { CopyOut(s_.BlockOf(v, last, a), v.size, a, to); });
  }
  // From [rows][units] of an area to rows.
  void CopyOut(const char* from, int64_t size, const Area& a, char* to) const {
    CopyRows(from, a.units * size, to + (a.row * net_.units + a.unit) * size, net_.units * size, a.rows,
             a.units * size);
  }

  // ---- a step

  void CopyEntries() const {
    for (const KeptValue& v : net_.kept)
      if (v.front_depth > 0) {
        const int64_t bytes = v.front_depth * v.size;
        CopyRows(s_.Outside(v.front), bytes, s_.scratch + v.rows[1 - s_.now], v.width * v.size, net_.rows,
                 bytes);
      }
  }
  // Fetches an area's share of the next step's entry, of so many bytes, while this step multiplies.
  template <bool kWrites>
  void FetchNext(const char* entry, int64_t bytes, const Area& a) const {
    const int64_t next = net_.reverse ? -1 : 1;
    if (a.row > 0 || s_.step + 1 == net_.steps) return;
    const int64_t begin = bytes * a.unit / net_.units, end = bytes * (a.unit + a.units) / net_.units;
    FetchLines<kIntoL2, kWrites>(entry + next * bytes + begin, end - begin);
  }
  void FetchNext(const Area& a) const {
    for (const KeptValue& v : net_.kept) {
      if (v.front_depth == 0) continue;
      const int64_t bytes = net_.rows * net_.units * v.size;
      FetchNext<false>(s_.Outside(v.front), net_.rows * v.front_depth * v.size, a);
      for (uint32_t out : v.outs) FetchNext<true>(EntryOf(out, bytes), bytes, a);
    }
  }
  char* EntryOf(uint32_t out, int64_t bytes) const {
    return Out<char>(s_.call, static_cast<int>(out)) + s_.entry * bytes;
  }
  void RunStage(const NetStage& stage) const {
    const int64_t cost = stage.cost * net_.tile;
    ParallelFor(s_.call, s_.areas, cost, [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; u++)
        RunArea(stage, s_.AreaOf(s_.IsBackward() ? begin + end - 1 - u : u));
    });
  }
  void RunArea(const NetStage& stage, const Area& a) const {
    alignas(64) float sums[kMostSums * kMostElements];
    alignas(64) char temps[kMapTemps * kSlotBytes], gathered[kMapOperands * kSlotBytes];
    FetchNext(a);
    AddSums(s_, stage, a, sums);
    char* at[kMapSlots];
    bool one[kMapSlots];
    for (size_t i = 0; i < stage.operands.size(); i++) {
      one[i] = stage.ones >> i & 1;
      at[i] = Operand(stage.operands[i], a, one[i], sums, gathered + i * kSlotBytes);
    }
    char** to = at + stage.operands.size();
    for (uint32_t kept : stage.results) *to++ = s_.BlockOf(net_.kept[kept], s_.now, a);
    for (int t = 0; t < stage.code->temps; t++) *to++ = temps + t * kSlotBytes;
    for (const MapStep& s : stage.code->steps) RunMapStep(s, at, one, a.rows * a.units);
    for (uint32_t kept : stage.results) Spread(net_.kept[kept], a);
  }
  char* Operand(const StepSource& s, const Area& a, bool one, float* sums, char* gathered) const {
    switch (s.kind) {
      case StepSource::kSum:
        return reinterpret_cast<char*>(sums + s.number * kMostElements);
      case StepSource::kBefore:
        return s_.BlockOf(net_.kept[s.number], 1 - s_.now, a);
      case StepSource::kNow:
        return s_.BlockOf(net_.kept[s.number], s_.now, a);
      case StepSource::kPacked:
        return s_.scratch + net_.packed[s.number].at + s_.InBlocks(a) * s.size;
      case StepSource::kOutside:
        break;
    }
    const char* from = s_.Outside(s);
    if (one) return const_cast<char*>(from);
    if (a.rows == 1 && s.column == 1) return const_cast<char*>(from) + (a.row * s.row + a.unit) * s.size;
    Gather(from, s, a, gathered);
    return gathered;
  }
  // Copies an area of a value to where it is needed as rows.
  void Spread(const KeptValue& v, const Area& a) const {
    const char* from = s_.BlockOf(v, s_.now, a);
    const int64_t bytes = a.units * v.size;
    if (v.is_left && net_.rows > 1)
      CopyRows(from, bytes, s_.RowOf(v, s_.now, a.row) + a.unit * v.size, v.width * v.size, a.rows, bytes);
    for (uint32_t out : v.outs) CopyOut(from, v.size, a, EntryOf(out, net_.rows * net_.units * v.size));
  }

  const Net& net_;
  NetStep s_;
};

}  // namespace

keel_rc RunNet(const keel_call* call) { return NetRun(call, State<Net>(call)).All(); }

}  // namespace keel_cpu
