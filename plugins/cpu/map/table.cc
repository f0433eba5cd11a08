// table.cc: long groups that are a function of one 8-bit integer, as between the products of a quantised
// model: they run on the 256 integers, and each result is looked up.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "plugins/cpu/map/tiles.h"

namespace keel_cpu {
namespace {

constexpr int64_t kIntegers = 256;
constexpr int64_t kFewestElements = 16 * kIntegers;  // of fewer, making the table takes longer than it saves

// The least cost of a group that looking up beats: 0.3 ns per element, at which machine code multiplies and
// adds ten times, or quantises.
int64_t LeastCost(const MapLayout& l) {
  const auto wide = [&](uint16_t r) { return l.map->sizes[static_cast<size_t>(l.map->n_in + r)] > 1; };
  return std::ranges::any_of(l.program->results, wide) ? 20 : 8;
}

// The only operand with more than one element, if it has 8-bit integers; or -1.
int IntegerOperand(const MapLayout& l) {
  int found = -1;
  for (const uint16_t v : l.program->operands) {
    if (l.one[v]) continue;
    const keel_dt dtype = keel_dt_of(l.call->in[v]);
    if (found >= 0 || (dtype != KEEL_I8 && dtype != KEEL_U8)) return -1;
    found = v;
  }
  return found;
}

// Eight integers are one load, since loads bound the loop.
template <class T>
void LookUp(const uint8_t* x, const char* table, char* y, int64_t begin, int64_t end) {
  const T* from = reinterpret_cast<const T*>(table);
  T* to = reinterpret_cast<T*>(y);
  int64_t i = begin;
  for (uint64_t eight; i + 8 <= end; i += 8) {
    std::memcpy(&eight, x + i, sizeof(eight));
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) to[i + j] = from[eight >> 8 * j & 0xff];
  }
  for (; i < end; i++) to[i] = from[x[i]];
}

}  // namespace

bool RunByTable(const MapLayout& l) {
  if (l.way != MapLayout::kFlat || l.count < kFewestElements || l.code->cost < LeastCost(l)) return false;
  const int v = IntegerOperand(l);
  if (v < 0 || std::ranges::any_of(l.code->steps, &MapStep::CanFail)) return false;
  alignas(64) uint8_t every[kIntegers];
  std::iota(every, every + kIntegers, uint8_t{0});
  alignas(64) char temps[kMapTemps * kSlotBytes], tables[kMapResults][kIntegers * sizeof(int64_t)];
  MapFailure none;
  MapTiles t(l, temps, kSlotBytes, &none);
  t.Flat(0);
  t.Place(v, reinterpret_cast<char*>(every));
  for (const uint16_t r : l.program->results) t.Place(l.map->n_in + r, tables[r]);
  t.Run(kIntegers, 0);
  ParallelFor(l.call, l.count, 1, [&](int64_t begin, int64_t end) {
    const auto& results = l.program->results;
    for (size_t i = results.size(); i-- > 0;) {  // result 0, which may share memory with the operand, is last
      const uint16_t r = results[i];
      VisitSize(l.map->sizes[static_cast<size_t>(l.map->n_in + r)], [&]<class T>() {
        LookUp<T>(In<uint8_t>(l.call, v), tables[r], Out<char>(l.call, r), begin, end);
      });
    }
  });
  return true;
}

}  // namespace keel_cpu
