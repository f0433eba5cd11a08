// edit_distance.h: the similarity of names, for suggestions in messages.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace keel {

// Number of single-character edits, at most `limit`.
inline size_t EditDistance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() >= limit) return limit;
  std::vector<size_t> row(a.size() + 1);
  for (size_t i = 0; i <= a.size(); i++) row[i] = i;
  for (size_t j = 1; j <= b.size(); j++) {
    size_t diagonal = std::exchange(row[0], j);
    for (size_t i = 1; i <= a.size(); i++) {
      size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[i];
      row[i] = std::min({row[i] + 1, row[i - 1] + 1, change});
    }
  }
  return std::min(row[a.size()], limit);
}

}  // namespace keel
