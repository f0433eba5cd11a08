// The `map` launch of the CPU plugin (impl of `call`): random bodies against the same ops run separately, bit
// by bit, over flat, scalar, row and column operands, several results and numbers of threads.
#include "map_cases.h"

namespace {

using namespace map_cases;

const Dims kShapes[] = {{},          {1},         {0},      {7},         {1000},
                        {1024},      {1025},      {5000},   {1, 1},      {3, 300},
                        {300, 3},    {2, 1500},   {70, 70}, {0, 5},      {2, 3, 4},
                        {5, 1, 260}, {1, 9},      {9, 1},   {16, 3, 49}, {2, 2, 2, 2, 3},
                        {40, 1000},  {3, 1, 1025}};

TEST(CpuMap, HasTheBitsOfTheOpsAlone) {
  for (uint32_t seed = 0; seed < 40; seed++)
    for (const Dims& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " shape " << testing::PrintToString(shape));
      Rng rng(seed * 1000 + static_cast<uint32_t>(&shape - kShapes));
      Compare(Builder(rng(), shape).Make(1 + Draw(rng, 5), 1 + Draw(rng, 12), 1 + Draw(rng, 3)));
      if (testing::Test::HasFatalFailure()) return;
    }
}

// Steps of operands much larger than a cache fetch those of the next tile, also behind the last one.
TEST(CpuMap, HasTheBitsOfTheOpsAloneWhereOperandsAreLarge) {
  for (uint32_t seed = 0; seed < 4; seed++) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Compare(Builder(seed, seed % 2 ? Dims{1'000'003} : Dims{700, 1501}).Make(5, 12, 2));
  }
}

BareTensor F32(Dims dims) { return {KEEL_F32, std::move(dims)}; }

// call(a, b) { c = a OP b; d = c * c } with results d and c
Case Pair(const std::string& op, const BareTensor& a, const BareTensor& b, bool both) {
  Case c;
  const BareTensor y = {a.dtype, Broadcast(a.dims, b.dims)};
  c.call.op = "call";
  c.call.in = {a, b};
  c.call.nodes.resize(2);
  c.call.nodes[0].op = op;
  c.call.nodes[0].in = {a, b};
  c.call.nodes[0].out = {y};
  c.call.nodes[1].op = "mul";
  c.call.nodes[1].in = {y, y};
  c.call.nodes[1].out = {y};
  c.call.node_in = {{0, 1}, {2, 2}};
  c.call.node_out = {2, 3};
  c.call.results = both ? std::vector<uint32_t>{3, 2} : std::vector<uint32_t>{3};
  c.call.out = both ? std::vector<BareTensor>{y, y} : std::vector<BareTensor>{y};
  c.call.n_values = 4;
  Rng rng(1);
  c.operands = {Values(rng, a), Values(rng, b)};
  return c;
}

TEST(CpuMap, ResultsOfDifferentShapesAreEachWritten) {
  // The second result reads only the first operand.
  Case c = Pair("add", F32({3, 1}), F32({1, 400}), true);
  c.call.nodes[0].in = {F32({3, 1}), F32({3, 1})};
  c.call.nodes[0].out = {F32({3, 1})};
  c.call.nodes[1].in = {F32({3, 1}), F32({1, 400})};
  c.call.node_in = {{0, 0}, {2, 1}};
  c.call.out = {F32({3, 400}), F32({3, 1})};
  Compare(c);
}

TEST(CpuMap, ResultZeroMayLieOnAnOperand) {
  // d = a + b, then e = d * a: d must not overwrite a.
  Case c = Pair("add", F32({3000}), F32({3000}), false);
  c.call.node_in[1] = {2, 0};
  const std::vector<std::string> want = OneByOne(c);
  bare::Buffer a(12000, true), b(12000, true);
  std::memcpy(a.data(), c.operands[0].data(), 12000);
  std::memcpy(b.data(), c.operands[1].data(), 12000);
  bare::Bound bound(Cpu(), c.call, {a.data(), b.data()}, {a.data()}, 2);
  ASSERT_TRUE(bound.Found());
  ASSERT_EQ(bound.Run(), KEEL_OK);
  EXPECT_EQ(std::string(a.data(), 12000), want[0]);
}

TEST(CpuMap, DivisionByZeroNamesTheFirstElementOfTheFirstOp) {
  Case c = Pair("div", {KEEL_I32, {40000}}, {KEEL_I32, {40000}}, false);
  for (int at : {39000, 31000}) std::memset(c.operands[1].data() + at * 4, 0, 4);
  keel_rc rc = KEEL_OK;
  bare::Run(Cpu(), c.call, c.operands, {2, true}, &rc);
  EXPECT_EQ(rc, KEEL_RANGE);
  EXPECT_EQ(bare::Failure(), "integer division by zero at element 31000");
}

TEST(CpuMap, StopsWhenTheRunIsCancelled) {
  Case c = Pair("add", F32({100000}), F32({100000}), false);
  bare::Buffer y(400000, true);
  bare::Bound bound(Cpu(), c.call, {c.operands[0].data(), c.operands[1].data()}, {y.data()}, 2);
  bound.cancelled = 1;
  EXPECT_EQ(bound.Run(), KEEL_CANCELLED);
}

bool IsMap(const Case& c) {
  const keel_impl* impl = Cpu().Find(c.call);
  return impl && std::string(impl->name).rfind("map", 0) == 0;
}

TEST(CpuMap, RefusesABodyWithAnotherOp) {
  Case c = Pair("matmul", F32({3, 3}), F32({3, 3}), false);
  EXPECT_FALSE(IsMap(c));
}

TEST(CpuMap, RefusesMoreOperandsThanItHolds) {
  Case c = Pair("add", F32({3}), F32({3}), false);
  EXPECT_TRUE(IsMap(c));
  c.call.in.resize(33, F32({3}));
  EXPECT_FALSE(IsMap(c));
}

}  // namespace
