// pack.cc: the packed form of trees (forest.h).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "plugins/cpu/shape/index.h"
#include "plugins/cpu/trees/forest.h"

namespace keel_cpu {
namespace {

constexpr size_t kNoTest = SIZE_MAX;
enum Relation { kLess = 1, kEqual = 2, kGreater = 4, kNan = 8, kAll = 15 };

// x <= split, of a column. A successor is a node of the op or a leaf, numbered as in the op, or -1 - t: test
// t.
template <class T>
struct Test {
  T split;
  uint32_t column;
  int64_t no, yes;
};

int64_t IndexAt(const keel_tensor& t, int64_t i) {
  const void* data = keel_ptr(&t);
  return TypeOf(t) == KEEL_I32 ? static_cast<const int32_t*>(data)[i] : static_cast<const int64_t*>(data)[i];
}

// The number below v; NaN, below which there is nothing, for -inf.
template <class T>
T Below(T v) {
  return v == -std::numeric_limits<T>::infinity() ? std::numeric_limits<T>::quiet_NaN()
                                                  : std::nextafter(v, -std::numeric_limits<T>::infinity());
}

template <class T>
class Packer {
 public:
  explicit Packer(const keel_tensor* const* in)
      : in_(in), nodes_(in[kSplit]->shape[0]), leaves_(in[kWeight]->shape[0]), trees_(in[kRoot]->shape[0]) {}

  Forest Pack(int64_t size) {
    Check(size);
    forest_.columns.push_back({-1, false});
    for (int64_t i = 0; i < nodes_; i++) AddNode(i);
    Place();
    FindDepths();
    forest_.wide = step_ > UINT16_MAX || forest_.columns.size() * kLanes > UINT16_MAX;
    forest_.wide || sizeof(T) == 8 ? Emit<uint32_t>() : Emit<uint16_t>();
    return std::move(forest_);
  }

 private:
  int64_t At(TreeOperand o, int64_t i) const { return IndexAt(*in_[o], i); }

  void Check(int64_t size) {
    constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
    const int64_t features = in_[kX]->shape[1] < 0 ? kUnknown : in_[kX]->shape[1];
    const int64_t targets = size < 0 ? kUnknown : size - in_[kWeight]->shape[1] + 1;
    for (int64_t i = 0; i < nodes_; i++) {
      CheckIndex(At(kFeature, i), features);
      for (int64_t k = 0; k < 2; k++) CheckIndex(At(kNext, 2 * i + k), nodes_ + leaves_ - i - 1);
      forest_.features = std::max(forest_.features, At(kFeature, i) + 1);
    }
    for (int64_t t = 0; t < trees_; t++) {
      CheckIndex(At(kRoot, t), nodes_ + leaves_);
      CheckIndex(At(kTarget, t), targets);
      forest_.targets = std::max(forest_.targets, At(kTarget, t) + 1);
    }
    if (std::max({nodes_, trees_, leaves_}) > INT32_MAX / 8)
      Throw(KEEL_UNIMPLEMENTED, "tree_ensemble of more than 2^28 nodes, leaves or trees");
  }

  uint32_t ColumnOf(int64_t feature, bool negated) {
    const auto [found, is_new] = column_of_.try_emplace(2 * feature + negated, forest_.columns.size());
    if (is_new) forest_.columns.push_back({feature, negated});
    return found->second;
  }

  // A test of node i that is false for NaN; returns it as a successor.
  int64_t Add(int64_t i, bool negated, T split, int64_t no, int64_t yes) {
    tests_.push_back({split, ColumnOf(At(kFeature, i), negated), no, yes});
    return -std::ssize(tests_);
  }

  void AddNode(int64_t i) {
    const T split = static_cast<const T*>(keel_ptr(in_[kSplit]))[i];
    const int64_t test = std::isnan(split) ? (At(kTest, i) & kNan ? kAll : 0) : At(kTest, i);
    const auto to = [&](Relation r) { return i + 1 + At(kNext, 2 * i + ((test & r) != 0)); };
    const auto same = [&](Relation a, Relation b) { return ((test & a) != 0) == ((test & b) != 0); };
    first_.push_back(tests_.size());
    if (same(kLess, kEqual) && same(kGreater, kNan))
      Add(i, false, split, to(kNan), to(kLess));
    else if (same(kEqual, kGreater) && same(kGreater, kNan))
      Add(i, false, Below(split), to(kNan), to(kLess));
    else if (same(kLess, kEqual) && same(kEqual, kNan))
      Add(i, true, Below(-split), to(kNan), to(kGreater));
    else if (same(kEqual, kGreater) && same(kLess, kNan))
      Add(i, true, -split, to(kNan), to(kGreater));
    else
      AddRelations(i, split, to(kLess), to(kEqual), to(kGreater), to(kNan));
  }

