// tiles.cc: see tiles.h.
#include "plugins/cpu/map/tiles.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace keel_cpu {

// ---- the layout

MapLayout::MapLayout(const keel_call* c, const Map* m, const MapProgram* p)
    : call(c), map(m), program(p), shape(found_) {
  for (const uint16_t v : p->operands) ndim = std::max<int>(ndim, c->in[v]->ndim);
  std::fill(found_, found_ + ndim, int64_t{1});
  for (const uint16_t v : p->operands) {
    const keel_tensor& t = *c->in[v];
    for (int d = 0; d < t.ndim; d++)
      if (t.shape[d] != 1) found_[d + ndim - t.ndim] = t.shape[d];
  }
  count = Product(shape, ndim);
  Select();
}

void MapLayout::SelectMany() {
  constexpr int64_t kLongRow = 256;
  if (ReadOperands()) {
    MergeDims();
    way = RowLength() >= kLongRow ? kRows : kBits;
    for (const uint16_t v : program->operands)
      if (way == kRows) one[v] = steps[v][rank - 1] == 0;
  }
  ChooseCode();
}

// Sets the per-operand fields; false if all operands are flat.
bool MapLayout::ReadOperands() {
  bool broadcast = false;
  for (const uint16_t v : program->operands) {
    const int64_t n = keel_count(call->in[v]);
    one[v] = n == 1;
    spread[v] = n != 1 && n != count;
    broadcast |= spread[v];
  }
  return broadcast;
}

void MapLayout::MergeDims() {
  const auto& operands = program->operands;
  int64_t strides[kMapOperands][KEEL_MAX_RANK] = {};
  for (const uint16_t v : operands) {
    const keel_tensor& t = *call->in[v];
    int64_t step = 1;
    for (int d = t.ndim - 1; d >= 0; d--) {
      strides[v][d + ndim - t.ndim] = t.shape[d] == 1 ? 0 : step;
      step *= t.shape[d];
    }
  }
  for (int d = 0; d < ndim; d++) {
    if (shape[d] == 1) continue;
    bool merge = rank > 0;
    for (const uint16_t v : operands) merge = merge && steps[v][rank - 1] == strides[v][d] * shape[d];
    const int to = merge ? rank - 1 : rank++;
    dims[to] = merge ? dims[to] * shape[d] : shape[d];
    for (const uint16_t v : operands) steps[v][to] = strides[v][d];
  }
}

void MapLayout::ChooseCode() {
  uint32_t ones = 0;
  for (const uint16_t v : program->operands) ones |= uint32_t{one[v]} << v;
  for (const MapFused& fused : program->fused)
    if (fused.ones == ones) code = &fused.code;
}

int64_t MapLayout::RowStart(int v, int64_t row) const {
  int64_t start = 0;
  for (int d = rank - 2; d >= 0; d--) {
    start += row % dims[d] * steps[v][d];
    row /= dims[d];
  }
  return start;
}

keel_rc MapFailure::Report(const MapLayout& l) const {
  const uint64_t first = first_;
  if (first == kNone) return Done(l.call);
  char text[96];
  std::snprintf(text, sizeof(text), "%s at element %lld", l.code->steps[first >> 48].failure,
                static_cast<long long>(first & ((uint64_t{1} << 48) - 1)));
  return l.call->env->host->fail(KEEL_RANGE, text);
}

// ---- tiles

void MapTiles::Row(int64_t row, int64_t element) {
  for (const uint16_t v : l_.program->operands) Operand(v, l_.RowStart(v, row) + (l_.one[v] ? 0 : element));
}

namespace {

// Broadcasts operand v to elements [first, first + n) of the result.
template <class T>
void SpreadTile(const MapLayout& l, int v, int64_t first, int64_t n, T* to) {
  const int last = l.rank - 1;
  const int64_t inner = l.dims[last], step = l.steps[v][last];
  int64_t index[KEEL_MAX_RANK], in = first % inner, row = first / inner;
  const T* x = In<T>(l.call, v) + l.RowStart(v, row);
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

// The loop of a binary step: both operands vary, a has one element, b has one element.
const BinaryLoop& Choose(const MapStep& s, const bool* one) {
  return s.binary[one[s.out] ? 0 : one[s.in[0]] ? 1 : one[s.in[1]] ? 2 : 0];
}

int64_t RunLoop(const MapStep& s, char* const* at, const bool* one, int64_t n) {
  switch (s.kind) {
    case MapStep::kUnary:
      s.unary(at[s.in[0]], at[s.out], n);
      return -1;
    case MapStep::kBinary:
      return Choose(s, one)(at[s.in[0]], at[s.in[1]], at[s.out], n);
    case MapStep::kSelect:
      s.select(at[s.in[0]], !one[s.in[0]], at[s.in[1]], !one[s.in[1]], at[s.in[2]], !one[s.in[2]], at[s.out],
               n);
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

}  // namespace

void MapTiles::Bits(int64_t element, int64_t n, char* spread) {
  for (const uint16_t v : l_.program->operands) {
    Operand(v, l_.one[v] || l_.spread[v] ? 0 : element);
    if (!l_.spread[v]) continue;
    at_[v] = spread + v * kSlotBytes;
    VisitSize(l_.map->sizes[v],
              [&]<class T>() { SpreadTile(l_, v, element, n, reinterpret_cast<T*>(at_[v])); });
  }
}

int64_t RunMapStep(const MapStep& s, char* const* at, bool* one, int64_t n) {
  if (s.kind == MapStep::kFused) {
    for (uint64_t left = s.writes; left != 0; left &= left - 1) one[std::countr_zero(left)] = false;
    return RunLoop(s, at, one, n);
  }
  bool all = one[s.in[0]];
  for (int k = 1; k < s.n_in; k++) all &= one[s.in[k]];
  one[s.out] = all;
  return RunLoop(s, at, one, all ? 1 : n);
}

void MapTiles::Run(int64_t n, int64_t first) {
  size_t i = 0;
  for (const MapStep& s : l_.code->steps) {
    const int64_t bad = RunMapStep(s, at_, one_, n);
    if (bad >= 0) return failure_->Note(i, first + bad);
    i++;
  }
}

int64_t MapRanges::Begin(int64_t first, int64_t n) {
  n = std::min(n, l_.Tile());
  if (l_.way == MapLayout::kFlat) {
    tiles_.Flat(first);
  } else if (l_.way == MapLayout::kRows) {
    const int64_t row = first / l_.RowLength(), at = first - row * l_.RowLength();
    n = std::min(n, l_.RowLength() - at);
    tiles_.Row(row, at);
  } else {
    tiles_.Bits(first, n, spread_);
  }
  return n;
}

}  // namespace keel_cpu
