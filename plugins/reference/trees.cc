// trees.cc: tree_ensemble: decision trees whose leaves have weights.
#include <algorithm>
#include <cmath>

#include "call.h"
#include "families.h"

namespace reference {
namespace {

enum Operand { kX, kSplit, kFeature, kTest, kNext, kRoot, kTarget, kWeight };

enum class Mode { kAdd, kMax, kMin };

struct TreesState {
  int64_t size;
  Mode mode;
  void read(Attributes& a) {
    size = a.i64("size");
    const std::string_view name = a.text("mode");
    mode = name == "add" ? Mode::kAdd : name == "max" ? Mode::kMax : Mode::kMin;
  }
  double start() const { return mode == Mode::kAdd ? 0 : mode == Mode::kMax ? -HUGE_VAL : HUGE_VAL; }
};

int64_t index_at(const keel_call& c, Operand o, int64_t i) {
  return in_type(c, o) == KEEL_I32 ? in<int32_t>(c, o)[i] : in<int64_t>(c, o)[i];
}

struct Sizes {
  int64_t rows, features, nodes, trees, leaves, width;
  explicit Sizes(const keel_call& c)
      : rows(c.in[kX]->shape[0]),
        features(c.in[kX]->shape[1]),
        nodes(c.in[kSplit]->shape[0]),
        trees(c.in[kRoot]->shape[0]),
        leaves(c.in[kWeight]->shape[0]),
        width(c.in[kWeight]->shape[1]) {}
};

keel_rc check(const keel_call& c, Operand o, int64_t i, int64_t n) {
  const int64_t index = index_at(c, o, i);
  return index < 0 || index >= n ? bad_index(c, index, n) : KEEL_OK;
}

keel_rc check_all(const keel_call& c, const Sizes& s, int64_t columns) {
  keel_rc rc = KEEL_OK;
  for (int64_t i = 0; !rc && i < s.nodes; ++i) {
    const int64_t after = s.nodes + s.leaves - i - 1;
    rc = check(c, kFeature, i, s.features);
    if (!rc) rc = check(c, kNext, 2 * i, after);
    if (!rc) rc = check(c, kNext, 2 * i + 1, after);
  }
  for (int64_t t = 0; !rc && t < s.trees; ++t) {
    rc = check(c, kRoot, t, s.nodes + s.leaves);
    if (!rc) rc = check(c, kTarget, t, columns - s.width + 1);
  }
  return rc;
}

template <class T>
int64_t leaf_of(const keel_call& c, const Sizes& s, const T* x, int64_t at) {
  while (at < s.nodes) {
    const T value = x[index_at(c, kFeature, at)], split = in<T>(c, kSplit)[at];
    const int64_t relation = value < split ? 1 : value == split ? 2 : value > split ? 4 : 8;
    const bool yes = (index_at(c, kTest, at) & relation) != 0;
    at += 1 + index_at(c, kNext, 2 * at + yes);
  }
  return at - s.nodes;
}

template <class T>
T combined(Mode mode, T a, T b) {
  if (mode == Mode::kAdd) return a + b;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  const bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return less == (mode == Mode::kMax) ? b : a;
}

template <class T>
void run_row(const TreesState& state, const keel_call& c, const Sizes& s, int64_t r) {
  T* y = out<T>(c) + r * state.size;
  std::fill_n(y, state.size, static_cast<T>(state.start()));
  for (int64_t t = 0; t < s.trees; ++t) {
    const int64_t leaf = leaf_of(c, s, in<T>(c, kX) + r * s.features, index_at(c, kRoot, t));
    T* to = y + index_at(c, kTarget, t);
    for (int64_t j = 0; j < s.width; ++j)
      to[j] = combined(state.mode, to[j], in<T>(c, kWeight)[s.width * leaf + j]);
  }
}

keel_rc tree_ensemble(const TreesState& state, const keel_call& c) {
  const Sizes s(c);
  if (const keel_rc rc = check_all(c, s, state.size)) return rc;
  for (int64_t r = 0; r < s.rows; ++r) {
    if (cancelled(c)) return KEEL_CANCELLED;
    in_type(c) == KEEL_F32 ? run_row<float>(state, c, s, r) : run_row<double>(state, c, s, r);
  }
  return KEEL_OK;
}

constexpr keel_impl kImpls[] = {
    row<TreesState, tree_ensemble>(REFERENCE_OP("tree_ensemble"), 0),
};

}  // namespace

std::span<const keel_impl> tree_impls() { return kImpls; }

}  // namespace reference
