// storage_table.h: cast from and to storage dtypes (8-bit floats, and what is packed into bytes) as tables
// for code that runs on a device. Their contents come from keel/storage.hpp.
//
// From a storage dtype: look its code up among the results. To one: make a key of the number and look for the
// last step that is not above it; the step has the code. Integers to packed integers wrap, without a table.
#ifndef KEEL_PLUGIN_STORAGE_TABLE_H
#define KEEL_PLUGIN_STORAGE_TABLE_H
#include <keel/keel_impl.h>
#include <keel/storage.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "node.h"
#include "numbers.h"

namespace keel::plugin {

// Results of a cast from a storage dtype, by code: numbers as bits, or codes of `to`.
inline std::vector<uint64_t> results_by_code(keel_dt from, keel_dt to, StorageRounding how) {
  const bool wraps = is_storage_integer(from) && !Computed(to).floating && to != KEEL_BOOL;
  std::vector<uint64_t> results;
  for (int code = 0; code < 1 << dtype_bits(from); code++) {
    const double v = storage_value(from, code);
    if (from == to)
      results.push_back(static_cast<uint64_t>(code));
    else if (is_storage(to))
      results.push_back(storage_code(to, v, !is_storage_integer(from), how));
    else
      results.push_back(wraps ? static_cast<uint64_t>(static_cast<int64_t>(v)) : bits_of_number(to, v));
  }
  return results;
}

// Keys are in the order of the numbers; NaN is at both ends. Of a float: all bits inverted where the sign is
// set, else plus sign(); of an integer: exclusive or with sign().
struct StorageSteps {
  std::vector<uint64_t> keys, codes;  // of each step; the first key is 0
};

namespace detail {

struct StepFinder {
  Computed from;
  keel_dt to;
  StorageRounding how;
  StorageSteps steps{};

  uint64_t key_of(long double v) const {
    uint64_t bits = static_cast<uint64_t>(static_cast<int64_t>(v)) & from.all();
    if (!from.floating) return bits ^ from.sign();
    bits = from.bits == 64 ? std::bit_cast<uint64_t>(static_cast<double>(v))
                           : std::bit_cast<uint32_t>(static_cast<float>(v));
    return bits & from.sign() ? bits ^ from.all() : bits + from.sign();
  }
  long double number(uint64_t key) const {
    if (!from.floating) {
      const uint64_t bits = key ^ from.sign();
      if (!(bits & from.sign())) return static_cast<long double>(bits);
      return -static_cast<long double>((bits ^ from.all()) + 1);
    }
    const uint64_t bits = key & from.sign() ? key - from.sign() : key ^ from.all();
    return from.bits == 64 ? std::bit_cast<double>(bits) : std::bit_cast<float>(static_cast<uint32_t>(bits));
  }
  uint64_t code(uint64_t key) const { return storage_code(to, number(key), from.floating, how); }

  void begin(uint64_t key) {
    if (!steps.codes.empty() && steps.codes.back() == code(key)) return;
    steps.keys.push_back(key);
    steps.codes.push_back(code(key));
  }
  // Steps above `low` up to `high`, between which codes rise or fall.
  void find(uint64_t low, uint64_t high) {  // NOLINT(misc-no-recursion): at most 64 deep
    if (code(low) == code(high)) return;
    if (high - low == 1) return begin(high);
    const uint64_t middle = low + (high - low) / 2;
    find(low, middle);
    find(middle, high);
  }
};

}  // namespace detail

// The steps of a cast of numbers of `from` to a storage dtype, at most 260. Codes rise or fall between
// numbers in `ends`.
inline StorageSteps steps_to(keel_dt to, keel_dt from, StorageRounding how) {
  constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
  detail::StepFinder finder{Computed(from), to, how};
  std::vector<uint64_t> ends = {finder.key_of(0), finder.key_of(1), finder.from.all()};
  if (finder.from.with_sign) ends.push_back(finder.key_of(-1));
  if (finder.from.floating)  // NaN lies beyond the infinities
    for (uint64_t key : {finder.key_of(-kInfinity) - 1, finder.key_of(-kInfinity), finder.key_of(-0.0L),
                         finder.key_of(kInfinity), finder.key_of(kInfinity) + 1})
      ends.push_back(key);
  std::sort(ends.begin(), ends.end());
  finder.begin(0);
  uint64_t low = 0;
  for (uint64_t high : ends) finder.find(std::exchange(low, high), high);
  return finder.steps;
}

// A cast node from or to a storage dtype.
struct StorageCast {
  uint32_t from_bits = 0, to_bits = 0;  // of the codes; 0: not a storage dtype
  uint64_t sign = 0;                    // of keys
  bool wraps = false;                   // integers to packed integers: no table
  StorageSteps table;                   // from a storage dtype: codes only, which are results by code
};
inline StorageCast storage_cast(Node& node) {
  const keel_tensor x = node.In(0), y = node.Out(0);
  const keel_dt from = keel_dt_of(&x), to = keel_dt_of(&y);
  const std::string_view mode = node.Text("round");
  const StorageRounding how = {node.Int("saturate") != 0, mode == "up"     ? StorageRounding::kUp
                                                          : mode == "down" ? StorageRounding::kDown
                                                                           : StorageRounding::kNearest};
  StorageCast cast;
  if (is_storage(from)) cast.from_bits = x.dtype.bits;
  if (is_storage(to)) cast.to_bits = y.dtype.bits;
  cast.sign = Computed(from).sign();
  cast.wraps = !is_storage(from) && is_storage_integer(to) && !Computed(from).floating;
  if (is_storage(from))
    cast.table.codes = results_by_code(from, to, how);
  else if (!cast.wraps)
    cast.table = steps_to(to, from, how);
  return cast;
}

}  // namespace keel::plugin
#endif
