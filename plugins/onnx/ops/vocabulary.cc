// vocabulary.cc: the place of a string or integer in a constant list, by binary search.
#include <algorithm>
#include <unordered_map>

#include "plugins/onnx/ops/classes.h"
#include "plugins/onnx/ops/strings.h"

namespace onnx_import {
namespace {

// Hashes are polynomials in a multiplier; another one is tried if two words have the same hash.
constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;
constexpr int kMostTries = 64;

Ints powers_of(uint64_t multiplier, int64_t n) {
  Ints powers;
  for (uint64_t p = multiplier; std::ssize(powers) < n; p *= multiplier)
    powers.push_back(static_cast<int64_t>(p));
  return powers;
}

int64_t hash_of(Text word, const Ints& powers) {
  uint64_t hash = 0;
  for (size_t i = 0; i < word.size(); i++)
    hash += static_cast<uint64_t>(powers[i]) * static_cast<uint8_t>(word[i]);
  return static_cast<int64_t>(hash);
}

bool distinct(Ints list) {
  std::sort(list.begin(), list.end());
  return std::adjacent_find(list.begin(), list.end()) == list.end();
}

// The last place in the sorted list whose number is not above x, or 0.
Term search(const Term& x, const Ints& sorted) {
  const auto n = std::ssize(sorted);
  const Term list = constant_of(x.edit(), sorted);
  Term at = filled(x.edit(), KEEL_I64, 0, x.dims());
  int64_t step = 1;
  while (step < n) step *= 2;
  for (step /= 2; step >= 1; step /= 2) {
    const Term next = at + static_cast<double>(step), inside = next.clamp(0, static_cast<double>(n - 1));
    const Term below = list.gather(inside, 0).op("less_equal", x);
    at = select(below & (next < static_cast<double>(n)), next, at);
  }
  return at;
}

}  // namespace

Vocabulary::Vocabulary(Edit& e, const Words& words, const std::string& what) : e_(&e) {
  std::unordered_map<Text, int64_t> seen;
  Ints places;
  Words kept;
  size_t longest = 0;
  for (size_t i = 0; i < words.size(); i++) {
    if (!seen.emplace(words[i], static_cast<int64_t>(i)).second) continue;
    kept.push_back(words[i]);
    places.push_back(static_cast<int64_t>(i));
    longest = std::max(longest, words[i].size());
  }
  if (kept.empty()) refuse(KEEL_INVALID, cat(what, " is empty; expected strings"));
  width_ = static_cast<keel_dim>(longest) + 1;  // a longer string differs in the byte after the longest word
  uint64_t multiplier = kMultiplier;
  Ints found;
  for (int tries = 0; tries < kMostTries; tries++, multiplier = multiplier * kMultiplier + 2) {
    powers_ = powers_of(multiplier, width_);
    found.clear();
    for (const std::string& word : kept) found.push_back(hash_of(word, powers_));
    if (distinct(found)) break;
  }
  if (!distinct(found)) refuse(KEEL_UNIMPLEMENTED, cat(what, ": strings with equal hashes"));
  std::vector<size_t> by_hash(kept.size());
  for (size_t i = 0; i < by_hash.size(); i++) by_hash[i] = i;
  std::sort(by_hash.begin(), by_hash.end(), [&](size_t a, size_t b) { return found[a] < found[b]; });
  Words sorted;
  for (size_t i : by_hash) {
    hashes_.push_back(found[i]);
    order_.push_back(places[i]);
    sorted.push_back(kept[i]);
  }
  sorted_ = table_of(sorted, what, longest + 1);
}

Term Vocabulary::places(const Term& rows) const {
  const Term bytes = fitted(rows, width_);
  const Term hash = (bytes.to(KEEL_I64) * constant_of(*e_, powers_)).sum({1});
  const Term at = search(hash, hashes_);
  const Term words = Term(*e_, e_->id(*sorted_)).gather(at, 0);
  return select(same_bytes(bytes, words), constant_of(*e_, order_).gather(at, 0), -1.0);
}

Term places_of(const Term& numbers, const Ints& list) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t i = 0; i < list.size(); i++) pairs.emplace_back(list[i], static_cast<int64_t>(i));
  std::sort(pairs.begin(), pairs.end());
  Ints sorted, order;
  for (const auto& [number, place] : pairs) {
    if (!sorted.empty() && sorted.back() == number) continue;
    sorted.push_back(number);
    order.push_back(place);
  }
  Edit& e = numbers.edit();
  const Term at = search(numbers, sorted);
  return select(constant_of(e, sorted).gather(at, 0) == numbers, constant_of(e, order).gather(at, 0), -1.0);
}

}  // namespace onnx_import
