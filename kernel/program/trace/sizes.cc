// sizes.cc: see sizes.h.
#include "kernel/program/trace/sizes.h"

#include <algorithm>
#include <set>

namespace keel {

std::optional<std::vector<int64_t>> SizePattern::Fit(std::span<const int64_t> sizes) const {
  std::vector<int64_t> value(symbols, -1);
  for (size_t i = 0; i < dims.size(); i++) {
    if (dims[i] >= 0) {
      if (sizes[i] != dims[i]) return std::nullopt;
      continue;
    }
    int64_t& symbol = value[static_cast<size_t>(-1 - dims[i])];
    if (sizes[i] < 2 || (symbol >= 0 && symbol != sizes[i])) return std::nullopt;
    symbol = sizes[i];
  }
  return value;
}

bool SizeLedger::AlwaysEqual(size_t a, size_t b) const {
  return std::all_of(seen_.begin(), seen_.end(), [&](const auto& sizes) { return sizes[a] == sizes[b]; });
}

void SizeLedger::Remember(std::span<const int64_t> sizes) {
  if (seen_.size() == kMaxCalls) seen_.erase(seen_.begin());
  seen_.emplace_back(sizes.begin(), sizes.end());
  literal_.resize(sizes.size());
}

SizePattern SizeLedger::Next(uint32_t after) const {
  SizePattern pattern{seen_.back(), 0};
  for (size_t i = 0; i < literal_.size(); i++) {
    std::set<int64_t> distinct;
    for (const auto& call : seen_)
      if (call[i] >= 2) distinct.insert(call[i]);
    if (literal_[i] || pattern.dims[i] < 2 || distinct.size() <= after) continue;
    size_t same = 0;
    while (same < i && !(pattern.dims[same] < 0 && AlwaysEqual(same, i))) same++;
    pattern.dims[i] = same < i ? pattern.dims[same] : -1 - static_cast<int64_t>(pattern.symbols++);
  }
  return pattern;
}

void SizeLedger::KeepLiteral(const SizePattern& pattern, std::span<const size_t> symbols) {
  for (size_t i = 0; i < literal_.size(); i++) {
    const bool mentioned = std::ranges::count(symbols, static_cast<size_t>(-1 - pattern.dims[i])) > 0;
    if (pattern.dims[i] < 0 && (symbols.empty() || mentioned)) literal_[i] = true;
  }
}

}  // namespace keel
