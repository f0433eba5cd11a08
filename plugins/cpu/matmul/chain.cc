// chain.cc: prepares and runs a chain (chain.h), an impl of `call`.
//
// A thread runs the elementwise ops on each block of rows that it has multiplied, while the block is in its
// second-level cache: they take the place of the product. If all weights fit the cache as well, a block goes
// through all stages, and values between stages never reach memory (by rows). Else stage by stage.
// 60,000 rows through 784x128, 128x128 twice and 128x10, with bias and relu, take 0.90 of
// the time of launches of each product and of its ops (one thread of Zen 4), and 61 MB less.
#include "plugins/cpu/matmul/chain.h"

#include <algorithm>
#include <memory>
#include <string>

#include "plugins/cpu/map/tiles.h"
#include "plugins/cpu/matmul/choice.h"
#include "plugins/cpu/matmul/matmul.h"
#include "plugins/cpu/matmul/spaced_rows.h"
#include "plugins/cpu/regions/body.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

struct Stage {
  Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    if (product.release != nullptr) product.release(nullptr, product.state);
  }
  keel_launch product = {};
  uint32_t left = 0, right = 0;  // operands of the call; left: of the first stage
  bool has_map = false;
  Map map;
  Dims dims;  // of its result
  int64_t m = 0, n = 0, k = 0;
};
struct Chain {
  std::deque<Stage> stages;
  keel_dtype dtype;
  bool by_rows = false;
  int threads = 1;                   // that the scratch has room for, by rows
  uint64_t between = 0, packed = 0;  // bytes of a value between two stages; of the products' scratch
  std::string steps;

  const Stage& Last() const { return stages.back(); }
  // Two buffers for values between stages, by turns: one pair, or one for each thread; then `packed`.
  char* Between(const keel_call* call, int64_t lane, size_t stage) const {
    return static_cast<char*>(call->scratch) + (2 * static_cast<uint64_t>(lane) + stage % 2) * between;
  }
  uint64_t Pairs() const { return stages.size() > 1 ? 2 * static_cast<uint64_t>(by_rows ? threads : 1) : 0; }
};
using Owned = std::unique_ptr<Chain>;

// A stage's calls within that of the chain, for one thread: of its product, and of its map, in whose place
// the product is.
class StageCall {
 public:
  StageCall(const keel_call* call, const Chain& c, size_t i)
      : stage(c.stages[i]), product(*call), map(*call) {
    left_ = i == 0 ? *call->in[stage.left] : TensorOf(c, c.stages[i - 1]);
    y_ = TensorOf(c, stage);
    factors_[0] = &left_, factors_[1] = call->in[stage.right];
    result_ = &y_;
    product.in = factors_, product.n_in = 2, product.out = &result_;
    product.state = stage.product.state;
    std::copy_n(call->in, call->n_in, operands_);
    operands_[call->n_in] = &y_;
    map.in = operands_, map.n_in++, map.out = &result_;
    map.state = const_cast<Map*>(&stage.map);
    product.flags = map.flags = 0;
    product.count = map.count = keel_count(&y_);
    product.scratch = static_cast<char*>(call->scratch) + c.Pairs() * c.between;
  }
  StageCall(const StageCall&) = delete;
  StageCall& operator=(const StageCall&) = delete;
  void Place(void* left, void* y) {
    if (left != nullptr) left_.data = left, left_.byte_offset = 0;
    y_.data = y;
  }
  // Runs the ops on some rows, or columns of them; layout is that of the map's call.
  void RunOps(const MapLayout& layout, const Cells& c, MapFailure* failure) const {
    MapRanges ranges(layout, failure);
    const int64_t n = stage.n;
    if (c.columns == n) return ranges.Run(c.row * n, c.rows * n);
    for (int64_t r = c.row; r < c.row + c.rows; r++) ranges.Run(r * n + c.column, c.columns);
  }
  const keel_tensor& Result() const { return y_; }

  const Stage& stage;
  keel_call product, map;

