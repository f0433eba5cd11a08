// A group of elementwise ops followed by a reduction as one launch of the CPU plugin: random bodies, dims and
// axes against the same ops run separately, bit by bit, with one thread and two. Dims are unknown in prepare.
#include <algorithm>

#include "map_cases.h"

namespace {

using namespace map_cases;

BareTensor Kept(const BareTensor& x, const Dims& axes, bool keep) {
  BareTensor y = {x.dtype, {}};
  for (int64_t d = 0; d < static_cast<int64_t>(x.dims.size()); d++) {
    const bool reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (!reduced || keep) y.dims.push_back(reduced ? 1 : x.dims[static_cast<size_t>(d)]);
  }
  return y;
}

struct Reduced {
  Case c;
  Dims axes;
  // Dims of the last node's result.
  Reduced(Case made, const char* op, Dims over, bool keep) : c(std::move(made)), axes(std::move(over)) {
    const BareTensor x = c.call.nodes.back().out[0];
    keel_node n;
    n.op = op;
    n.in = {x};
    n.out = {Kept(x, axes, keep)};
    n.attrs["axes"] = {KEEL_ATTR_I64S, static_cast<uint32_t>(axes.size()), 0, 0, axes.data()};
    c.call.out = n.out;
    c.call.node_in.push_back({c.call.node_out.back()});
    c.call.nodes.push_back(std::move(n));
    c.call.node_out.push_back(c.call.n_values);
    c.call.results = {c.call.n_values++};
  }
  Reduced(const Reduced&) = delete;  // a node points to its axes
  Reduced& operator=(const Reduced&) = delete;
  bool Taken() const {
    const keel_impl* impl = Cpu().Find(c.call);
    return impl && std::string(impl->name) == "map and reduction";
  }
};

struct Layout {
  Dims dims, axes;
};
const Layout kTaken[] = {
    {{1}, {0}},
    {{7}, {0}},
    {{1024}, {0}},
    {{1025}, {0}},
    {{70000}, {0}},
    {{40, 1000}, {0, 1}},
    {{40, 1000}, {1}},
    {{3, 70000}, {1}},
    {{300, 7}, {1}},
    {{0, 5}, {0, 1}},
    {{0, 5}, {0}},
    {{5, 0}, {0}},
    {{5, 0}, {1}},
    {{16, 3, 49}, {1, 2}},
    {{5, 1, 260}, {2}},
    {{40, 1000}, {0}},
    {{1000, 40}, {0}},
    {{9000, 5}, {0}},
    {{35, 1}, {0}},
    {{33, 513}, {0}},
    {{2, 17, 2, 30}, {0, 1}},
    {{3, 40, 300}, {1}},
    {{6, 33, 5}, {1}},
};

TEST(CpuReduced, HasTheBitsOfTheOpsAlone) {
  constexpr const char* kOps[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"};
  int taken = 0;
  for (uint32_t seed = 0; seed < 30; seed++)
    for (const Layout& layout : kTaken) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " dims " << testing::PrintToString(layout.dims)
                                      << " axes " << testing::PrintToString(layout.axes));
      Rng rng(seed * 1000 + static_cast<uint32_t>(&layout - kTaken));
      Case c = Builder(rng(), layout.dims).Make(1 + Draw(rng, 5), 1 + Draw(rng, 8), 1);
      const BareTensor& last = c.call.nodes.back().out[0];
      if (last.dims != layout.dims) continue;
      const char* op = kOps[Draw(rng, 5)];
      const Reduced r(c, last.dtype == KEEL_BOOL ? "reduce_max" : op, layout.axes, Draw(rng, 2));
      taken += r.Taken();
      if (r.Taken()) Compare(r.c);
      if (testing::Test::HasFatalFailure()) return;
    }
  EXPECT_GT(taken, 400);
}

