// trees.cc: tree_ensemble. Many rows are walked in blocks, a tree at a time; few rows by several trees at
// once. Constant trees are packed when they are prepared. The weights of a row are combined in the order of
// the trees by one thread, so the bits do not depend on the form or on the threads.
#include <cmath>

#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/shape/index.h"
#include "plugins/cpu/trees/walk.h"

namespace keel_cpu {
namespace {

enum class Mode { kAdd, kMax, kMin };

struct Trees {
  Mode mode;
  std::shared_ptr<const Forest> forest;  // null: its operands are not constants, or an index is out of range
};

constexpr int64_t kBlockBytes = 32 * 1024;  // features of the rows that a tree walks before the next one
constexpr int64_t kMostBlocks = 16;
constexpr int64_t kFewRows = 4;   // below, trees are walked at once rather than rows
constexpr int64_t kStepCost = 3;  // of a step of a walk, in simple operations

template <class T>
T Start(Mode mode) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  return mode == Mode::kAdd ? 0 : mode == Mode::kMax ? -kInf : kInf;
}
template <Mode kMode, class T>
T Combined(T a, T b) {
  if (kMode == Mode::kAdd) return a + b;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  const bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return less == (kMode == Mode::kMax) ? b : a;
}

template <class T, class U>
class Ensemble {
  using Node = PackedNode<T, U>;

 public:
  Ensemble(const keel_call* call, const Forest& forest, Mode mode)
      : call_(call),
        forest_(forest),
        mode_(mode),
        nodes_(reinterpret_cast<const Node*>(forest.nodes.data())),
        rows_(call->in[kX]->shape[0]),
        features_(call->in[kX]->shape[1]),
        size_(call->out[0]->shape[1]),
        width_(call->in[kWeight]->shape[1]),
        block_(static_cast<int64_t>(forest.columns.size()) * kLanes) {}

  void Run() {
    const int64_t threads = call_->env->threads;
    const bool splits = threads > 1 && forest_.steps * kStepCost >= kParallelCost;  // a row over threads
    const bool few = rows_ < kFewRows || (splits && rows_ < kLanes * threads);
    const int64_t last = few ? rows_ : rows_ % kLanes < kFewRows ? rows_ % kLanes : 0;
    const int64_t blocks = (rows_ - last + kLanes - 1) / kLanes;
    ParallelFor(call_, blocks, kLanes * (forest_.steps * kStepCost + block_ / kLanes),
                [&](int64_t begin, int64_t end) { Blocks(begin, end, rows_ - last); });
    for (int64_t r = rows_ - last; r < rows_ && !Cancelled(call_); r++) Row(r);
  }

 private:
  // Rows of blocks [begin, end) before `stop`.
  void Blocks(int64_t begin, int64_t end, int64_t stop) {
    const int64_t bytes = block_ * static_cast<int64_t>(sizeof(T));
    const int64_t most = std::clamp<int64_t>(kBlockBytes / bytes, 1, std::min(kMostBlocks, end - begin));
    const auto memory = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(block_ * most));
    for (int64_t b = begin; b < end; b += most) {
      const int64_t count = std::min(most, end - b), first = b * kLanes;
      const int64_t rows = std::min(count * kLanes, stop - first);
      for (int64_t k = 0; k < count; k++)
        Load(first + k * kLanes, std::min(kLanes, rows - k * kLanes), memory.get() + k * block_);
      for (const Tree& tree : forest_.trees)
        for (int64_t k = 0; k < count; k++) {
          const Node* at[kLanes];
          std::fill_n(at, kLanes, nodes_ + tree.root);
          Walk<false>(at, memory.get() + k * block_, tree.depth);
          Add(first + k * kLanes, std::min(kLanes, rows - k * kLanes), tree, at);
        }
    }
  }

