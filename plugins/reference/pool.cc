// pool.cc: the maximum or mean of each window of an image.
//
// each_window() visits the windows of all images; the ops compute one result per window. A window outside the
// image gives the lowest value of the dtype (max_pool), -1 (max_pool_index) or, if no cell counts, NaN
// (avg_pool).
#include "call.h"
#include "families.h"
#include "window.h"

namespace reference {
namespace {

// Calls f(first element of the image in x, window position, result offset).
template <class F>
keel_rc each_window(const keel_call& c, F f) {
  const keel_tensor& x = *c.in[0];
  const Dims places = image_of(*c.out[0]);
  const int64_t images = x.shape[0] * x.shape[1], pixels = product(image_of(x));
  int64_t result = 0;
  for (int64_t i = 0; i < images; ++i) {
    if (cancelled(c)) return KEEL_CANCELLED;
    for (Odometer s(places); s.valid(); s.next()) f(i * pixels, s.index, result++);
  }
  return KEEL_OK;
}

struct MaxState {
  Window window;
  Dims cells;
  void read(Attributes& a) {
    window.read(a);
    cells = a.list("window");
  }
};
// The offset in its image of the maximum, the first of equals, or of the first NaN; -1 without cells.
template <class T>
int64_t greatest(const MaxState& state, const T* x, const Dims& s, const Dims& image) {
  int64_t best = -1;
  for (Odometer k(state.cells); k.valid(); k.next()) {
    const int64_t at = state.window.offset(s, k.index, image);
    if (at >= 0 && (best < 0 || less_nan_high(x[best], x[at]))) best = at;
  }
  return best;
}
keel_rc max_pool(const MaxState& state, const keel_call& c) {
  return typed<Num>(c, in_type(c), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Dims image = image_of(*c.in[0]);
    return each_window(c, [&](int64_t first, const Dims& s, int64_t result) {
      const T* x = in<T>(c, 0) + first;
      const int64_t best = greatest(state, x, s, image);
      out<T>(c)[result] = best < 0 ? lowest<T>() : x[best];
    });
  });
}

struct MaxIndexState : MaxState {
  bool column_major;
  void read(Attributes& a) {
    MaxState::read(a);
    column_major = a.boolean("column_major");
  }
};
// The column-major offset of the same cell: the first image dim varies fastest.
int64_t to_column_major(int64_t offset, const Dims& image) {
  int64_t place = 0;
  Dims index = image;
  for (int32_t d = image.n - 1; d >= 0; --d) {
    index[d] = offset % image[d];
    offset /= image[d];
  }
  for (int32_t d = image.n - 1; d >= 0; --d) place = place * image[d] + index[d];
  return place;
}
keel_rc max_pool_index(const MaxIndexState& state, const keel_call& c) {
  return typed<Num>(c, in_type(c), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Dims image = image_of(*c.in[0]);
    return each_window(c, [&](int64_t first, const Dims& s, int64_t result) {
      int64_t best = greatest(state, in<T>(c, 0) + first, s, image);
      if (best >= 0 && state.column_major) best = to_column_major(best, image);
      out<int64_t>(c)[result] = best < 0 ? -1 : first + best;
    });
  });
}

struct AvgState {
  Window window;
  Dims cells, hi;
  bool count_pad;
  void read(Attributes& a) {
    window.read(a);
    cells = a.list("window");
    hi = a.list("hi");
    count_pad = a.boolean("count_pad");
  }
  // Whether the cell is in the image or in its padding lo and hi, not beyond.
  bool padded(const Dims& s, const Dims& k, const Dims& image) const {
    for (int32_t d = 0; d < image.n; ++d) {
      if (window.at(d, s, k) >= image[d] + hi[d]) return false;  // never before lo
    }
    return true;
  }
};
template <class T>
T mean(const AvgState& state, const T* x, const Dims& s, const Dims& image) {
  Sum<T> sum = 0;
  int64_t count = 0;
  for (Odometer k(state.cells); k.valid(); k.next()) {
    const int64_t at = state.window.offset(s, k.index, image);
    if (at >= 0) sum += wide(x[at]);
    if (at >= 0 || (state.count_pad && state.padded(s, k.index, image))) ++count;
  }
  return make<T>(sum / static_cast<Sum<T>>(count));
}
keel_rc avg_pool(const AvgState& state, const keel_call& c) {
  return typed<Floats>(c, in_type(c), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Dims image = image_of(*c.in[0]);
    return each_window(c, [&](int64_t first, const Dims& s, int64_t result) {
      out<T>(c)[result] = mean(state, in<T>(c, 0) + first, s, image);
    });
  });
}

constexpr keel_impl kImpls[] = {
    row<MaxState, max_pool>(REFERENCE_OP("max_pool"), 0),
    row<MaxIndexState, max_pool_index>(REFERENCE_OP("max_pool_index"), 0),
    row<AvgState, avg_pool>(REFERENCE_OP("avg_pool"), 0),
};

}  // namespace

std::span<const keel_impl> pool_impls() { return kImpls; }

}  // namespace reference
