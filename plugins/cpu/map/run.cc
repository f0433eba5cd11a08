// run.cc: runs the programs of compile.cc over all elements; see tiles.h.
#include <algorithm>

#include "plugins/cpu/map/tiles.h"

namespace keel_cpu {
namespace {

void RunOne(const MapLayout& l, MapFailure* failure) {
  alignas(64) char temps[kMapTemps * 8];
  MapTiles t(l, temps, 8, failure);
  t.Flat(0);
  t.Results(0);
  t.Run(1, 0);
}

void RunFlat(const MapLayout& l, MapFailure* failure) {
  const int64_t tile = l.Tile(), tiles = (l.count + tile - 1) / tile;
  ParallelFor(l.call, tiles, std::min(tile, l.count) * l.code->cost, [&](int64_t begin, int64_t end) {
    alignas(64) char temps[kMapTemps * kSlotBytes];
    MapTiles t(l, temps, kSlotBytes, failure);
    for (int64_t i = begin; i < end; i++) {
      const int64_t e = i * tile;
      t.Flat(e);
      t.Results(e);
      t.Run(std::min(tile, l.count - e), e);
    }
  });
}

void RunRows(const MapLayout& l, MapFailure* failure) {
  const int64_t tile = l.Tile(), n = l.RowLength(), parts = (n + tile - 1) / tile;
  ParallelFor(l.call, l.count / n * parts, std::min(n, tile) * l.code->cost, [&](int64_t begin, int64_t end) {
    alignas(64) char temps[kMapTemps * kSlotBytes];
    MapTiles t(l, temps, kSlotBytes, failure);
    for (int64_t unit = begin; unit < end; unit++) {
      const int64_t row = unit / parts, e = unit % parts * tile;
      t.Row(row, e);
      t.Results(row * n + e);
      t.Run(std::min(tile, n - e), row * n + e);
    }
  });
}

void RunBits(const MapLayout& l, MapFailure* failure) {
  const int64_t most = l.Tile(), tiles = (l.count + most - 1) / most;
  ParallelFor(l.call, tiles, most * (l.code->cost + 2), [&](int64_t begin, int64_t end) {
    alignas(64) char temps[kMapTemps * kSlotBytes];
    alignas(64) char spread[kMapOperands * kSlotBytes];
    MapTiles t(l, temps, kSlotBytes, failure);
    for (int64_t tile = begin; tile < end; tile++) {
      const int64_t e = tile * most, n = std::min(most, l.count - e);
      t.Bits(e, n, spread);
      t.Results(e);
      t.Run(n, e);
    }
  });
}

keel_rc RunProgram(const keel_call* call, const Map& map, const MapProgram& program) {
  const MapLayout l(call, &map, &program, *call->out[program.results[0]]);
  if (l.count == 0) return KEEL_OK;
  if (RunByTable(l)) return Done(call);
  MapFailure failure;
  if (l.count == 1)
    RunOne(l, &failure);
  else if (l.way == MapLayout::kFlat)
    RunFlat(l, &failure);
  else
    (l.way == MapLayout::kRows ? RunRows : RunBits)(l, &failure);
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

keel_rc RunSingleTile(const keel_call* call, const SingleTileMap& whole) {
  char* at[kMapSlots];
  for (int v = 0; v < call->n_in; v++)
    at[v] = const_cast<char*>(whole.known >> v & 1 ? reinterpret_cast<const char*>(&whole.elements[v])
                                                   : In<char>(call, v));
  for (int r = 0; r < call->n_out; r++) at[call->n_in + r] = Out<char>(call, r);
  if (whole.code) {
    whole.code(at, call->count);
    return Done(call);
  }
  alignas(64) char temps[kMapTemps * kSlotBytes];
  bool one[kMapSlots];
  for (int v = 0; v < call->n_in; v++) one[v] = whole.ones >> v & 1;
  for (int t = 0; t < kMapTemps; t++) at[call->n_in + call->n_out + t] = temps + t * kSlotBytes;
  for (const MapStep& s : *whole.steps) RunMapStep(s, at, one, call->count);
  return Done(call);
}

}  // namespace

keel_rc RunMap(const keel_call* call) {
  const Map& map = State<Map>(call);
  if (map.whole.code || map.whole.steps) return RunSingleTile(call, map.whole);
  if (map.single.empty() || SameShapes(call)) return RunProgram(call, map, map.all);
  for (size_t r = map.single.size(); r-- > 0;)  // result 0, which may share memory with an operand, is last
    if (const keel_rc rc = RunProgram(call, map, map.single[r]); rc != KEEL_OK) return rc;
  return KEEL_OK;
}

}  // namespace keel_cpu
