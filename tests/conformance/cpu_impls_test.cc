// Impls of the CPU plugin against the reference plugin (primitives) and against formulas in double
// (composites): every dtype, shapes that are empty, of one, odd and large, operands that end or start
// at memory that cannot be touched and that must not be written, one thread and two.
#include "bare_values.h"

namespace {

using bare::NodeBuilder;
using bare::Plugin;
using bare::Rng;
using Dims = std::vector<int64_t>;

const Plugin& Cpu() {
  static const Plugin plugin("cpu");
  return plugin;
}
const Plugin& Reference() {
  static const Plugin plugin("reference");
  return plugin;
}

const Dims kShapes[] = {{},      {1},    {0},    {7},    {16},      {33},   {1000},
                        {70001}, {3, 5}, {0, 3}, {3, 0}, {2, 3, 4}, {1, 1}, {129, 65}};

struct Bounds {
  double ulps = 0, floor = 0;
};

void Check(const keel_node& node, const std::vector<std::string>& operands,
           const std::vector<std::string>& want, Bounds b) {
  for (bare::Options o : {bare::Options{1, true}, bare::Options{2, false}}) {
    const std::vector<std::string> got = bare::Run(Cpu(), node, operands, o);
    ASSERT_EQ(got.size(), want.size());
    for (size_t r = 0; r < got.size(); r++) bare::ExpectClose(got[r], want[r], node.out[r], b.ulps, b.floor);
  }
}
void Compare(const keel_node& node, const std::vector<std::string>& operands, Bounds b = {}) {
  SCOPED_TRACE(testing::Message() << node.op << " dtype " << node.in[0].dtype << " dims "
                                  << testing::PrintToString(node.in[0].dims) << " to "
                                  << testing::PrintToString(node.out[0].dims));
  Check(node, operands, bare::Run(Reference(), node, operands), b);
}

Dims Broadcast(Dims a, const Dims& b) {
  if (a.size() < b.size()) return Broadcast(b, a);
  for (size_t i = 0; i < b.size(); i++)
    if (int64_t& d = a[a.size() - 1 - i]; d == 1) d = b[b.size() - 1 - i];
  return a;
}

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

template <class T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
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

// Windows of 3x3 over enough channels and places, with weights that are known: by tiles of 2x2 results.
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

// A composite has no impl in the reference plugin: f computes an element in double.
template <class F>
void CompareElements(const keel_node& node, const std::vector<std::string>& operands, F f, Bounds b) {
  SCOPED_TRACE(testing::Message() << node.op << " dtype " << node.in[0].dtype << " dims "
                                  << testing::PrintToString(node.in[0].dims));
  const BareTensor wide = {KEEL_F64, node.out[0].dims};
  for (bare::Options o : {bare::Options{1, true}, bare::Options{2, false}}) {
    const std::string got = bare::Run(Cpu(), node, operands, o)[0];
    for (int64_t i = 0; i < wide.Count(); i++) {
      const double a = bare::Get(got, node.out[0].dtype, i), want = f(i);
      if (std::isnan(want) ? std::isnan(a) : a == want) continue;
      ASSERT_LE(std::fabs(a - want),
                b.ulps * bare::Ulp(node.out[0].dtype) * std::max(std::fabs(want), b.floor))
          << "element " << i << ": " << a << ", wanted " << want;
    }
  }
}

struct Formula {
  const char* op;
  int tanh;
  double (*f)(double);
};
const Formula kFormulas[] = {
    {"sigmoid", 0, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"silu", 0, [](double x) { return x / (1 + std::exp(-x)); }},
    {"softplus", 0, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }},
    {"square", 0, [](double x) { return x * x; }},
    {"gelu", 0, [](double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }},
    {"gelu", 1,
     [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }}};

TEST(CpuImpls, CompositesOfOneFloat) {
  Rng rng(13);
  for (const Formula& formula : kFormulas)
    for (keel_dt dt : bare::kFloats)
      for (const Dims& dims : kShapes)
        for (double span : {0.3, 6.0}) {
          const BareTensor x = {dt, dims};
          const std::string bytes = bare::Draw(rng, x, span);
          NodeBuilder n(formula.op, {x}, {x});
          // The far left of gelu is a small difference of large numbers: hence the floor.
          CompareElements(n.Flag("tanh", formula.tanh).node, {bytes},
                          [&](int64_t i) { return formula.f(bare::Get(bytes, dt, i)); }, {8, 0.5});
        }
}

TEST(CpuImpls, SoftmaxAndNorms) {
  Rng rng(14);
  for (keel_dt dt : bare::kFloats)
    for (const Dims& dims : {Dims{1, 1}, Dims{3, 7}, Dims{2, 49}, Dims{5, 128}, Dims{4, 1000}, Dims{0, 4}}) {
      const BareTensor x = {dt, dims}, line = {dt, {dims[1]}};
      const int64_t n = dims[1];
      const std::string bytes = bare::Draw(rng, x, 4), g = bare::Draw(rng, line, 2),
                        b = bare::Draw(rng, line, 2);
      const auto at = [&](int64_t i) { return bare::Get(bytes, dt, i); };
      const auto over = [&](int64_t i, auto f) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) sum += f(at(i / n * n + k));
        return sum;
      };
      NodeBuilder soft("softmax", {x}, {x}), norm("layer_norm", {x, line, line}, {x}),
          rms("rms_norm", {x, line}, {x});
      CompareElements(
          soft.Int("axis", 1).node, {bytes},
          [&](int64_t i) { return std::exp(at(i)) / over(i, [](double v) { return std::exp(v); }); },
          {16, 1e-3});
      CompareElements(
          rms.Real("eps", 1e-5).node, {bytes, g},
          [&](int64_t i) {
            return at(i) /
                   std::sqrt(over(i, [](double v) { return v * v; }) / static_cast<double>(n) + 1e-5) *
                   bare::Get(g, dt, i % n);
          },
          {16, 1});
      CompareElements(
          norm.Real("eps", 1e-5).node, {bytes, g, b},
          [&](int64_t i) {
            const double mean = over(i, [](double v) { return v; }) / static_cast<double>(n);
            const double var =
                over(i, [=](double v) { return (v - mean) * (v - mean); }) / static_cast<double>(n);
            return (at(i) - mean) / std::sqrt(var + 1e-5) * bare::Get(g, dt, i % n) + bare::Get(b, dt, i % n);
          },
          {64, 4});
    }
}

