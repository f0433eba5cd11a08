// images.h: handwritten digits from a text file, one image per line: 64 pixels of 0 to 16, and the digit.
#ifndef KEEL_EXAMPLES_DIGITS_IMAGES_H
#define KEEL_EXAMPLES_DIGITS_IMAGES_H
#include <algorithm>
#include <fstream>
#include <keel/keel.hpp>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace digits {

constexpr int64_t kPixels = 64;

struct Images {
  std::vector<uint8_t> pixels;
  std::vector<int32_t> digits;

  int64_t size() const { return static_cast<int64_t>(digits.size()); }
  keel::Tensor inputs() const { return keel::Tensor(pixels, {size(), kPixels}); }
  keel::Tensor targets() const { return keel::Tensor(digits); }
  void add(const uint8_t* from, int32_t digit) {
    pixels.insert(pixels.end(), from, from + kPixels);
    digits.push_back(digit);
  }
  Images pick(const std::vector<size_t>& which) const {
    Images out;
    for (size_t i : which) out.add(&pixels[i * kPixels], digits[i]);
    return out;
  }
};

inline Images read_images(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  Images all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    uint8_t pixels[kPixels];
    int value = 0;
    char comma = 0;
    for (uint8_t& pixel : pixels) {
      cells >> value >> comma;
      pixel = static_cast<uint8_t>(value);
    }
    if (!(cells >> value) || value < 0 || value > 9)
      throw std::runtime_error(path + ":" + std::to_string(all.size() + 1) +
                               ": expected 64 pixels and a digit, separated by commas, got \"" + line + "\"");
    all.add(pixels, value);
  }
  return all;
}

inline std::vector<size_t> shuffled(int64_t n, std::mt19937& random) {
  std::vector<size_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

}  // namespace digits
#endif
