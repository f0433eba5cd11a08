// sizes.h: which sizes of a function's array arguments become symbols. A size is a literal until the third
// distinct one (`after` = 2) was seen in its place; then that dim is any size from 2 on. 0 and 1 stay
// literal, so that broadcasting is decided. Dims that were equal in every call share a symbol.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace keel {

// One number for each dim of all array arguments: a size, or -1 - the number of a symbol.
struct SizePattern {
  std::vector<int64_t> dims;
  uint32_t symbols = 0;

  bool Fits(std::span<const int64_t> sizes) const;
};

class SizeLedger {
 public:
  // The pattern for a new trace that these sizes ask for; remembers them.
  SizePattern Next(std::span<const int64_t> sizes, uint32_t after);

 private:
  static constexpr size_t kMost = 16;  // calls remembered
  bool AlwaysEqual(size_t a, size_t b) const;
  std::vector<std::vector<int64_t>> seen_;
};

}  // namespace keel