  // A test, then one between the relations on each side that lead to different successors.
  void AddRelations(int64_t i, T split, int64_t less, int64_t equal, int64_t greater, int64_t nan) {
    const size_t at = tests_.size();
    Add(i, false, split, nan, equal);
    if (less != equal) {
      const int64_t between = Add(i, false, Below(split), equal, less);
      tests_[at].yes = between;
    }
    if (greater != nan) {
      const int64_t between = Add(i, true, Below(-split), nan, greater);
      tests_[at].no = between;
    }
  }

  // The test of a successor; kNoTest: it is a leaf.
  size_t TestOf(int64_t to) const {
    if (to < 0) return static_cast<size_t>(-1 - to);
    return to < nodes_ ? first_[static_cast<size_t>(to)] : kNoTest;
  }

  // Assigns places: those of the successors of a test after all places of the test, and near them.
  void Place() {
    std::vector<bool> is_root(tests_.size(), false);
    for (int64_t t = 0; t < trees_; t++) {
      const size_t root = TestOf(At(kRoot, t));
      if (root == kNoTest)
        forest_.trees.push_back({places_++, 0, At(kTarget, t)});
      else
        is_root[root] = true, forest_.trees.push_back({0, 0, At(kTarget, t)});
    }
    for (size_t i = 0; i < tests_.size(); i++) {
      places_ += is_root[i];  // the one before its successors
      pairs_.push_back(places_);
      places_ += 2;
    }
    for (int64_t t = 0; t < trees_; t++)
      if (const size_t root = TestOf(At(kRoot, t)); root != kNoTest)
        forest_.trees[static_cast<size_t>(t)].root = pairs_[root] - 1;
    EachPlace([&](uint32_t place, int64_t to) {
      if (const size_t test = TestOf(to); test != kNoTest) step_ = std::max(step_, pairs_[test] - place);
    });
  }

  // Calls f(place, successor) for all places.
  template <class F>
  void EachPlace(F&& f) const {
    for (int64_t t = 0; t < trees_; t++) f(forest_.trees[static_cast<size_t>(t)].root, At(kRoot, t));
    for (size_t i = 0; i < tests_.size(); i++) {
      f(pairs_[i], tests_[i].no);
      f(pairs_[i] + 1, tests_[i].yes);
    }
  }

  void FindDepths() {
    std::vector<uint32_t> depth(tests_.size(), 0);
    const auto of = [&](int64_t to) { return TestOf(to) == kNoTest ? 0 : depth[TestOf(to)]; };
    for (size_t i = tests_.size(); i-- > 0;) depth[i] = 1 + std::max(of(tests_[i].no), of(tests_[i].yes));
    for (int64_t t = 0; t < trees_; t++)
      forest_.steps += forest_.trees[static_cast<size_t>(t)].depth = of(At(kRoot, t));
  }

  template <class U>
  void Emit() {
    forest_.nodes.resize(places_ * sizeof(PackedNode<T, U>));
    EachPlace([&](uint32_t place, int64_t to) {
      PackedNode<T, U> node = {0, 0, 0};
      if (const size_t test = TestOf(to); test == kNoTest) {
        node.split = LeafValue(to - nodes_);
      } else {
        node.split = tests_[test].split;
        node.column = static_cast<U>(tests_[test].column * kLanes);
        node.step = static_cast<U>(pairs_[test] - place);
      }
      std::memcpy(forest_.nodes.data() + place * sizeof node, &node, sizeof node);
    });
  }
  T LeafValue(int64_t leaf) const {
    if (in_[kWeight]->shape[1] == 1) return static_cast<const T*>(keel_ptr(in_[kWeight]))[leaf];
    T value = 0;
    const auto number = static_cast<uint32_t>(leaf);
    std::memcpy(&value, &number, sizeof number);
    return value;
  }

  const keel_tensor* const* in_;
  int64_t nodes_, leaves_, trees_;
  Forest forest_;
  std::unordered_map<int64_t, uint32_t> column_of_;
  std::vector<Test<T>> tests_;
  std::vector<size_t> first_;    // test of a node
  std::vector<uint32_t> pairs_;  // of a test: the place of its first successor
  uint32_t places_ = 0;
  uint32_t step_ = 0;  // the longest
};

}  // namespace

std::shared_ptr<const Forest> PackForest(const keel_tensor* const* in, int64_t size) {
  return std::make_shared<const Forest>(TypeOf(*in[kSplit]) == KEEL_F32 ? Packer<float>(in).Pack(size)
                                                                        : Packer<double>(in).Pack(size));
}

}  // namespace keel_cpu
