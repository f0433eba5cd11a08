// control_test.cc: cond, switch_, while_loop, scan, print and assert_ of the SDK: eager and traced runs give
// the same results. Oracles are literals worked out by hand.
#include "devices.h"

namespace {

using keel::Tensor;
using keel::Variable;
using sdk_test::Failure;
using sdk_test::Has;

class ControlFlow : public sdk_test::OnEachDevice {
 protected:
  ControlFlow() {
    keel::default_context().print_to(
        [](void* arg, int32_t, const char* text, uint64_t size) {
          static_cast<std::string*>(arg)->append(text, size);
        },
        &printed_);
  }
  ~ControlFlow() override { keel::default_context().print_to(nullptr, nullptr); }
  std::string printed_;
};
KEEL_ON_EACH_DEVICE(ControlFlow);

std::string Text(const Tensor& t) { return t.type() + " " + to_string(t); }

// The program on x, eagerly and traced.
template <class Program>
void Both(const Program& program, const Tensor& x, const std::string& wanted) {
  EXPECT_EQ(Text(program(x)), wanted) << "eagerly";
  auto f = keel::function("program", program);
  EXPECT_EQ(Text(f(x)), wanted) << "traced";
}

TEST_P(ControlFlow, CondTakesOneBranch) {
  Tensor other = {10.f, 20.f};
  auto program = [&](const Tensor& x) {
    Tensor doubled = x * 2;
    return keel::cond(
        keel::reduce_sum(x) > 0, [&] { return doubled + other; }, [&] { return x - doubled; });
  };
  Both(program, {1.f, 2.f}, "f32[2] [12. 24.]");
  Both(program, {-1.f, -2.f}, "f32[2] [1. 2.]");
}

TEST_P(ControlFlow, LiteralsTakeTheDtypeOfTheOtherBranch) {
  auto relu = keel::function("relu", [](const Tensor& x) {
    return keel::cond(
        x > 0, [&] { return x; }, [] { return 0; });
  });
  EXPECT_EQ(Text(relu(Tensor(3))) + Text(relu(Tensor(-3))), "i32[] 3i32[] 0");
  EXPECT_EQ(Text(relu(Tensor(1.5))) + Text(relu(Tensor(-1.5))), "f32[] 1.5f32[] 0.0");
  auto sign = keel::function("sign", [](const Tensor& x) {
    return keel::cond(
        x > 0, [] { return 1; }, [] { return -0.5; });
  });
  EXPECT_EQ(Text(sign(Tensor(3))) + Text(sign(Tensor(-3))), "f32[] 1.0f32[] -0.5");
  EXPECT_EQ(relu.trace_count(), 2);
}

struct Pair {
  Tensor a;
  std::vector<Tensor> more;
};

TEST_P(ControlFlow, StructuresAndNestedBranches) {
  auto f = keel::function("f", [](const Tensor& x, const Tensor& y) {
    Pair p = keel::cond(
        x > y,
        [&] {
          Tensor z = keel::cond(
              x > 10, [&] { return x * y; }, [&] { return x + y; });
          return Pair{z, {x, y}};
        },
        [&] {
          return Pair{y - x, {y, x}};
        });
    return std::pair(p.a, p.more);
  });
  auto said = [&](int x, int y) {
    auto [a, more] = f(Tensor(x), Tensor(y));
    return to_string(a) + "," + to_string(more.at(0)) + "," + to_string(more.at(1));
  };
  EXPECT_EQ(said(20, 3), "60,20,3");
  EXPECT_EQ(said(5, 3), "8,5,3");
  EXPECT_EQ(said(3, 5), "2,5,3");
}

TEST_P(ControlFlow, Switch) {
  auto program = [](const Tensor& i) {
    return keel::switch_(
        i, [&] { return i * 10; }, [] { return Tensor(7); }, [&] { return i - 1; });
  };
  Both(program, 0, "i32[] 0");
  Both(program, 1, "i32[] 7");
  Both(program, 2, "i32[] 1");
  auto f = keel::function("f", program);
  for (int i : {-1, 3}) {
    std::string wanted = "index " + std::to_string(i) + " is not in [0, 3)";
    EXPECT_TRUE(Has(Failure([&] { program(Tensor(i)); }), wanted));
    EXPECT_TRUE(Has(Failure([&] { f(Tensor(i)); }), wanted)) << Failure([&] { f(Tensor(i)); });
  }
}

TEST_P(ControlFlow, WhileCarriesAndCaptures) {
  auto power = [](const Tensor& x) {
    auto [i, p] = keel::while_loop(
        std::tuple(Tensor(0), x * 0 + 1), [](const Tensor& k, const Tensor&) { return k < 5; },
        [&](const Tensor& k, const Tensor& q) { return std::tuple(k + 1, q * x); });
    return p + keel::cast(i, p.dtype());
  };
  Both(power, {2.f, 3.f}, "f32[2] [ 37. 248.]");
  auto never = [](const Tensor& x) {
    return keel::while_loop(
        x, [](const Tensor& y) { return y < 0; }, [](const Tensor& y) { return y + 1; });
  };
  Both(never, 5, "i32[] 5");
}

TEST_P(ControlFlow, LoopsNest) {
  Both(
      [](const Tensor& n) {  // 1 + 2 + ... + n, n times
        auto outer = keel::while_loop(
            std::pair(n, n * 0), [](const Tensor& k, const Tensor&) { return k > 0; },
            [&](const Tensor& k, const Tensor& sum) {
              auto [j, s] = keel::while_loop(
                  std::pair(n, sum), [](const Tensor& a, const Tensor&) { return a > 0; },
                  [](const Tensor& a, const Tensor& b) { return std::pair(a - 1, b + a); });
              return std::pair(k - 1, s);
            });
        return outer.second;
      },
      4, "i32[] 40");
}

TEST_P(ControlFlow, ScanCarriesAndStacks) {
  Tensor scale = {10.f, 1.f};
  auto program = [&](bool reverse) {
    return [&, reverse](const Tensor& x) {
      auto [sum, all] =
          keel::scan(keel::zeros({2}), x,
                     [&](const Tensor& s, const Tensor& row) { return std::pair(s + row, s * scale); },
                     {.reverse = reverse});
      return keel::concat({all, keel::reshape(sum, {1, 2})});
    };
  };
  Tensor x = {{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}};
  Both(program(false), x, "f32[4, 2] [[ 0.  0.]\n [10.  2.]\n [40.  6.]\n [ 9. 12.]]");
  Both(program(true), x, "f32[4, 2] [[80. 10.]\n [50.  6.]\n [ 0.  0.]\n [ 9. 12.]]");
  Both(
      [](const Tensor& y) {
        return keel::scan(y, std::tuple<>(),
                          [](const Tensor& s, auto) { return std::pair(s * 2, std::tuple<>()); },
                          {.length = 10})
            .first;
      },
      3, "i32[] 3072");
}

TEST_P(ControlFlow, EmptyAndSingleEntries) {
  auto program = [](const Tensor& x) {
    auto [sum, all] = keel::scan(Tensor{1.f, 2.f}, x, [](const Tensor& s, const Tensor& row) {
      return std::pair(s + row, std::vector<Tensor>{s, keel::reduce_sum(row)});
    });
    return keel::concat({sum, keel::reshape(all.at(0), {-1}), all.at(1)});
  };
  Both(program, keel::zeros({0, 2}), "f32[2] [1. 2.]");
  Both(program, {{10.f, 20.f}}, "f32[5] [11. 22.  1.  2. 30.]");
  {
    keel::Eagerly all;  // no function is traced, yet the type of the stacked values is known
    EXPECT_EQ(Text(program(keel::zeros({0, 2}))), "f32[2] [1. 2.]");
    EXPECT_TRUE(Has(Failure([] {
                      keel::scan(Tensor(0), keel::zeros({0}), [](const Tensor& s, const Tensor& x) {
                        if (x.symbolic()) throw keel::Error(KEEL_INVALID, "the body's own error");
                        return std::pair(s, x);
                      });
                    }),
                    "the body's own error"));
  }
  auto kept = [](const Tensor& x) {
    return keel::while_loop(
        x, [](const Tensor& y) { return keel::reduce_sum(y) > 0; }, [](const Tensor& y) { return y - 1; });
  };
  Both(kept, keel::zeros({0}), "f32[0] []");
  Both(kept, {2.5f}, "f32[1] [-0.5]");
}

// Class exact: passes of the default level that may round differently leave the graph unchanged.
TEST_P(ControlFlow, TheSameBitsBothWays) {
  auto program = [](const Tensor& x) {
    auto [k, y] = keel::while_loop(
        std::tuple(Tensor(0), x), [](const Tensor& i, const Tensor&) { return i < 7; },
        [&](const Tensor& i, const Tensor& v) {
          return std::tuple(i + 1, keel::cond(
                                       i % 2 == 0, [&] { return keel::sin(v * 1.7) + x; },
                                       [&] { return keel::exp(v * 0.3) - v / 3; }));
        });
    return keel::scan(keel::zeros({}), y,
                      [](const Tensor& s, const Tensor& v) { return std::pair(s * 0.9 + v, keel::tanh(s)); })
        .second;
  };
  Tensor x = keel::sin(keel::cast(keel::iota({101}), KEEL_F32) * 12.9898) * 43.7;
  auto f = keel::function("f", program, {.more = {{"level", "0"}}});
  EXPECT_EQ(program(x).values<float>(), f(x).values<float>());
}

TEST_P(ControlFlow, SymbolicSizes) {
  auto f = keel::function("f",
                          [](const Tensor& x) {
                            Tensor total =
                                keel::scan(keel::zeros({}), x, [](const Tensor& s, const Tensor& v) {
                                  return std::pair(s + v, s);
                                }).second;
                            return keel::cond(
                                keel::reduce_max(x) > 2, [&] { return total * 2; }, [&] { return x; });
                          },
                          {.signature = "x: f32[n]"});
  EXPECT_EQ(Text(f(Tensor{1.f, 2.f, 3.f})), "f32[3] [0. 2. 6.]");
  EXPECT_EQ(Text(f(Tensor{1.f, 2.f})), "f32[2] [1. 2.]");
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(ControlFlow, EffectsInBodiesHappenInOrder) {
  Variable n(Tensor(0), {.name = "n"});
  auto program = [&](const Tensor& x) {
    n.assign(0);
    keel::print("x {}", {x});
    Tensor last = keel::while_loop(
        x, [](const Tensor& k) { return k > 0; },
        [&](const Tensor& k) {
          n.assign_add(k);
          keel::print("{}: {}", {k, n});
          keel::cond(
              k > 2, [&] { keel::print("big"); }, [&] { n.assign_add(100); });
          return k - 1;
        });
    return n + last;
  };
  for (bool traced : {false, true}) {
    printed_.clear();
    auto f = keel::function("f", program);
    EXPECT_EQ(Text(traced ? f(Tensor(3)) : program(Tensor(3))), "i32[] 206");
    EXPECT_EQ(printed_, "x 3\n3: 3\nbig\n2: 5\n1: 106\n") << traced;
  }
}

TEST_P(ControlFlow, AssertHoldsBackWhatStandsBehindIt) {
  Variable w(Tensor(1.f));
  auto program = [&](const Tensor& x) {
    keel::print("before");
    keel::assert_(x > 0, "x must be positive", {x});
    w.assign(x);
    keel::print("after");
    return x;
  };
  auto f = keel::function("f", program);
  for (bool traced : {false, true}) {
    printed_.clear();
    w.assign(1);
    EXPECT_TRUE(
        Has(Failure([&] { traced ? f(Tensor(-3.f)) : program(Tensor(-3.f)); }), "x must be positive: -3"));
    EXPECT_EQ(printed_, "before\n");
    EXPECT_EQ(Text(w), "f32[] 1.0");
    traced ? f(Tensor(3.f)) : program(Tensor(3.f));
    EXPECT_EQ(Text(w), "f32[] 3.0");
  }
}

TEST_P(ControlFlow, WhatBodiesReadIsReadBefore) {
  Variable w({2.f}, {.name = "w"}), k(Tensor(1.f), {.name = "k"});
  auto f = keel::function("f", [&](const Tensor& x) {
    return keel::while_loop(
        x, [&](const Tensor& y) { return keel::reduce_sum(y) < 100; },
        [&](const Tensor& y) {
          k.assign_add(1);
          return keel::cond(
              keel::reduce_sum(y) > 10, [&] { return y * w + k; }, [&] { return y * w; });
        });
  });
  EXPECT_EQ(Text(f(Tensor{3.f})), "f32[1] [128.]");  // 6, 12, 24 + 4, 56 + 5, 122 + 6
  std::string text = f.concrete(Tensor{3.f}).text();
  EXPECT_GT(text.find("read(k)"), text.find("while(")) << "in a body:\n" << text;
  EXPECT_LT(text.find("read(w)"), text.find("while(")) << "before the loop:\n" << text;
}

TEST_P(ControlFlow, ConcretePredicatesChooseWhileTracing) {
  int ran = 0;
  auto f = keel::function("f", [&](const Tensor& x) {
    return keel::cond(
        Tensor(true), [&] { return ran++, x + 1; }, [&] { return ran += 100, x; });
  });
  EXPECT_EQ(Text(f(Tensor(1))), "i32[] 2");
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(Has(f.concrete(Tensor(1)).text(), "cond"));
}

TEST_P(ControlFlow, SavedBodiesComeBack) {
  auto f = keel::function("f", [](const Tensor& x) {
    Tensor two = x * 2;
    return keel::cond(
        x > 0, [&] { return two + x; }, [&] { return two - 1; });
  });
  keel::Module module = f.concrete(Tensor(1));
  keel::Module again = keel::Module::parse(keel::default_context(), module.text());
  EXPECT_EQ(again.text(), module.text());
  std::string path = testing::TempDir() + "control" + std::to_string(getpid()) + ".keel";
  module.save(path);
  keel::Module loaded = keel::Module::load(keel::default_context(), path);
  unlink(path.c_str());
  EXPECT_EQ(loaded.text(), module.text());
  keel::Plan plan = keel::Session(loaded, GetParam()).prepare();
  EXPECT_EQ(to_string(Tensor(plan.run(std::vector{Tensor(5).array()})[0])), "15");
  EXPECT_EQ(to_string(Tensor(plan.run(std::vector{Tensor(-5).array()})[0])), "-11");
}

TEST_P(ControlFlow, BadInput) {
  auto fails = [](auto code, const std::string& wanted) {
    auto f = keel::function("f", code);
    std::string failure = Failure([&] { f(Tensor{1.f, 2.f}); });
    EXPECT_TRUE(Has(failure, wanted)) << failure;
  };
  fails(
      [](const Tensor& x) {
        return keel::cond(
            keel::reduce_sum(x) > 0, [&] { return x; }, [&] { return keel::cast(x, KEEL_I32); });
      },
      "cond: result 0 of else (@f.v2.else) is i32[2] but that of then (@f.v2.then) is f32[2]");
  fails(
      [](const Tensor& x) {
        return keel::cond(
            keel::reduce_sum(x) > 0, [&] { return x; }, [&] { return x[keel::Slice{1}]; });
      },
      "(control_test.cc:");
  fails(
      [](const Tensor& x) {
        return keel::cond(
            x > 0, [&] { return x; }, [&] { return x; });
      },
      "bool[2]");
  fails(
      [](const Tensor& x) {
        return keel::while_loop(
            x, [](const Tensor& y) { return keel::reduce_sum(y) < 9; },
            [](const Tensor& y) { return keel::cast(y, KEEL_F64); });
      },
      "is f64[2] but the carried operand");
  fails(
      [](const Tensor& x) {
        return keel::while_loop(
            x, [](const Tensor& y) { return y < 9; }, [](const Tensor& y) { return y; });
      },
      "while: test (@f.v0.test) must return one bool[], but returns bool[2]");
  fails(
      [](const Tensor& x) {
        return keel::scan(x, keel::reduce_sum(x),
                          [](const Tensor& c, const Tensor& e) { return std::pair(c, e); })
            .first;
      },
      "it has no dim to scan over");
  Tensor leaked;
  fails(
      [&](const Tensor& x) {
        keel::cond(
            keel::reduce_sum(x) > 0, [&] { return leaked = x * 2; }, [&] { return x; });
        return leaked + 1;
      },
      "cannot be used in the trace of \"f\"");
  struct Mine {};
  auto g = keel::function("g", [](const Tensor& x) {
    try {
      keel::cond(
          x > 0, [&]() -> Tensor { throw Mine(); }, [&] { return x; });
    } catch (const Mine&) {
    }
    return x + 1;  // the branch was rolled back
  });
  EXPECT_EQ(Text(g(Tensor(1))), "i32[] 2");
}

}  // namespace
