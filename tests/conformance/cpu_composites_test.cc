// Impls of the CPU plugin for composites against formulas in double; see cpu_impls.h.
#include "cpu_impls.h"

namespace {

using namespace cpu_impls;

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
          << "element " << i << ": " << a << ", expected " << want;
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

// Elements far below the maximum become 0 or a denormal; a NaN, or only -infinity, makes its whole line NaN.
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
