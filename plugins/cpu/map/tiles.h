// tiles.h: how the programs of compile.cc are interpreted, a tile at a time. Three ways through the elements:
//   flat   every operand has all elements or one
//   rows   operands are broadcast and the last dim is long: in each row they again have all or one
//   bits   ... and the last dim is short: broadcast operands are spread into a tile first
//
// How to read it: MapLayout is what one run knows of its operands, MapTiles what one thread works with, and
// MapFailure what they may meet. run.cc goes through all elements, reduce.cc makes those that it is
// asked for.
#pragma once

#include <atomic>

#include "plugins/cpu/map/map.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {

// Built per call, on the stack.
struct MapLayout {
  // The results' dims are found by broadcasting what is read, or are given.
  MapLayout(const keel_call* call, const Map* map, const MapProgram* program);
  MapLayout(const keel_call* c, const Map* m, const MapProgram* p, const keel_tensor& result)
      : call(c), map(m), program(p), shape(result.shape), ndim(result.ndim), count(keel_count(&result)) {
    Lay();
  }
  MapLayout(const MapLayout&) = delete;
  MapLayout& operator=(const MapLayout&) = delete;

  const keel_call* call;
  const Map* map;
  const MapProgram* program;
  const MapCode* code = &program->plain;
  enum : uint8_t { kFlat, kRows, kBits } way = kFlat;
  const int64_t* shape;  // of each result
  int ndim = 0;
  int64_t count = 1;
  bool one[kMapOperands];     // has one element (in flat tiles, or in a row)
  bool spread[kMapOperands];  // neither one nor all
  int rank = 0;               // of the result, dims that all operands walk alike merged; 0 when flat
  int64_t dims[KEEL_MAX_RANK];
  int64_t steps[kMapOperands][KEEL_MAX_RANK];

  int64_t Tile() const { return way == kBits ? program->plain.tile : code->tile; }
  int64_t RowLength() const { return dims[rank - 1]; }
  // Where element 0 of a row lies in operand v.
  int64_t RowStart(int v, int64_t row) const;

 private:
  // Chooses the way, and the quickest code for the operands that have one element.
  void Lay() {
    if (count > 1) return LayMany();
    for (const uint16_t v : program->operands) one[v] = false;  // elements side by side, of which one
    if (!program->fused.empty()) code = &program->fused[0].code;
  }
  void LayMany();
  bool ReadOperands();
  void MergeDims();
  void ChooseCode();
  int64_t found_[KEEL_MAX_RANK];  // the shape, where it is not given
};

// The first failure in the order in which the ops alone would have met it.
class MapFailure {
 public:
  void Note(size_t step, int64_t at) {
    const uint64_t now = static_cast<uint64_t>(step) << 48 | static_cast<uint64_t>(at);
    for (uint64_t old = first_; now < old && !first_.compare_exchange_weak(old, now);) continue;
  }
  keel_rc Report(const MapLayout& l) const;

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  std::atomic<uint64_t> first_ = kNone;
};

// One step on n elements; on one, where all its operands have one, and says so of the result. What it gives:
// -1, or the element that it failed at.
int64_t RunMapStep(const MapStep& s, char* const* at, bool* one, int64_t n);

// Where the slots lie for one tile, and which of them hold one element. Temporaries are `slot` bytes apart.
class MapTiles {
 public:
  MapTiles(const MapLayout& l, char* temps, int64_t slot, MapFailure* failure) : l_(l), failure_(failure) {
    for (const uint16_t v : l.program->operands) one_[v] = l.one[v];
    const int first = l.map->n_in + l.map->n_out;
    for (int i = 0; i < l.code->temps; i++) at_[first + i] = temps + i * slot;
  }
  // The operands from an element on; of a row; spread into slots of `spread`, so many elements.
  void Flat(int64_t element) {
    for (const uint16_t v : l_.program->operands) Operand(v, l_.one[v] ? 0 : element);
  }
  void Row(int64_t row, int64_t element);
  void Bits(int64_t element, int64_t n, char* spread);
  // The results from an element on.
  void Results(int64_t element) {
    for (const uint16_t r : l_.program->results) {
      const int slot = l_.map->n_in + r;
      at_[slot] = Out<char>(l_.call, r) + element * l_.map->sizes[static_cast<size_t>(slot)];
    }
  }
  void Result(char* to) { at_[l_.map->n_in + l_.program->results[0]] = to; }
  // All steps on n elements, the first of which is number `first` of the result.
  void Run(int64_t n, int64_t first);

 private:
  // Operand v from this element on; its one element, if it has no more.
  void Operand(int v, int64_t element) {
    at_[v] = const_cast<char*>(In<char>(l_.call, v)) + element * l_.map->sizes[static_cast<size_t>(v)];
  }
  const MapLayout& l_;
  MapFailure* failure_;
  char* at_[kMapSlots];
  bool one_[kMapSlots];
};

}  // namespace keel_cpu
