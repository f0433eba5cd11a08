// Impls of the CPU plugin for primitives against the reference plugin: every dtype, shapes that are empty, of
// one, odd and large, operands that end or start at memory that cannot be touched and that must not be
// written, one thread and two. Composites: cpu_composites_test.cc.
#include "cpu_impls.h"

namespace {

using namespace cpu_impls;

TEST(CpuImpls, FunctionsOfOneFloat) {
  Rng rng(1);
  for (const char* op : {"exp", "log", "log1p", "sin", "cos", "tanh", "erf", "sqrt", "rsqrt", "reciprocal",
                         "floor", "ceil", "round", "neg", "abs", "sign", "relu"})
    for (keel_dt dt : bare::kFloats)
      for (const Dims& dims : kShapes)
        for (double span : {0.5, 8.0, 90.0, 4e4}) {
          const BareTensor t = {dt, dims};
          Compare(NodeBuilder(op, {t}, {t}).node, {bare::Draw(rng, t, span, true)}, {4, 0});
        }
}

TEST(CpuImpls, TestsOfFloats) {
  Rng rng(2);
  for (const char* op : {"is_nan", "is_inf", "is_finite"})
    for (keel_dt dt : bare::kFloats)
      for (const Dims& dims : kShapes) {
        const BareTensor t = {dt, dims};
        Compare(NodeBuilder(op, {t}, {{KEEL_BOOL, dims}}).node, {bare::Draw(rng, t, 1, true)});
      }
}

TEST(CpuImpls, OpsOfTwo) {
  const std::pair<Dims, Dims> kPairs[] = {
      {{}, {}},      {{7}, {7}},       {{70001}, {70001}}, {{1000}, {}},        {{}, {33}},   {{0}, {1}},
      {{3, 5}, {5}}, {{3, 5}, {3, 1}}, {{5, 1}, {1, 7}},   {{2, 1, 4}, {3, 1}}, {{0, 3}, {3}}};
  Rng rng(3);
  std::vector<keel_dt> all(std::begin(bare::kFloats), std::end(bare::kFloats));
  all.insert(all.end(), std::begin(bare::kInts), std::end(bare::kInts));
  for (const char* op : {"add", "sub", "mul", "maximum", "minimum", "equal", "less", "greater_equal"})
    for (keel_dt dt : all)
      for (const auto& [left, right] : kPairs) {
        const BareTensor a = {dt, left}, b = {dt, right};
        const bool compares = op[0] == 'e' || op[0] == 'l' || op[0] == 'g';
        const BareTensor y = {compares ? keel_dt{KEEL_BOOL} : dt, Broadcast(left, right)};
        Compare(NodeBuilder(op, {a, b}, {y}).node,
                {bare::Draw(rng, a, 5, true), bare::Draw(rng, b, 5, true)});
      }
}

TEST(CpuImpls, CastsBetweenAllDtypes) {
  Rng rng(4);
  std::vector<keel_dt> all(std::begin(bare::kFloats), std::end(bare::kFloats));
  all.insert(all.end(), std::begin(bare::kInts), std::end(bare::kInts));
  all.push_back(KEEL_BOOL);
  for (keel_dt from : all)
    for (keel_dt to : all)
      for (const Dims& dims : kShapes) {
        const BareTensor x = {from, dims};
        NodeBuilder n("cast", {x}, {{to, dims}});
        n.Dtype("to", to);
        Compare(n.node, {bare::Draw(rng, x, 300, true)});
      }
}

TEST(CpuImpls, EveryHalfIsWidenedAndEveryTieRoundedToEven) {
  std::vector<uint16_t> halves;
  std::vector<uint32_t> ties;
  for (uint32_t h = 0; h < 65536; h++) {
    halves.push_back(static_cast<uint16_t>(h));
    const uint32_t magnitude = h & 0x7fff, sign = (h & 0x8000) << 16;
    if (magnitude < 0x400 || magnitude >= 0x7c00) continue;  // denormals: drawn at random above
    const uint32_t middle = (magnitude << 13) + 0x38000000 + 0x1000;
    for (uint32_t bits : {middle - 1, middle, middle + 1}) ties.push_back(sign | bits);
  }
  const BareTensor f16 = {KEEL_F16, {static_cast<int64_t>(halves.size())}}, wide = {KEEL_F32, f16.dims},
                   f32 = {KEEL_F32, {static_cast<int64_t>(ties.size())}}, narrow = {KEEL_F16, f32.dims};
  Compare(NodeBuilder("cast", {f16}, {wide}).Dtype("to", KEEL_F32).node, {BytesOf(halves)});
  Compare(NodeBuilder("cast", {f32}, {narrow}).Dtype("to", KEEL_F16).node, {BytesOf(ties)});
}

TEST(CpuImpls, SelectOfAllSteps) {
  Rng rng(5);
  const Dims kPart[] = {{}, {5}, {3, 1}, {3, 5}, {2, 1, 1}, {2, 3, 5}};
  for (keel_dt dt : {KEEL_F32, KEEL_F64, KEEL_F16, KEEL_BOOL, KEEL_I64})
    for (const Dims& p : kPart)
      for (const Dims& a : kPart)
        for (const Dims& b : kPart) {
          const BareTensor tp = {KEEL_BOOL, p}, ta = {dt, a}, tb = {dt, b},
                           y = {dt, Broadcast(Broadcast(p, a), b)};
          Compare(NodeBuilder("select", {tp, ta, tb}, {y}).node,
                  {bare::Draw(rng, tp, 1), bare::Draw(rng, ta, 9), bare::Draw(rng, tb, 9)});
        }
}

// Each set of axes of these shapes.
template <class F>
void ForAxes(F f) {
  for (const Dims& dims : {Dims{1}, Dims{0}, Dims{49}, Dims{5000}, Dims{3, 64}, Dims{64, 3}, Dims{0, 3},
                           Dims{3, 0}, Dims{4, 5, 37}, Dims{2, 33, 1, 7}, Dims{40, 600}})
    for (uint32_t set = 1; set < 1u << dims.size(); set++) {
      Dims axes, kept;
      for (size_t d = 0; d < dims.size(); d++)
        (set >> d & 1 ? axes : kept).push_back(set >> d & 1 ? static_cast<int64_t>(d) : dims[d]);
      f(dims, axes, kept);
    }
}

TEST(CpuImpls, ReductionsAlongAnyAxes) {
  Rng rng(6);
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"})
    for (keel_dt dt : {KEEL_F32, KEEL_F64, KEEL_F16, KEEL_BF16, KEEL_I8, KEEL_I32, KEEL_I64, KEEL_U8})
      ForAxes([&](const Dims& dims, const Dims& axes, const Dims& kept) {
        const BareTensor x = {dt, dims};
        NodeBuilder n(op, {x}, {{dt, kept}});
        n.Ints("axes", axes).Flag("keep", 0);
        const double count = static_cast<double>(x.Count());
        const bool sums = op[7] == 's', means = op[8] == 'e';
        Compare(n.node, {bare::Draw(rng, x, 1)}, {sums || means ? 16.0 : 0.0, sums ? std::sqrt(count) : 1.0});
      });
}

TEST(CpuImpls, OrdersAlongAnAxis) {
  Rng rng(7);
  for (const Dims& dims : {Dims{1}, Dims{40}, Dims{3, 1000}, Dims{65, 4}, Dims{2, 5, 33}})
    for (size_t axis = 0; axis < dims.size(); axis++)
      for (keel_dt dt : {KEEL_F32, KEEL_F64, KEEL_F16, KEEL_I8, KEEL_I64, KEEL_U8}) {
        const BareTensor x = {dt, dims};
        Dims kept = dims;
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(axis));
        const std::string bytes = bare::Draw(rng, x, 1, true);
        for (const char* op : {"arg_max", "arg_min"})
          for (int last : {0, 1}) {
            NodeBuilder n(op, {x}, {{KEEL_I64, kept}});
            Compare(n.Int("axis", static_cast<int64_t>(axis)).Flag("last", last).node, {bytes});
          }
        for (int way = 0; way < 4; way++) {
          NodeBuilder n("cumsum", {x}, {x});
          n.Int("axis", static_cast<int64_t>(axis)).Flag("exclusive", way & 1).Flag("reverse", way >> 1);
          Compare(n.node, {bare::Draw(rng, x, 1)}, {8, 30});
        }
      }
}

