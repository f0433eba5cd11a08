// int8_bins.cc: packing of weights in bins; see int8_bins.h.
#include "plugins/cpu/matmul/int8_bins.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "plugins/cpu/matmul/int8_pairs.h"

namespace keel_cpu {
namespace {

constexpr int64_t kMostShare = 2;  // with one halved group for two, 16-bit weights are as fast
constexpr int64_t kItemBytes = 5;  // of a group in a bin

bool Fits(const int8_t* four) { return FitsPair(four[0], four[1]) && FitsPair(four[2], four[3]); }

// A group of weights, or half of one. Its load has a field of 16 bits for each side of 0 of each pair.
struct Item {
  uint64_t load;
  uint32_t most;  // of the fields
  uint8_t place;
  int8_t w[4];
};
constexpr uint64_t kEach = 0x0001000100010001;
constexpr bool FitsBin(uint64_t load) { return ((load + (0x7fff - 128) * kEach) & 0x8000 * kEach) == 0; }

Item ItemOf(uint8_t place, const int8_t* w) {
  Item item = {0, 0, place, {}};
  std::memcpy(item.w, w, 4);
  for (int i = 0; i < 4; i++) {
    const int sign = i % 2 == 0 ? 1 : -1, a = w[i & 2] * sign, b = w[i | 1] * sign;
    const auto field = static_cast<uint32_t>(std::max(a, 0) + std::max(b, 0));
    item.load += static_cast<uint64_t>(field) << (16 * i);
    item.most = std::max(item.most, field);
  }
  return item;
}

struct Bin {
  int64_t count;
  std::array<const Item*, kMostInBin> items;
};

// The bins of a channel in a block of groups.
class Packer {
 public:
  const std::vector<Bin>& Pack(const int8_t* w, int64_t groups) {
    items_.clear();
    for (int64_t g = 0; g < groups; g++) Add(static_cast<uint8_t>(g), w + g * 4);
    SortItems();
    bins_.clear();
    open_.clear();
    for (const uint8_t i : order_) {  // into the first bin with room for it
      const Item& item = items_[i];
      const auto at = std::ranges::find_if(open_, [&](const Open& o) { return FitsBin(o.load + item.load); });
      if (at == open_.end()) {
        open_.push_back({item.load, bins_.size()});
        bins_.push_back({1, {&item}});
        continue;
      }
      Bin& bin = bins_[at->bin];
      at->load += item.load;
      bin.items[static_cast<size_t>(bin.count++)] = &item;
      if (bin.count == kMostInBin) *at = open_.back(), open_.pop_back();
    }
    return bins_;
  }

 private:
  struct Open {
    uint64_t load;
    size_t bin;
  };
  std::vector<Item> items_;     // at most 2 * kBlockGroups
  std::vector<uint8_t> order_;  // of items, large ones first
  std::vector<Bin> bins_;
  std::vector<Open> open_;  // with less than kMostInBin groups

  void SortItems() {
    std::array<uint8_t, 130> begin = {};  // of the items of each size
    for (const Item& item : items_) begin[129 - item.most]++;
    for (size_t i = 1; i < begin.size(); i++) begin[i] = static_cast<uint8_t>(begin[i] + begin[i - 1]);
    order_.resize(items_.size());
    for (size_t i = 0; i < items_.size(); i++)
      order_[begin[128 - items_[i].most]++] = static_cast<uint8_t>(i);
  }

  void Add(uint8_t place, const int8_t* w) {
    if (Fits(w)) return items_.push_back(ItemOf(place, w));
    int8_t half[4], rest[4];
    for (int i = 0; i < 4; i++) half[i] = static_cast<int8_t>(w[i] / 2);
    for (int i = 0; i < 4; i++) rest[i] = static_cast<int8_t>(w[i] - half[i]);
    items_.push_back(ItemOf(place, half));
    items_.push_back(ItemOf(place, rest));
  }
};

char* Write(const std::vector<Bin>& bins, uint8_t (&counts)[kMostInBin], char* to) {
  for (int64_t size = 1; size <= kMostInBin; size++)
    for (const Bin& bin : bins) {
      if (bin.count != size) continue;
      counts[size - 1]++;
      for (int64_t i = 0; i < size; i++) {
        const Item& item = *bin.items[static_cast<size_t>(i)];
        std::memcpy(to + i, &item.place, 1);
        std::memcpy(to + size + i * 4, item.w, 4);
      }
      to += size * kItemBytes;
    }
  return to;
}

int32_t SumOf(const int8_t* w, int64_t n) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += w[i];
  return sum;
}

}  // namespace

uint64_t BinBytes(const BinShape& s, const int8_t* rows) {
  const int64_t all = s.channels * s.Groups();
  int64_t halved = 0;
  for (int64_t i = 0; i < all; i++) halved += Fits(rows + i * 4) ? 0 : 1;
  if (BinLoops() == nullptr || halved * kMostShare > all) return 0;
  const int64_t heads = s.Quads() * s.Blocks();
  return static_cast<uint64_t>(heads) * (8 + sizeof(QuadHead)) +
         static_cast<uint64_t>((all + halved) * kItemBytes);
}

void PackBins(const BinShape& s, const int8_t* rows, char* to) {
  const int64_t blocks = s.Blocks(), row = s.Groups() * 4;
  int64_t at = s.Quads() * blocks * 8;
  Packer packer;
  const auto pack = [&](int64_t q, int64_t b) {
    std::memcpy(to + (q * blocks + b) * 8, &at, sizeof at);
    QuadHead head = {};
    char* next = to + at + sizeof head;
    for (int64_t c = 0; c < std::min(kQuad, s.channels - q * kQuad); c++) {
      const int8_t* w = rows + (q * kQuad + c) * row;
      if (b == 0) head.sums[c] = SumOf(w, row);
      next = Write(packer.Pack(w + s.Begin(b) * 4, s.Begin(b + 1) - s.Begin(b)), head.bins[c], next);
    }
    std::memcpy(to + at, &head, sizeof head);
    at = next - to;
  };
  for (int64_t first = 0; first < s.Quads(); first += kChunk)
    for (int64_t b = 0; b < blocks; b++)
      for (int64_t q = first; q < std::min(first + kChunk, s.Quads()); q++) pack(q, b);
}

}  // namespace keel_cpu
