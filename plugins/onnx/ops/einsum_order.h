// einsum_order.h: Einsum joins its operands two at a time, in the order with the fewest
// multiplications.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace onnx_import {

// A set of operands is a mask, a bit for each.
class EinsumOrder {
 public:
  // terms: the labels of each operand, of kMost at most: the time grows by 3 with each.
  EinsumOrder(std::vector<std::string> terms, std::string result, const std::function<double(char)>& size);
  static constexpr size_t kMost = 10;

  uint64_t all() const { return (uint64_t{1} << terms_.size()) - 1; }
  // The first of the two parts that are joined last in a set of at least two.
  uint64_t first_part(uint64_t set) const { return parts_[set]; }
  // The labels of a set that the result or another operand needs.
  const std::string& kept(uint64_t set) const { return kept_[set]; }

 private:
  std::string labels_kept(uint64_t set) const;
  std::vector<std::string> terms_;
  std::string result_;
  std::vector<uint64_t> parts_;  // by set
  std::vector<std::string> kept_;
};

}  // namespace onnx_import
