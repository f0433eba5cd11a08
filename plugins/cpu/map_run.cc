// map_run.cc: interprets the programs of map.cc. Three ways through the elements:
//   flat   every operand has all elements or one
//   rows   operands are broadcast and the last dim is long: in each row they again have all or one
//   bits   ... and the last dim is short: broadcast operands are spread into a tile first
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>

#include "map.h"
#include "parallel.h"

namespace keel_cpu {
namespace {

// What one run of a program needs to know of its operands; built per call, on the stack.
struct Layout {
  Layout(const keel_call* c, const Map* m, const MapProgram* p) : call(c), map(m), program(p) {}
  const keel_call* call;
  const Map* map;
  const MapProgram* program;
  const MapCode* code = &program->plain;
  int64_t count = 0;          // elements of each result
  bool one[kMapOperands];     // has one element (in flat tiles, or in a row)
  bool spread[kMapOperands];  // neither one nor all
  int rank = 0;               // of the result, dims that all operands walk alike merged; 0 when flat
  int64_t dims[KEEL_MAX_RANK];
  int64_t steps[kMapOperands][KEEL_MAX_RANK];
};

// The first failure in the order in which the ops alone would have met it.
class Failure {
 public:
  void Note(size_t step, int64_t at) {
    const uint64_t now = static_cast<uint64_t>(step) << 48 | static_cast<uint64_t>(at);
    for (uint64_t old = first_; now < old && !first_.compare_exchange_weak(old, now);) continue;
  }
  keel_rc Report(const Layout& l) const {
    const uint64_t first = first_;
    if (first == kNone) return Done(l.call);
    char text[96];
    std::snprintf(text, sizeof(text), "%s at element %lld", l.code->steps[first >> 48].failure,
                  static_cast<long long>(first & ((uint64_t{1} << 48) - 1)));
    return l.call->env->host->fail(KEEL_RANGE, text);
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  std::atomic<uint64_t> first_ = kNone;
};

// Where the slots lie for one tile, and which of them hold one element.
struct Slots {
  char* at[kMapSlots];
  bool one[kMapSlots];
};

// The loop of a binary step: both vary, a is one element, b is one element.
const BinaryLoop& Choose(const MapStep& s, const bool* one) {
  return s.binary[one[s.out] ? 0 : one[s.in[0]] ? 1 : one[s.in[1]] ? 2 : 0];
}
int64_t RunStep(const MapStep& s, const Slots& t, int64_t n) {
  char* const* at = t.at;
  switch (s.kind) {
    case MapStep::kUnary:
      s.unary(at[s.in[0]], at[s.out], n);
      return -1;
    case MapStep::kBinary:
      return Choose(s, t.one)(at[s.in[0]], at[s.in[1]], at[s.out], n);
    case MapStep::kSelect:
      s.select(at[s.in[0]], !t.one[s.in[0]], at[s.in[1]], !t.one[s.in[1]], at[s.in[2]], !t.one[s.in[2]],
               at[s.out], n);
      return -1;
    case MapStep::kClamp:
      s.clamp(at[s.in[0]], at[s.in[1]], at[s.in[2]], at[s.out], n);
      return -1;
    case MapStep::kFused:
      s.fused(at, n);
      return -1;
  }
  return -1;
}

// All steps on n elements, the first of which is number `first` of the result. A step whose operands are
// all one element makes one element.
void RunTile(const Layout& l, Slots* t, int64_t n, int64_t first, Failure* failure) {
  size_t i = 0;
  for (const MapStep& s : l.code->steps) {
    bool one = s.kind != MapStep::kFused && t->one[s.in[0]];
    for (int k = 1; k < s.n_in; k++) one &= t->one[s.in[k]];
    if (s.kind != MapStep::kFused)
      t->one[s.out] = one;
    else
      for (uint64_t left = s.writes; left != 0; left &= left - 1) t->one[std::countr_zero(left)] = false;
    const int64_t bad = RunStep(s, *t, one ? 1 : n);
    if (bad >= 0) return failure->Note(i, first + bad);
    i++;
  }
}

const keel_tensor& ShapeOf(const Layout& l) { return *l.call->out[l.program->results[0]]; }

// Fills what the layout says of operands; false if they are all flat.
bool ReadOperands(Layout* l) {
  bool broadcast = false;
  for (const uint16_t v : l->program->operands) {
    const int64_t n = keel_count(l->call->in[v]);
    l->one[v] = n == 1;
    l->spread[v] = n != 1 && n != l->count;
    broadcast |= l->spread[v];
  }
  return broadcast;
}

void MergeDims(Layout* l) {
  const keel_tensor& y = ShapeOf(*l);
  const auto& operands = l->program->operands;
  int64_t strides[kMapOperands][KEEL_MAX_RANK] = {};
  for (const uint16_t v : operands) {
    const keel_tensor& t = *l->call->in[v];
    int64_t step = 1;
    for (int d = t.ndim - 1; d >= 0; d--) {
      strides[v][d + y.ndim - t.ndim] = t.shape[d] == 1 ? 0 : step;
      step *= t.shape[d];
    }
  }
  for (int d = 0; d < y.ndim; d++) {
    if (y.shape[d] == 1) continue;
    bool merge = l->rank > 0;
    for (const uint16_t v : operands) merge = merge && l->steps[v][l->rank - 1] == strides[v][d] * y.shape[d];
    const int to = merge ? l->rank - 1 : l->rank++;
    l->dims[to] = merge ? l->dims[to] * y.shape[d] : y.shape[d];
    for (const uint16_t v : operands) l->steps[v][to] = strides[v][d];
  }
}

void SetResults(const Layout& l, int64_t element, Slots* t) {
  for (const uint16_t r : l.program->results)
    t->at[l.map->n_in + r] = Out<char>(l.call, r) + element * l.map->sizes[l.map->n_in + r];
}
// Operand v from this element on; its one element, if it has no more.
void SetOperand(const Layout& l, int v, int64_t element, Slots* t) {
  t->at[v] = const_cast<char*>(In<char>(l.call, v)) + element * l.map->sizes[v];
}
// What stays the same for all tiles.
void Begin(const Layout& l, char* temps, int64_t slot, Slots* t) {
  for (const uint16_t v : l.program->operands) t->one[v] = l.one[v];
  const int first = l.map->n_in + l.map->n_out;
  for (int i = 0; i < l.code->temps; i++) t->at[first + i] = temps + i * slot;
}

void RunOne(Layout* l, Failure* failure) {
  alignas(64) char temps[kMapTemps * 8];
  Slots t;
  for (const uint16_t v : l->program->operands) l->one[v] = false;  // elements side by side, of which one
  if (!l->program->fused.empty()) l->code = &l->program->fused[0].code;
  Begin(*l, temps, 8, &t);
  for (const uint16_t v : l->program->operands) SetOperand(*l, v, 0, &t);
  SetResults(*l, 0, &t);
  RunTile(*l, &t, 1, 0, failure);
}

// The quickest code for the operands that have one element.
void ChooseCode(Layout* l) {
  uint32_t ones = 0;
  for (const uint16_t v : l->program->operands) ones |= uint32_t{l->one[v]} << v;
  for (const MapFused& fused : l->program->fused)
    if (fused.ones == ones) l->code = &fused.code;
}

void RunFlat(const Layout& l, Failure* failure) {
  const MapProgram& p = *l.program;
  const int64_t tile = l.code->tile, tiles = (l.count + tile - 1) / tile;
  ParallelFor(l.call, tiles, std::min(tile, l.count) * l.code->cost, [&](int64_t begin, int64_t end) {
    alignas(64) char temps[kMapTemps * kSlotBytes];
    Slots t;
    Begin(l, temps, kSlotBytes, &t);
    for (int64_t i = begin; i < end; i++) {
      const int64_t e = i * tile;
      for (const uint16_t v : p.operands) SetOperand(l, v, l.one[v] ? 0 : e, &t);
      SetResults(l, e, &t);
      RunTile(l, &t, std::min(tile, l.count - e), e, failure);
    }
  });
}

// Where element 0 of a row lies in operand v.
int64_t RowStart(const Layout& l, int v, int64_t row) {
  int64_t start = 0;
  for (int d = l.rank - 2; d >= 0; d--) {
    start += row % l.dims[d] * l.steps[v][d];
    row /= l.dims[d];
  }
  return start;
}

void RunRows(Layout* layout, Failure* failure) {
  const MapProgram& p = *layout->program;
  for (const uint16_t v : p.operands) layout->one[v] = layout->steps[v][layout->rank - 1] == 0;
  ChooseCode(layout);
  const Layout& l = *layout;
  const int64_t tile = l.code->tile, n = l.dims[l.rank - 1], parts = (n + tile - 1) / tile;
  ParallelFor(l.call, l.count / n * parts, std::min(n, tile) * l.code->cost, [&](int64_t begin, int64_t end) {
    alignas(64) char temps[kMapTemps * kSlotBytes];
    Slots t;
    Begin(l, temps, kSlotBytes, &t);
    for (int64_t unit = begin; unit < end; unit++) {
      const int64_t row = unit / parts, e = unit % parts * tile;
      for (const uint16_t v : p.operands) SetOperand(l, v, RowStart(l, v, row) + (l.one[v] ? 0 : e), &t);
      SetResults(l, row * n + e, &t);
      RunTile(l, &t, std::min(tile, n - e), row * n + e, failure);
    }
  });
}

// Elements [first, first + n) of the result's places, taken from operand v.
template <class T>
void SpreadTile(const Layout& l, int v, int64_t first, int64_t n, T* to) {
  const int last = l.rank - 1;
  const int64_t inner = l.dims[last], step = l.steps[v][last];
  int64_t index[KEEL_MAX_RANK], in = first % inner, row = first / inner;
  const T* x = In<T>(l.call, v) + RowStart(l, v, row);
  for (int d = last - 1; d >= 0; d--) index[d] = row % l.dims[d], row /= l.dims[d];
  for (int64_t done = 0; done < n;) {
    const int64_t m = std::min(inner - in, n - done);
    if (step != 0)
      for (int64_t i = 0; i < m; i++) to[done + i] = x[in + i];
    else
      for (int64_t i = 0; i < m; i++) to[done + i] = *x;
    done += m;
    in = 0;
    for (int d = last - 1; d >= 0; d--) {
      x += l.steps[v][d];
      if (++index[d] < l.dims[d]) break;
      x -= l.steps[v][d] * l.dims[d];
      index[d] = 0;
    }
  }
}

void RunBits(const Layout& l, Failure* failure) {
  const MapProgram& p = *l.program;
  const int64_t most = p.plain.tile, tiles = (l.count + most - 1) / most;
  ParallelFor(l.call, tiles, most * (l.code->cost + 2), [&](int64_t begin, int64_t end) {
    alignas(64) char temps[kMapTemps * kSlotBytes];
    alignas(64) char spread[kMapOperands * kSlotBytes];
    Slots t;
    Begin(l, temps, kSlotBytes, &t);
    for (int64_t tile = begin; tile < end; tile++) {
      const int64_t e = tile * most, n = std::min(most, l.count - e);
      for (const uint16_t v : p.operands) {
        SetOperand(l, v, l.one[v] || l.spread[v] ? 0 : e, &t);
        if (!l.spread[v]) continue;
        t.at[v] = spread + v * kSlotBytes;
        VisitSize(l.map->sizes[v], [&]<class T>() { SpreadTile(l, v, e, n, reinterpret_cast<T*>(t.at[v])); });
      }
      SetResults(l, e, &t);
      RunTile(l, &t, n, e, failure);
    }
  });
}

keel_rc RunProgram(const keel_call* call, const Map& map, const MapProgram& program) {
  constexpr int64_t kLongRow = 256;
  Layout l(call, &map, &program);
  l.count = keel_count(&ShapeOf(l));
  if (l.count == 0) return KEEL_OK;
  Failure failure;
  if (l.count == 1) {
    RunOne(&l, &failure);
  } else if (!ReadOperands(&l)) {
    ChooseCode(&l);
    RunFlat(l, &failure);
  } else {
    MergeDims(&l);
    if (l.dims[l.rank - 1] >= kLongRow) {
      RunRows(&l, &failure);
    } else {
      ChooseCode(&l);
      RunBits(l, &failure);
    }
  }
  return failure.Report(l);
}

bool SameShapes(const keel_call* call) {
  const keel_tensor& first = *call->out[0];
  for (int r = 1; r < call->n_out; r++) {
    const keel_tensor& t = *call->out[r];
    if (t.ndim != first.ndim || !std::equal(t.shape, t.shape + t.ndim, first.shape)) return false;
  }
  return true;
}

}  // namespace

keel_rc RunMap(const keel_call* call) {
  const Map& map = State<Map>(call);
  if (map.single.empty() || SameShapes(call)) return RunProgram(call, map, map.all);
  for (size_t r = map.single.size(); r-- > 0;)  // result 0, which may lie on an operand, last
    if (const keel_rc rc = RunProgram(call, map, map.single[r]); rc != KEEL_OK) return rc;
  return KEEL_OK;
}

}  // namespace keel_cpu