 private:
  static keel_tensor TensorOf(const Chain& c, const Stage& s) {
    keel_tensor t = {};
    t.device = {1, 0};
    t.dtype = c.dtype;
    t.ndim = static_cast<int32_t>(s.dims.size());
    t.shape = const_cast<int64_t*>(s.dims.data());
    return t;
  }
  keel_tensor left_, y_;
  keel_tensor* result_;
  const keel_tensor* factors_[2];
  const keel_tensor* operands_[kMapOperands];
};

keel_rc RunStage(const StageCall& s) {
  const Stage& stage = s.stage;
  const bool by_blocks = stage.has_map && ComputesBlocks(stage.product) &&
                         RowsOfBlock() * stage.n * ItemSize(s.Result()) <= SecondLevelCache() / 2;
  if (!by_blocks) {
    const keel_rc rc = stage.product.run(&s.product);
    return rc == KEEL_OK && stage.has_map ? RunMap(&s.map) : rc;
  }
  const MapLayout layout(&s.map, &stage.map, &stage.map.all, s.Result());
  MapFailure failure;
  const keel_rc rc = RunLoops(&s.product, [&](const Cells& c) { s.RunOps(layout, c, &failure); });
  return rc == KEEL_OK ? failure.Report(layout) : rc;
}

keel_rc RunByStages(const keel_call* call, const Chain& c) {
  char* left = nullptr;
  for (size_t i = 0; i < c.stages.size(); i++) {
    StageCall s(call, c, i);
    char* y = i + 1 < c.stages.size() ? c.Between(call, 0, i) : Out<char>(call, 0);
    s.Place(left, y);
    if (const keel_rc rc = RunStage(s); rc != KEEL_OK) return rc;
    left = y;
  }
  return KEEL_OK;
}

// One thread's blocks.
class RowsRun {
 public:
  RowsRun(const keel_call* call, const Chain& c, int64_t lane, MapFailure* failure)
      : call_(call), chain_(c), lane_(lane), failure_(failure) {
    for (size_t i = 0; i < c.stages.size(); i++) {
      const StageCall& s = calls_.emplace_back(call, c, i);
      layouts_.emplace_back(&s.map, &s.stage.map, &s.stage.map.all, s.Result());
    }
  }
  void Run(int64_t row, int64_t rows) {
    const char* left =
        In<char>(call_, static_cast<int>(calls_[0].stage.left)) + row * calls_[0].stage.k * Size();
    for (size_t i = 0; i < calls_.size(); i++) {
      StageCall& s = calls_[i];
      const int64_t before = row * s.stage.n * Size();
      const bool last = i + 1 == calls_.size();
      char* y = last ? Out<char>(call_, 0) + before : chain_.Between(call_, lane_, i);
      MultiplyRows(&s.product, left, rows, i == 0 && row + rows < s.stage.m, y);
      if (s.stage.has_map) {
        // The address that row 0 would have; only these rows are there.
        s.Place(nullptr,
                reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(y) - static_cast<uintptr_t>(before)));
        s.RunOps(layouts_[i], {row, rows, 0, s.stage.n}, failure_);
      }
      left = y;
    }
  }

 private:
  int64_t Size() const { return chain_.dtype.bits / 8; }
  const keel_call* call_;
  const Chain& chain_;
  int64_t lane_;
  MapFailure* failure_;
  std::deque<StageCall> calls_;
  std::deque<MapLayout> layouts_;
};

keel_rc RunByRows(const keel_call* call, const Chain& c) {
  const int64_t m = c.Last().m, most = RowsOfBlock(), blocks = (m + most - 1) / most;
  int64_t cost = 0;
  for (const Stage& s : c.stages) cost += most * s.k * s.n / 16;
  const int64_t lanes = std::min<int64_t>({c.threads, call->env->threads, blocks});
  MapFailure failure;
  ParallelFor(call, lanes, blocks / lanes * cost, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; lane++) {
      RowsRun run(call, c, lane, &failure);
      for (int64_t b = blocks * lane / lanes; b < blocks * (lane + 1) / lanes && !Cancelled(call); b++)
        run.Run(b * most, std::min(most, m - b * most));
    }
  });
  return Done(call);
}

keel_rc RunChain(const keel_call* call) {
  const Chain& c = *State<Owned>(call);
  if (call->count == 0) return KEEL_OK;
  return c.by_rows ? RunByRows(call, c) : RunByStages(call, c);
}