  // One row, by kLanes trees at once.
  void Row(int64_t row) {
    const auto memory = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(block_));
    Load<1>(row, 1, memory.get());
    const auto trees = static_cast<int64_t>(forest_.trees.size()), groups = (trees + kLanes - 1) / kLanes;
    const auto ends = std::make_unique_for_overwrite<const Node*[]>(static_cast<size_t>(groups * kLanes));
    ParallelFor(call_, groups, forest_.steps * kStepCost * kLanes / std::max<int64_t>(trees, 1),
                [&](int64_t begin, int64_t end) {
                  for (int64_t g = begin; g < end; g++) {
                    const Node** at = ends.get() + g * kLanes;
                    uint32_t depth = 0;
                    for (int64_t i = 0; i < kLanes; i++) {
                      const Tree& tree =
                          forest_.trees[static_cast<size_t>(std::min(g * kLanes + i, trees - 1))];
                      at[i] = nodes_ + tree.root;
                      depth = std::max(depth, tree.depth);
                    }
                    Walk<true>(at, memory.get(), depth);
                  }
                });
    if (Cancelled(call_)) return;
    if (width_ == 1) return WithMode([&](auto mode) { AddTrees<mode()>(row, ends.get()); });
    for (int64_t t = 0; t < trees; t++) Add(row, 1, forest_.trees[static_cast<size_t>(t)], ends.get() + t);
  }

  // The features of `count` rows, which get their start in y, too. Of the lanes in use those without a row
  // repeat the last one.
  template <int64_t kUsed = kLanes>
  void Load(int64_t row, int64_t count, T* block) {
    std::fill_n(block, kLanes, std::numeric_limits<T>::quiet_NaN());
    const T* rows[kUsed];
    for (int64_t i = 0; i < kUsed; i++)
      rows[i] = In<T>(call_, kX) + (row + std::min(i, count - 1)) * features_;
    for (size_t k = 1; k < forest_.columns.size(); k++) {
      const Column c = forest_.columns[k];
      T* to = block + static_cast<int64_t>(k) * kLanes;
      for (int64_t i = 0; i < kUsed; i++) to[i] = rows[i][c.feature];
      for (int64_t i = 0; c.negated && i < kUsed; i++) to[i] = -to[i];
    }
    std::fill_n(Out<T>(call_, 0) + row * size_, count * size_, Start<T>(mode_));
  }

  // Calls f with the mode as a constant.
  template <class F>
  void WithMode(F&& f) const {
    if (mode_ == Mode::kAdd) return f(std::integral_constant<Mode, Mode::kAdd>());
    if (mode_ == Mode::kMax) return f(std::integral_constant<Mode, Mode::kMax>());
    f(std::integral_constant<Mode, Mode::kMin>());
  }

  // The only weight of the leaf of each tree. Neighbours with the same target are combined in a register.
  template <Mode kMode>
  void AddTrees(int64_t row, const Node* const* leaves) {
    T *y = Out<T>(call_, 0) + row * size_, *to = nullptr, sum = 0;
    for (const Tree& tree : forest_.trees) {
      if (to != y + tree.target) {
        if (to) *to = sum;
        sum = *(to = y + tree.target);
      }
      sum = Combined<kMode>(sum, (*leaves++)->split);
    }
    if (to) *to = sum;
  }

  void Add(int64_t row, int64_t count, const Tree& tree, const Node* const* leaves) {
    WithMode([&](auto mode) { AddAll<mode()>(row, count, tree, leaves); });
  }
  template <Mode kMode>
  void AddAll(int64_t row, int64_t count, const Tree& tree, const Node* const* leaves) {
    T* y = Out<T>(call_, 0) + row * size_ + tree.target;
    for (int64_t i = 0; i < count; i++, y += size_) {
      if (width_ == 1) {
        *y = Combined<kMode>(*y, leaves[i]->split);
        continue;
      }
      const T* w = In<T>(call_, kWeight) + LeafNumber(leaves[i]->split) * width_;
      for (int64_t j = 0; j < width_; j++) y[j] = Combined<kMode>(y[j], w[j]);
    }
  }

  const keel_call* call_;
  const Forest& forest_;
  Mode mode_;
  const Node* nodes_;
  int64_t rows_, features_, size_, width_;
  int64_t block_;  // elements of a block
};

keel_rc RunTrees(const keel_call* call) {
  const auto& state = State<Trees>(call);
  const int64_t features = call->in[kX]->shape[1], size = call->out[0]->shape[1];
  const int64_t targets = size - call->in[kWeight]->shape[1] + 1;
  const std::shared_ptr<const Forest> forest = state.forest ? state.forest : PackForest(call->in, size);
  if (forest->features > features) CheckIndex(forest->features - 1, features);
  if (forest->targets > targets) CheckIndex(forest->targets - 1, targets);
  if (TypeOf(*call->out[0]) == KEEL_F64)
    Ensemble<double, uint32_t>(call, *forest, state.mode).Run();
  else if (forest->wide)
    Ensemble<float, uint32_t>(call, *forest, state.mode).Run();
  else
    Ensemble<float, uint16_t>(call, *forest, state.mode).Run();
  return Done(call);
}

keel_rc PrepareTrees(const Node& node, keel_launch* launch) {
  const std::string mode = node.Word("mode");
  Trees state = {mode == "add" ? Mode::kAdd : mode == "max" ? Mode::kMax : Mode::kMin, nullptr};
  keel_tensor tensors[kTreeOperands];
  const keel_tensor* in[kTreeOperands];
  bool constant = true;
  for (uint32_t i = 0; i < kTreeOperands; i++) {
    in[i] = &(tensors[i] = node.In(i));
    constant = constant && (i == kX || tensors[i].data);
  }
  try {
    if (constant) state.forest = PackForest(in, -1);
  } catch (const Error& error) {
    if (error.code != KEEL_RANGE) throw;  // a run reports it
  }
  return Keep(launch, std::move(state), Guard<RunTrees>);
}

constexpr keel_impl kImpls[] = {
    Impl("tree_ensemble", "walks of packed trees", Prepare<PrepareTrees>, KEEL_IMPL_ANY_DIMS)};

}  // namespace

Impls TreeImpls() { return kImpls; }

}  // namespace keel_cpu
