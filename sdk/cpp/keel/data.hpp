// data.hpp: data split along the first dim, for loops over examples or batches.
//
//   for (auto [image, label] : keel::data::from_slices(images, labels)) ...
//   for (auto [images, labels] : keel::data::from_slices(all_images, all_labels).batch(32)) ...
//
// Single-threaded; copies only the slices; keeps the order of the data.
#ifndef KEEL_DATA_HPP
#define KEEL_DATA_HPP
#include <tuple>

#include "index.hpp"

namespace keel::data {

/// Entries or batches of one tensor, or tuples of entries of several. Shares its tensors.
template <size_t n>
class Slices {
 public:
  explicit Slices(std::array<Tensor, n> tensors) : tensors_(std::move(tensors)) {
    for (const Tensor& t : tensors_) {
      if (!t.ndim())
        throw Error(KEEL_INVALID, "a scalar, " + t.type() + ", has no first dim to split",
                    "pass tensors with an entry for each example");
      if (t.shape()[0] != size_of_all())
        throw Error(KEEL_INVALID, "the first dims differ: " + tensors_[0].type() + " and " + t.type(),
                    "pass tensors with an entry for each example");
    }
  }

  /// Batches of `count` entries; the last one has the remaining entries, or is dropped.
  Slices batch(int64_t count, bool drop_remainder = false) const {
    if (count < 1)
      throw Error(KEEL_INVALID, "a batch must have at least 1 entry, not " + std::to_string(count));
    Slices out = *this;
    out.batch_ = count;
    out.drop_ = drop_remainder;
    return out;
  }
  /// The number of iterations of a loop.
  int64_t size() const {
    if (!batch_) return size_of_all();
    return (size_of_all() + (drop_ ? 0 : batch_ - 1)) / batch_;
  }

  class iterator {
   public:
    using value_type = std::conditional_t<n == 1, Tensor, decltype(std::tuple_cat(std::array<Tensor, n>()))>;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    iterator(const Slices* of, int64_t at) : of_(of), at_(at) {}
    value_type operator*() const {
      if constexpr (n == 1)
        return of_->entry(0, at_);
      else
        return [&]<size_t... k>(std::index_sequence<k...>) { return value_type{of_->entry(k, at_)...}; }
      (std::make_index_sequence<n>());
    }
    iterator& operator++() {
      at_++;
      return *this;
    }
    iterator operator++(int) { return {of_, at_++}; }
    bool operator==(const iterator& other) const { return at_ == other.at_; }

   private:
    const Slices* of_ = nullptr;
    int64_t at_ = 0;
  };
  /// Valid while this object lives.
  iterator begin() const { return {this, 0}; }
  iterator end() const { return {this, size()}; }

 private:
  int64_t size_of_all() const { return tensors_[0].shape()[0]; }
  Tensor entry(size_t which, int64_t at) const {
    if (!batch_) return tensors_[which][at];
    return tensors_[which][Slice{at * batch_, std::min((at + 1) * batch_, size_of_all())}];
  }

  std::array<Tensor, n> tensors_;
  int64_t batch_ = 0;  // 0: single entries without the first dim
  bool drop_ = false;
};

/// Tensors, vectors and arrays of numbers, nested lists: all with the same size of the first dim.
template <class... T>
Slices<sizeof...(T)> from_slices(const T&... data) {
  static_assert(sizeof...(T) > 0, "from_slices() takes at least one tensor");
  return Slices<sizeof...(T)>({Tensor(data)...});
}

}  // namespace keel::data
#endif