// Several stages of constant weights, which stay in the second-level cache with a block of rows. Ops on
// floats do not fail.
bool GoesByRows(const Chain& c) {
  constexpr uint8_t kFloat = 2;  // keel_dtype.code
  if (c.dtype.code != kFloat) return false;
  int64_t weights = 0;
  for (const Stage& s : c.stages) {
    const int64_t size = c.dtype.bits / 8;
    if (!MultipliesRows(s.product) || SpacedRows::AreNeeded(RowsOfBlock(), s.k * size)) return false;
    weights += s.k * s.n * size;
  }
  return c.stages.size() > 1 && c.Last().m > 2 * RowsOfBlock() && weights <= SecondLevelCache() / 4 * 3;
}

// keel_launch.steps: a line for each node.
std::string StepsOf(const keel_host* host, const ChainBody& body, bool by_rows) {
  std::string steps;
  const auto line = [&](const keel_node* n, const std::string& way) {
    if (!steps.empty()) steps += '\n';
    for (const char* part : {host->node_name(n), "\t", host->node_op(n), "\t", way.c_str()}) steps += part;
  };
  for (const ChainStage& s : body.stages) {
    const size_t reason = ReasonFor(ReadMatmul(body.Product(s)), body.Right(s).data != nullptr);
    const bool chosen = TypeOf(s.y) == KEEL_F32 && !ProductReasons()[reason].onednn;
    line(s.matmul->node, by_rows  ? "own loops, a block of rows through all layers"
                         : chosen ? ProductReasons()[reason].name
                                  : "own loops");
    for (const keel_body_node& n : s.nodes) line(n.node, "in the place of the product");
  }
  return steps;
}

void PrepareStage(const ChainBody& body, const ChainStage& from, Stage* s) {
  const MatmulShape shape = ReadMatmul(body.Product(from));
  const keel_tensor& b = body.Right(from);
  PrepareLoops(TypeOf(from.y), shape, b.data != nullptr ? keel_ptr(&b) : nullptr, &s->product);
  s->left = from.matmul->in[0], s->right = from.matmul->in[1];
  s->dims = DimsOf(from.y);
  s->m = shape.m * shape.Batches(), s->n = shape.n, s->k = shape.k;
  s->has_map = !from.nodes.empty();
  if (!s->has_map) return;
  std::optional<Map> map = CompileMap(from.map);
  if (!map) Throw(KEEL_UNIMPLEMENTED, "the body of this call has ops that are not elementwise");
  s->map = std::move(*map);
}

int32_t MatchChain(keel_dev, const keel_host* host, const keel_node* node) {
  try {
    return IsChain({host, node});
  } catch (...) {
    return 0;  // declined: unreadable body, or a dtype without loops
  }
}

constexpr keel_impl kImpls[] = {
    {"call", 1, 1, nullptr, "products and maps", 3, 0, MatchChain, Prepare<PrepareChain>, nullptr}};

}  // namespace

keel_rc PrepareChain(const Node& call, keel_launch* launch) {
  const ChainBody body(call);
  auto c = std::make_unique<Chain>();
  for (const ChainStage& from : body.stages) PrepareStage(body, from, &c->stages.emplace_back());
  c->dtype = call.Out(0).dtype;
  c->by_rows = GoesByRows(*c);
  c->threads = Budget();
  const int64_t size = c->dtype.bits / 8;
  for (const Stage& s : c->stages) {
    const int64_t rows = c->by_rows ? RowsOfBlock() : s.m;
    if (&s != &c->Last())
      c->between = std::max(c->between, Aligned(static_cast<uint64_t>(rows * s.n * size)));
    c->packed = std::max(c->packed, s.product.scratch_bytes);
  }
  c->steps = StepsOf(call.host, body, c->by_rows);
  Explain(launch, c->steps.c_str());
  const uint64_t scratch = c->Pairs() * c->between + c->packed;
  return Keep(launch, std::move(c), Guard<RunChain>, scratch);
}

Impls ChainImpls() { return kImpls; }

}  // namespace keel_cpu
