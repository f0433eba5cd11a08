// einsum_order.cc: see einsum_order.h. A set's cheapest order joins two parts, each in its cheapest order.
#include "plugins/onnx/ops/einsum_order.h"

#include <bit>
#include <utility>

namespace onnx_import {
namespace {

// Of joining two sets that keep these labels.
double multiplications(const std::string& left, const std::string& right,
                       const std::function<double(char)>& size) {
  double n = 1;
  for (const char label : left) n *= size(label);
  for (const char label : right)
    if (left.find(label) == std::string::npos) n *= size(label);
  return n;
}

}  // namespace

EinsumOrder::EinsumOrder(std::vector<std::string> terms, std::string result,
                         const std::function<double(char)>& size)
    : terms_(std::move(terms)), result_(std::move(result)) {
  std::vector<double> cost(all() + 1, 0.0);
  for (uint64_t set = 0; set <= all(); set++) kept_.push_back(labels_kept(set));
  parts_.resize(all() + 1);
  for (uint64_t set = 1; set <= all(); set++) {
    if (std::has_single_bit(set)) continue;
    const auto total = [&](uint64_t part) {
      return cost[part] + cost[set ^ part] + multiplications(kept_[part], kept_[set ^ part], size);
    };
    parts_[set] = set ^ std::bit_floor(set);  // of equal orders that from the left
    double least = total(parts_[set]);
    const uint64_t lowest = set & (~set + 1), others = set ^ lowest;
    for (uint64_t more = (others - 1) & others;; more = (more - 1) & others) {
      if (const double now = total(lowest | more); now < least) least = now, parts_[set] = lowest | more;
      if (more == 0) break;
    }
    cost[set] = least;
  }
}

std::string EinsumOrder::labels_kept(uint64_t set) const {
  std::string needed = result_, labels;
  for (size_t i = 0; i < terms_.size(); i++)
    if ((set >> i & 1) == 0) needed += terms_[i];
  for (size_t i = 0; i < terms_.size(); i++) {
    if ((set >> i & 1) == 0) continue;
    for (const char label : terms_[i])
      if (needed.find(label) != std::string::npos && labels.find(label) == std::string::npos) labels += label;
  }
  return labels;
}

}  // namespace onnx_import
