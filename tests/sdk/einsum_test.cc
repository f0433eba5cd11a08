// einsum_test.cc: einsum() (einsum.hpp) against literals and sums in loops: eager, traced, gradients, errors.
#include "devices.h"

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

class Einsum : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(Einsum);

Tensor A() { return {{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}; }
Tensor B() { return {{1.f, -1.f}, {0.f, 2.f}, {3.f, 1.f}}; }

TEST_P(Einsum, ProductsSumsDiagonalsAndTransposes) {
  const Tensor square = {{1.f, 2.f}, {3.f, 4.f}}, v = {10.f, 100.f};
  EXPECT_TRUE(same(keel::einsum("ij,jk->ik", {A(), B()}), {{10.f, 6.f}, {22.f, 12.f}}));
  EXPECT_TRUE(same(keel::einsum(" kj , ij ", {A(), keel::transpose(B())}), {{10.f, 22.f}, {6.f, 12.f}}));
  EXPECT_TRUE(same(keel::einsum("ij->ji", {A()}), {{1.f, 4.f}, {2.f, 5.f}, {3.f, 6.f}}));
  EXPECT_TRUE(same(keel::einsum("ij->", {A()}), Tensor(21.f)));
  EXPECT_TRUE(same(keel::einsum("ii->i", {square}), {1.f, 4.f}));
  EXPECT_TRUE(same(keel::einsum("ii", {square}), Tensor(5.f)));
  EXPECT_TRUE(same(keel::einsum("i,j->ij", {v, v}), {{100.f, 1000.f}, {1000.f, 10000.f}}));
  EXPECT_TRUE(same(keel::einsum("...j,j", {square, v}), {210.f, 430.f}));
  EXPECT_TRUE(same(keel::einsum("...,...", {v, {{1.f}, {2.f}}}), {{10.f, 100.f}, {20.f, 200.f}}));
  EXPECT_TRUE(same(keel::einsum("ij,j,i->", {square, v, {1.f, 2.f}}), Tensor(1070.f)));
  EXPECT_TRUE(same(keel::einsum("ij->i", {keel::zeros({2, 0})}), {0.f, 0.f}));
  EXPECT_TRUE(same(keel::einsum("ii->i", {{{1.f, NAN}, {INFINITY, 2.f}}}), {1.f, 2.f}));
}

TEST_P(Einsum, LabelsInPlaceOfAnEquation) {
  EXPECT_TRUE(same(keel::einsum(A(), B(), {0, 1}, {1, 2}, {2, 0}), {{10.f, 22.f}, {6.f, 12.f}}));
  EXPECT_TRUE(same(keel::einsum(A(), A(), {0, 1}, {0, 1}, {}), Tensor(91.f)));
}

TEST_P(Einsum, TheReferenceGivesTheSame) {
  keel::Generator g(3);
  const auto whole = [&](const keel::Ints& dims) {
    return g.uniform(dims, {.low = -4, .high = 5, .dtype = KEEL_I32});
  };
  const std::vector<std::pair<std::string, std::vector<keel::Ints>>> cases = {
      {"bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}}},
      {"ijk,ilm,njm,nlk->", {{2, 3, 4}, {2, 5, 3}, {4, 3, 3}, {4, 5, 4}}},
      {"a...b,b->...a", {{2, 3, 4, 5}, {5}}},
      {"ijij->ji", {{2, 3, 2, 3}}},
      {"ij,jk->ik", {{2, 1}, {3, 4}}},
      {"i,i,i,i,i,i,i,i,i,i,i,ij->j", {{1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {3}, {3, 2}}}};
  for (const auto& [equation, shapes] : cases)
    for (const keel_dt dtype : {KEEL_I32, KEEL_F32, KEEL_F64}) {
      std::vector<Tensor> operands;
      for (const keel::Ints& dims : shapes) operands.push_back(keel::cast(whole(dims), dtype));
      const Tensor here = keel::einsum(equation, operands);
      for (Tensor& x : operands) x = x.to("");
      keel::Scope on = keel::device("reference");
      EXPECT_TRUE(same(here, keel::einsum(equation, operands))) << equation << " " << here.type();
    }
}

TEST_P(Einsum, TracedWithSizesThatTheRunKnows) {
  auto f = keel::function("f",
                          [](const Tensor& a, const Tensor& b) {
                            return keel::einsum("nij,jk->nik", {a, b});
                          },
                          {.signature = "a: f32[n, 2, m], b: f32[m, k]"});
  for (const int64_t n : {0, 1, 3}) {
    const Tensor a = keel::zeros({n, 2, 3}) + 1, b = keel::zeros({3, n + 1}) + 1;
    EXPECT_TRUE(same(f(a, b), keel::zeros({n, 2, n + 1}) + 3)) << n;
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(Einsum, Gradients) {
  const auto gradients = [](const Tensor& a, const Tensor& b) {
    keel::Tape tape;
    tape.watch(a), tape.watch(b);
    const Tensor y = keel::einsum("ij,jk->", {a, b});
    return tape.gradient(y, std::vector{a, b});
  };
  const Tensor da = {{0.f, 2.f, 4.f}, {0.f, 2.f, 4.f}}, db = {{5.f, 5.f}, {7.f, 7.f}, {9.f, 9.f}};
  for (const auto& got : {gradients(A(), B()), keel::function("g", gradients)(A(), B())}) {
    EXPECT_TRUE(same(got[0], da)) << got[0];
    EXPECT_TRUE(same(got[1], db)) << got[1];
  }
}

TEST(EinsumOrder, TakesTheFewestMultiplications) {
  const auto products = [](const keel::Ints& a, const keel::Ints& b, const keel::Ints& c) {
    auto f = keel::function("f", [](const Tensor& a, const Tensor& b, const Tensor& c) {
      return keel::einsum("ij,jk,kl->il", {a, b, c});
    });
    return f.concrete(keel::zeros(a), keel::zeros(b), keel::zeros(c)).text();
  };
  EXPECT_TRUE(Has(products({50, 40}, {40, 30}, {30, 2}), "f32[40, 2]"));
  EXPECT_TRUE(Has(products({2, 40}, {40, 30}, {30, 50}), "f32[2, 30]"));
}

TEST(EinsumErrors, NameTheEquationAndTheOperand) {
  const auto failure = [](const std::string& equation, const std::vector<Tensor>& operands) {
    return Failure([&] { keel::einsum(equation, operands); });
  };
  EXPECT_TRUE(Has(failure("ij,jk->ik", {A()}), "einsum: equation 'ij,jk->ik' has 2 terms for 1 operands"));
  EXPECT_TRUE(Has(failure("", {}), "equation '' has 1 terms for 0 operands"));
  EXPECT_TRUE(
      Has(failure("i1", {A()}), "'i1' in equation 'i1' is no term; expected letters and at most one '...'"));
  EXPECT_TRUE(Has(failure("......", {A()}), "is no term"));
  EXPECT_TRUE(Has(failure("ij->i->j", {A()}), "'i->j' in equation 'ij->i->j' is no term"));
  EXPECT_TRUE(
      Has(failure("ijk", {A()}), "term 'ijk' of equation 'ijk' names 3 dims of operand 0, which has 2"));
  EXPECT_TRUE(Has(failure("ij->ii", {A()}), "label 'i' of the result"));
  EXPECT_TRUE(Has(failure("ij->k", {A()}), "label 'k' of the result"));
  EXPECT_TRUE(Has(failure("ij,jk->ik", {A(), A()}),
                  "label 'j' of equation 'ij,jk->ik' has sizes 3 and 2, in operand 0 and operand 1"));
  EXPECT_TRUE(Has(failure("ii", {A()}), "label 'i' of equation 'ii' has sizes 2 and 3, in operand 0 ("));
  EXPECT_TRUE(Has(failure("...,...", {A(), B()}), "a dim of '...'"));
  EXPECT_TRUE(Has(failure("ij,jk", {A(), keel::cast(B(), KEEL_F64)}),
                  "operand 1 of equation 'ij,jk' is f64[3, 2] and operand 0 is f32[2, 3]"));
  EXPECT_TRUE(Has(failure("ij", {Tensor()}), "an empty Tensor"));
}

}  // namespace