// call(a, b) { y = reduce(a OP b) }
Case One(const char* op, const BareTensor& a, const BareTensor& b) {
  Case c;
  c.call.op = "call";
  c.call.in = {a, b};
  c.call.nodes.resize(1);
  c.call.nodes[0].op = op;
  c.call.nodes[0].in = {a, b};
  c.call.nodes[0].out = {{a.dtype, Broadcast(a.dims, b.dims)}};
  c.call.node_in = {{0, 1}};
  c.call.node_out = {2};
  c.call.n_values = 3;
  Rng rng(1);
  c.operands = {Values(rng, a), Values(rng, b)};
  return c;
}
BareTensor F32(Dims dims) { return {KEEL_F32, std::move(dims)}; }

TEST(CpuReduced, TakesNeighbouringDims) {
  const auto taken = [](Dims dims, Dims axes, keel_dt dt = KEEL_F32, const char* op = "reduce_sum") {
    return Reduced(One("mul", {dt, dims}, {dt, dims}), op, std::move(axes), false).Taken();
  };
  EXPECT_TRUE(taken({4, 5, 6}, {0}));
  EXPECT_TRUE(taken({4, 5, 6}, {1}));
  EXPECT_TRUE(taken({4, 5, 6}, {1, 2}));
  EXPECT_TRUE(taken({4, 5, 6}, {0, 1, 2}));
  EXPECT_TRUE(taken({4, 1, 6}, {0, 2}));
  EXPECT_FALSE(taken({4, 5, 6}, {0, 2}));
  EXPECT_FALSE(taken({4, 5, 6}, {}));
  EXPECT_TRUE(taken({4, 5, 6}, {2}, KEEL_F64));
  EXPECT_FALSE(taken({4, 5, 6}, {0}, KEEL_F64));  // its order cannot be divided
  EXPECT_TRUE(taken({4, 5, 6}, {0}, KEEL_F64, "reduce_max"));
}

TEST(CpuReduced, RefusesWhatIsNoGroupBeforeOneReduction) {
  const BareTensor x = F32({4, 6});
  EXPECT_FALSE(Reduced(One("matmul", F32({6, 6}), F32({6, 6})), "reduce_sum", {0}, false).Taken());
  Reduced operand(One("mul", x, x), "reduce_sum", {0}, false);
  operand.c.call.node_in[1] = {0};  // reduces an operand of the call
  EXPECT_FALSE(operand.Taken());
  Reduced both(One("mul", x, x), "reduce_sum", {0}, false);
  both.c.call.results.push_back(2);  // and the product is a result
  both.c.call.out.push_back(x);
  EXPECT_FALSE(both.Taken());
}

TEST(CpuReduced, DivisionByZeroNamesTheFirstElement) {
  const BareTensor x = {KEEL_I32, {400, 300}};
  for (const Dims& axes : {Dims{0}, Dims{1}, Dims{0, 1}}) {
    Reduced r(One("div", x, x), "reduce_max", axes, false);
    for (int at : {90000, 31000}) std::memset(r.c.operands[1].data() + at * 4, 0, 4);
    keel_rc rc = KEEL_OK;
    bare::Run(Cpu(), r.c.call, r.c.operands, {2, true}, &rc);
    EXPECT_EQ(rc, KEEL_RANGE);
    EXPECT_EQ(bare::Failure(), "integer division by zero at element 31000");
  }
}

TEST(CpuReduced, StopsWhenTheRunIsCancelled) {
  for (const Dims& axes : {Dims{0}, Dims{1}, Dims{0, 1}}) {
    const Reduced r(One("add", F32({400, 300}), F32({300})), "reduce_sum", axes, false);
    bare::Buffer y(1200, true);
    bare::Bound bound(Cpu(), r.c.call, {r.c.operands[0].data(), r.c.operands[1].data()}, {y.data()}, 2);
    bound.cancelled = 1;
    EXPECT_EQ(bound.Run(), KEEL_CANCELLED);
  }
}

}  // namespace