TEST(CpuImpls, TopFewAndMany) {
  Rng rng(8);
  for (keel_dt dt : {KEEL_F32, KEEL_F16, KEEL_I32, KEEL_U8})
    for (int64_t k : {0, 1, 5, 16, 17, 200})
      for (int largest : {0, 1}) {
        const BareTensor x = {dt, {3, 200}};
        NodeBuilder n("top_k", {x}, {{dt, {3, k}}, {KEEL_I64, {3, k}}});
        Compare(n.Dim("k", k).Flag("largest", largest).node, {bare::Draw(rng, x, 1, true)});
      }
}

TEST(CpuImpls, TransposesByEveryOrder) {
  Rng rng(9);
  for (const Dims& dims : {Dims{5}, Dims{3, 0}, Dims{1, 9}, Dims{16, 16}, Dims{17, 33}, Dims{130, 67},
                           Dims{2, 17, 19}, Dims{3, 4, 5, 6}, Dims{1, 33, 2, 18}}) {
    Dims perm(dims.size());
    for (size_t i = 0; i < perm.size(); i++) perm[i] = static_cast<int64_t>(i);
    do {
      for (keel_dt dt : {KEEL_I8, KEEL_F16, KEEL_F32, KEEL_I64}) {
        const BareTensor x = {dt, dims};
        BareTensor y = {dt, {}};
        for (int64_t p : perm) y.dims.push_back(dims[static_cast<size_t>(p)]);
        NodeBuilder n("transpose", {x}, {y});
        Compare(n.Ints("perm", perm).node, {bare::Draw(rng, x, 9)});
      }
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

std::string Indices(Rng& rng, int64_t count, int64_t below) {
  std::string bytes;
  for (int64_t i = 0; i < count; i++) {
    const int64_t v = static_cast<int64_t>(rng() % static_cast<uint64_t>(below));
    bytes.append(reinterpret_cast<const char*>(&v), 8);
  }
  return bytes;
}

TEST(CpuImpls, GathersBlocksOfAllSizes) {
  Rng rng(10);
  for (const Dims& dims :
       {Dims{9}, Dims{9, 1}, Dims{9, 2}, Dims{9, 3}, Dims{4, 9}, Dims{2, 9, 17}, Dims{0, 9}, Dims{1, 9, 1}})
    for (int64_t picks : {0, 1, 7, 40000})
      for (keel_dt dt : {KEEL_I8, KEEL_F16, KEEL_F32, KEEL_F64}) {
        const size_t axis = dims[0] == 9 ? 0 : 1;
        const BareTensor x = {dt, dims}, i = {KEEL_I64, {picks}};
        BareTensor y = x;
        y.dims[axis] = picks;
        NodeBuilder n("gather", {x, i}, {y});
        Compare(n.Int("axis", static_cast<int64_t>(axis)).node,
                {bare::Draw(rng, x, 9), Indices(rng, picks, 9)});
      }
}

TEST(CpuImpls, GatherNamesTheIndexThatIsOutside) {
  Rng rng(11);
  const BareTensor x = {KEEL_F32, {9}}, i = {KEEL_I64, {3}};
  NodeBuilder n("gather", {x, i}, {{KEEL_F32, {3}}});
  n.Int("axis", 0);
  for (int64_t bad : {int64_t{9}, int64_t{-1}}) {
    std::string indices = Indices(rng, 3, 9);
    std::memcpy(indices.data() + 8, &bad, 8);
    keel_rc rc = KEEL_OK;
    bare::Run(Cpu(), n.node, {bare::Draw(rng, x, 1), indices}, {}, &rc);
    EXPECT_EQ(rc, KEEL_RANGE);
    EXPECT_EQ(bare::Failure(), "index " + std::to_string(bad) + " is not in [0, 9)");
  }
}

TEST(CpuImpls, ProductsOfAllSizes) {
  Rng rng(12);
  const int64_t kSizes[][3] = {{1, 1, 1},    {10, 10, 10}, {1, 128, 10}, {3, 0, 4},
                               {0, 3, 4},    {3, 4, 0},    {13, 7, 16},  {5, 9, 17},
                               {64, 65, 66}, {200, 30, 3}, {11, 5, 8},   {1, 33, 40}};
  for (const auto& [m, k, n] : kSizes)
    for (int turn = 0; turn < 4; turn++)
      for (int64_t batch : {0, 1, 3})
        for (keel_dt dt : {KEEL_F32, KEEL_F64, KEEL_F16, KEEL_I8, KEEL_I32, KEEL_U32, KEEL_I64}) {
          const bool ta = turn & 1, tb = turn & 2;
          BareTensor a = {dt, ta ? Dims{k, m} : Dims{m, k}}, b = {dt, tb ? Dims{n, k} : Dims{k, n}},
                     c = {dt, {m, n}};
          if (batch) a.dims.insert(a.dims.begin(), batch), c.dims.insert(c.dims.begin(), batch);
          NodeBuilder node("matmul", {a, b}, {c});
          Compare(node.Flag("ta", ta).Flag("tb", tb).node, {bare::Draw(rng, a, 1), bare::Draw(rng, b, 1)},
                  {8, std::sqrt(static_cast<double>(k)) * (dt == KEEL_F16 ? 4 : 1)});
        }
}

// 3x3 windows with enough channels and pixels, and constant weights: uses tiles of 2x2 results.
TEST(CpuImpls, ConvolutionsByTiles) {
  Rng rng(15);
  struct Case {
    Dims x;
    int64_t outputs;
    Dims lo, hi;
  };
  for (const Case& c : {Case{{1, 32, 14, 14}, 33, {1, 1}, {1, 1}}, Case{{2, 35, 13, 9}, 48, {0, 2}, {1, 0}},
                        Case{{41, 32, 3, 3}, 32, {0, 0}, {0, 0}}}) {
    const int64_t rows = c.x[2] + c.lo[0] + c.hi[0] - 2, columns = c.x[3] + c.lo[1] + c.hi[1] - 2;
    const BareTensor x = {KEEL_F32, c.x}, w = {KEEL_F32, {c.outputs, c.x[1], 3, 3}},
                     y = {KEEL_F32, {c.x[0], c.outputs, rows, columns}};
    NodeBuilder node("conv", {x, w}, {y});
    node.Ints("stride", {1, 1}).Ints("dil", {1, 1}).Ints("lo", c.lo).Ints("hi", c.hi).Int("groups", 1);
    const std::vector<std::string> operands = {bare::Draw(rng, x, 1), bare::Draw(rng, w, 1)};
    node.node.data = {nullptr, operands[1].data()};
    Compare(node.node, operands, {8, std::sqrt(static_cast<double>(9 * c.x[1]))});
  }
}

TEST(CpuImpls, LongLoopsStopWhenTheRunIsCancelled) {
  const BareTensor x = {KEEL_F32, {20000000}};
  bare::Buffer a(x.Bytes(), true), y(x.Bytes(), true);
  const keel_node kNodes[] = {NodeBuilder("exp", {x}, {x}).node, NodeBuilder("add", {x, x}, {x}).node,
                              NodeBuilder("cast", {x}, {x}).node};
  for (const keel_node& node : kNodes) {
    bare::Bound bound(Cpu(), node, std::vector<const void*>(node.in.size(), a.data()), {y.data()}, 2);
    bound.cancelled = 1;
    EXPECT_EQ(bound.Run(), KEEL_CANCELLED) << node.op;
  }
}

}  // namespace