// What is far below the greatest is 0 or a denormal; a NaN, or nothing but -infinity, takes its whole line.
TEST(CpuImpls, SoftmaxOfFarAndMissingNumbers) {
  constexpr int64_t kRows = 5, kColumns = 70;
  constexpr float kInf = std::numeric_limits<float>::infinity(),
                  kNan = std::numeric_limits<float>::quiet_NaN();
  for (const char* op : {"softmax", "log_softmax"})
    for (int64_t at = 0; at < kColumns; at++)
      for (int64_t axis : {0, 1}) {
        std::vector<float> x(kRows * kColumns);
        const auto cell = [=](int64_t row, int64_t column) {
          return static_cast<size_t>(axis == 1 ? row * kColumns + column : column * kRows + row);
        };
        for (int64_t c = 0; c < kColumns; c++) {
          x[cell(0, c)] = c == at ? kNan : 1;
          x[cell(1, c)] = -kInf;
          x[cell(2, c)] = c == at ? 3 : -kInf;
          x[cell(3, c)] = c == at ? 50 : -45 - static_cast<float>(c);
          x[cell(4, c)] = c == at ? kInf : 0;
        }
        const BareTensor t = {KEEL_F32, axis == 1 ? Dims{kRows, kColumns} : Dims{kColumns, kRows}};
        NodeBuilder n(op, {t}, {t});
        const bool log = op[0] == 'l';
        CompareElements(n.Int("axis", axis).node, {BytesOf(x)},
                        [&](int64_t i) {
                          const int64_t row = axis == 1 ? i / kColumns : i % kRows;
                          const float v = x[static_cast<size_t>(i)];
                          if (row < 2 || row == 4) return static_cast<double>(kNan);
                          const double y = v - static_cast<double>(row == 2 ? 3 : 50);
                          return log ? y : std::exp(y);
                        },
                        {8, std::numeric_limits<float>::min()});
      }
}

struct AttentionCase {
  int64_t l, s, d, e;
  Dims mask;  // {-1}: none
};

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

TEST(CpuImpls, AttentionByBlocks) {
  Rng rng(15);
  const AttentionCase kCases[] = {{1, 1, 1, 1, {-1}},
                                  {48, 128, 16, 40, {-1}},
                                  {128, 128, 8, 32, {128, 128}},
                                  {49, 33, 8, 5, {33}},
                                  {100, 7, 3, 40, {2, 1, 1, 7}},
                                  {5, 200, 16, 33, {1, 3, 5, 1}},
                                  {0, 3, 4, 4, {-1}},
                                  {3, 0, 4, 4, {-1}},
                                  {3, 70, 4, 4, {}}};
  for (keel_dt dt : {KEEL_F32, KEEL_F64})
    for (const AttentionCase& c : kCases)
      for (int causal : {0, 1}) {
        SCOPED_TRACE(testing::Message() << "l " << c.l << " s " << c.s << " causal " << causal);
        const BareTensor q = {dt, {2, 3, c.l, c.d}}, k = {dt, {2, 3, c.s, c.d}}, v = {dt, {2, 3, c.s, c.e}},
                         m = {dt, c.mask}, y = {dt, {2, 3, c.l, c.e}};
        const bool masked = c.mask != Dims{-1};
        std::vector<std::string> in = {bare::Draw(rng, q, 2), bare::Draw(rng, k, 2), bare::Draw(rng, v, 2)};
        NodeBuilder n("attention", {q, k, v}, {y});
        if (masked) n.node.in.push_back(m), in.push_back(bare::Draw(rng, m, 2));
        const auto mask = [&](int64_t head, int64_t row, int64_t column) {
          const int64_t place[] = {head / 3, head % 3, row, column};
          int64_t offset = 0, step = 1;
          for (size_t back = 0; back < c.mask.size(); back++) {
            const int64_t dim = c.mask[c.mask.size() - 1 - back];
            offset += dim == 1 ? 0 : place[3 - back] * step;
            step *= dim;
          }
          return masked ? bare::Get(in[3], dt, offset) : 0;
        };
        CompareElements(n.Real("scale", 0).Flag("causal", causal).Flag("zero_nan", causal).node, in,
                        [&](int64_t i) {
                          const int64_t column = i % c.e, row = i / c.e % c.l, head = i / c.e / c.l;
                          double total = 0, sum = 0;
                          for (int64_t j = 0; j < (causal ? std::min(c.s, row + 1) : c.s); j++) {
                            double score = 0;
                            for (int64_t x = 0; x < c.d; x++)
                              score += bare::Get(in[0], dt, (head * c.l + row) * c.d + x) *
                                       bare::Get(in[1], dt, (head * c.s + j) * c.d + x);
                            const double weight =
                                std::exp(score / std::sqrt(static_cast<double>(c.d)) + mask(head, row, j));
                            sum += weight;
                            total += weight * bare::Get(in[2], dt, (head * c.s + j) * c.e + column);
                          }
                          return c.s == 0 ? 0 : total / sum;
                        },
                        {64, 2});
      }
}

}  // namespace
