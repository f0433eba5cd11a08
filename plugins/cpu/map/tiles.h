// tiles.h: the interpreter of compile.cc's programs, tile by tile. Three traversals:
//   flat   every operand has all elements or one
//   rows   operands broadcast and the last dim is long: within a row each has all elements or one
//   bits   operands broadcast and the last dim is short: they are expanded into a tile first
//
// MapLayout holds one run's operand layout, MapTiles one thread's state, MapFailure the first failure. run.cc
// traverses all elements, reduce.cc the requested ones.
#pragma once

#include <atomic>

#include "plugins/cpu/map/map.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {

// Built per call, on the stack.
struct MapLayout {
  // The results' dims come from broadcasting the operands, or are given.
  MapLayout(const keel_call* call, const Map* map, const MapProgram* program);
  MapLayout(const keel_call* c, const Map* m, const MapProgram* p, const keel_tensor& result)
      : call(c), map(m), program(p), shape(result.shape), ndim(result.ndim), count(keel_count(&result)) {
    Select();
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
  bool one[kMapOperands];     // has one element (in total for flat tiles, else per row)
  bool spread[kMapOperands];  // needs expansion: neither one element nor all
  int rank = 0;  // of the result, after merging dims that all operands traverse alike; 0 when flat
  int64_t dims[KEEL_MAX_RANK];
  int64_t steps[kMapOperands][KEEL_MAX_RANK];

  int64_t Tile() const { return way == kBits ? program->plain.tile : code->tile; }
  int64_t RowLength() const { return dims[rank - 1]; }
  // The index of a row's first element in operand v.
  int64_t RowStart(int v, int64_t row) const;

 private:
  // Selects the traversal, and the fastest code for the one-element operands.
  void Select() {
    if (count > 1) return SelectMany();
    for (const uint16_t v : program->operands) one[v] = false;  // a single element counts as a full operand
    if (!program->fused.empty()) code = &program->fused[0].code;
  }
  void SelectMany();
  bool ReadOperands();
  void MergeDims();
  void ChooseCode();
  int64_t found_[KEEL_MAX_RANK];  // the shape if it is not given
};

// The failure that the ops run one by one would report first.
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

// Runs one step on n elements, or on one if all its operands have one, and sets one[out]. Returns -1, or the
// index of the element that failed.
int64_t RunMapStep(const MapStep& s, char* const* at, bool* one, int64_t n);

// Addresses of the slots for one tile, and which slots hold one element. Temporaries are `slot` bytes apart.
class MapTiles {
 public:
  MapTiles(const MapLayout& l, char* temps, int64_t slot, MapFailure* failure) : l_(l), failure_(failure) {
    for (const uint16_t v : l.program->operands) one_[v] = l.one[v];
    const int first = l.map->n_in + l.map->n_out;
    for (int i = 0; i < l.code->temps; i++) at_[first + i] = temps + i * slot;
  }
  // Sets the operands: flat from an element on; within a row; or expanded into slots of `spread` bytes.
  void Flat(int64_t element) {
    for (const uint16_t v : l_.program->operands) Operand(v, l_.one[v] ? 0 : element);
  }
  void Row(int64_t row, int64_t element);
  void Bits(int64_t element, int64_t n, char* spread);
  // Sets the results from an element on.
  void Results(int64_t element) {
    for (const uint16_t r : l_.program->results) {
      const int slot = l_.map->n_in + r;
      at_[slot] = Out<char>(l_.call, r) + element * l_.map->sizes[static_cast<size_t>(slot)];
    }
  }
  void Place(int slot, char* to) { at_[slot] = to; }
  void Result(char* to) { Place(l_.map->n_in + l_.program->results[0], to); }
  // Runs all steps on n elements; `first` is the index of the first one in the result.
  void Run(int64_t n, int64_t first);

 private:
  // Sets operand v to this element, or to its only one.
  void Operand(int v, int64_t element) {
    at_[v] = const_cast<char*>(In<char>(l_.call, v)) + element * l_.map->sizes[static_cast<size_t>(v)];
  }
  const MapLayout& l_;
  MapFailure* failure_;
  char* at_[kMapSlots];
  bool one_[kMapSlots];
};

// A thread that runs the program on ranges of elements.
class MapRanges {
 public:
  MapRanges(const MapLayout& l, MapFailure* failure) : l_(l), tiles_(l, temps_, kSlotBytes, failure) {}
  // Elements [first, first + n) of all results; or of the only one, written to `to`.
  void Run(int64_t first, int64_t n) {
    Each(first, n, [&](int64_t at) { tiles_.Results(at); });
  }
  void Run(int64_t first, int64_t n, char* to) {
    const int64_t size = l_.map->sizes[static_cast<size_t>(l_.map->n_in + l_.program->results[0])];
    Each(first, n, [&](int64_t at) { tiles_.Result(to + (at - first) * size); });
  }

 private:
  template <class F>
  void Each(int64_t first, int64_t n, const F& place) {
    for (int64_t m = 0; n > 0; n -= m, first += m) {
      m = Begin(first, n);
      place(first);
      tiles_.Run(m, first);
    }
  }
  // How many elements, at most n, can be produced at once from `first`; their operands are set.
  int64_t Begin(int64_t first, int64_t n);

  const MapLayout& l_;
  MapTiles tiles_;
  alignas(64) char temps_[kMapTemps * kSlotBytes];
  alignas(64) char spread_[kMapOperands * kSlotBytes];
};

// Whether the program is a function of one 8-bit integer and long enough to look up its values: then all is
// done (table.cc).
bool RunByTable(const MapLayout& l);

}  // namespace keel_cpu
