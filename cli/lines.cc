// lines.cc: see lines.h. What both begin and end with is left out; of the rest the longest common sequence of
// lines stays, by the table of its lengths.
#include "lines.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace cli {
namespace {

constexpr size_t kMostCells = 16 << 20;  // of the table; rests that would need more are shown whole

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void leave_out_ends(Lines& a, Lines& b) {
  auto [a_end, b_end] = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  a.erase(a_end.base(), a.end());
  b.erase(b_end.base(), b.end());
  auto [a_begin, b_begin] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  a.erase(a.begin(), a_begin);
  b.erase(b.begin(), b_begin);
}

// Of what begins at line i of a and j of b, in row-major order.
std::vector<uint32_t> common_lengths(const Lines& a, const Lines& b) {
  const size_t row = b.size() + 1;
  std::vector<uint32_t> length((a.size() + 1) * row);
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      length[i * row + j] = a[i] == b[j] ? length[(i + 1) * row + j + 1] + 1
                                         : std::max(length[(i + 1) * row + j], length[i * row + j + 1]);
  return length;
}

}  // namespace

std::string changed_lines(const std::string& before, const std::string& after) {
  Lines old = lines_of(before), now = lines_of(after);
  leave_out_ends(old, now);
  const size_t row = now.size() + 1;
  std::vector<uint32_t> length;
  if ((old.size() + 1) * row <= kMostCells) length = common_lengths(old, now);
  std::string out;
  for (size_t o = 0, n = 0; o < old.size() || n < now.size();) {
    bool both = o < old.size() && n < now.size();
    if (both && !length.empty() && old[o] == now[n])
      o++, n++;
    else if (both && !length.empty() ? length[(o + 1) * row + n] >= length[o * row + n + 1] : o < old.size())
      out += "-" + old[o++] + "\n";
    else
      out += "+" + now[n++] + "\n";
  }
  return out;
}

}  // namespace cli
