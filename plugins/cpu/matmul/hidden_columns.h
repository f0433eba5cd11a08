// hidden_columns.h: the columns that a constant mask hides from blocks of rows of attention: its numbers
// there are so low that the weights are exactly 0, as in a causal mask of -1e9. A block leaves them out, if
// the scores of the run are small, compared with the mask's numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace keel_cpu {

// A mask of `rows` by `columns` elements, some of them apart.
template <class T>
struct Mask {
  const T* data;
  int64_t row, column;
  T At(int64_t i, int64_t j) const { return data[i * row + j * column]; }
};

class HiddenColumns {
 public:
  // block: rows of a block; columns are seen in multiples of `unit`.
  HiddenColumns(int64_t rows, int64_t columns, int64_t block, int64_t unit)
      : rows_(rows), columns_(columns), block_(block), unit_(unit) {
    seen_.assign(static_cast<size_t>((rows + block - 1) / block), unit);
  }
  // Adds the mask of a head: a column is hidden if all masks hide it.
  template <class T>
  void Add(const Mask<T>& mask) {
    for (int64_t i = 0; i < rows_; i++) AddRow(mask, i);
  }
  bool AreAny() const {
    return std::any_of(seen_.begin(), seen_.end(), [this](int64_t n) { return n < columns_; });
  }
  // Of the block with this row, from column 0 on.
  int64_t Seen(int64_t row) const { return std::min(columns_, seen_[static_cast<size_t>(row / block_)]); }
  // Whether hidden columns have no weight if scores are within [-reach, reach]: the exponential of -800 is 0
  // in f64, too. Sums with the mask's numbers are rounded, the scores' part by less than another reach.
  bool HaveNoWeight(double reach) const { return 4 * reach + 800 < gap_; }

 private:
  template <class T>
  void AddRow(const Mask<T>& mask, int64_t i) {
    double most = -std::numeric_limits<double>::infinity(), hidden = std::numeric_limits<float>::lowest();
    for (int64_t j = 0; j < columns_; j++) most = std::max<double>(most, mask.At(i, j));  // passes over NaN
    int64_t seen = columns_;
    while (seen > 0 && mask.At(i, seen - 1) < most - kLeastGap)  // NaN is seen
      hidden = std::max<double>(hidden, mask.At(i, --seen));
    int64_t& all = seen_[static_cast<size_t>(i / block_)];
    all = std::max(all, (seen + unit_ - 1) / unit_ * unit_);
    const double rounding = kRounding * (std::abs(most) + std::abs(hidden));
    if (seen < columns_) gap_ = std::min(gap_, most - hidden - rounding);
  }

  static constexpr double kLeastGap = 5000, kRounding = 1e-6;  // of two sums in f32
  int64_t rows_, columns_, block_, unit_;
  std::vector<int64_t> seen_;
  // The least difference of a row's greatest number and a hidden one.
  double gap_ = std::numeric_limits<float>::max();
};

}  // namespace keel_cpu
