// control_test.cc: control flow through the C API (keel_control.h): blocks, and bodies between begin and end,
// on each device. Oracles are literals. sdk/ tests the C++ forms.
#include <gtest/gtest.h>

#include <functional>

#include "sdk/cpp/keel/keel.hpp"
#include "tests/devices.h"
#include "tests/failure.h"

namespace {

using keel::Array;
using keel_test::Failure;
using keel_test::Has;
using Arrays = std::vector<Array>;
using Floats = std::vector<float>;

bool Writes(const keel_trace* trace) {
  int32_t writes = 7;
  keel_trace_info(trace, nullptr, &writes);
  return writes == 1;
}

std::exception_ptr thrown;  // by a block
struct Block {
  std::function<Arrays(keel_trace*, const Arrays&)> code;
  static keel_rc Run(void* arg, keel_trace* body, keel_array* const* in, uint32_t n, keel_error**) {
    Arrays own;
    for (uint32_t i = 0; i < n; i++) own.emplace_back(keel_array_retain(in[i]));
    try {
      for (const Array& a : static_cast<Block*>(arg)->code(body, own))
        keel::call(keel_trace_result, body, static_cast<const char*>(nullptr), a.get());
    } catch (const keel::Error&) {
      thrown = std::current_exception();
      return KEEL_INVALID;
    }
    return KEEL_OK;
  }
};
// keel::call for operations that may run blocks.
template <class... A>
void Call(const A&... args) {
  try {
    keel::call(args...);
  } catch (const keel::Error&) {
    if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
    throw;
  }
}

class Control : public testing::TestWithParam<std::string> {
 protected:
  Array F(const Floats& v) const {
    const int64_t shape[] = {static_cast<int64_t>(v.size())};
    return Array::of<float>(context_, shape, v);
  }
  Array Scalar(float v) const { return Array::of<float>(context_, {}, std::vector{v}); }
  Array I(int32_t v) const { return Array::of<int32_t>(context_, {}, std::vector{v}); }
  Array Do(const char* op, const Array& a, const Array& b) {
    return keel::Op(context_, GetParam(), op)({a, b})[0];
  }
  Array Sum(const Array& a) { return keel::Op(context_, GetParam(), "reduce_sum")({a})[0]; }

  static std::vector<keel_array*> Raw(const Arrays& arrays) {
    std::vector<keel_array*> raw;
    for (const Array& a : arrays) raw.push_back(a.get());
    return raw;
  }
  static Arrays Take(std::vector<keel_array*> raw, uint32_t n) {
    raw.resize(n);
    return keel::take_arrays(raw);
  }
  Arrays Cond(keel_trace* t, const Array& p, Block then, Block otherwise, uint32_t room = 4) {
    std::vector<keel_array*> out(room);
    uint32_t n = 0;
    Call(keel_trace_cond, t, p.get(), Block::Run, &then, Block::Run, &otherwise, out.data(), room, &n);
    return Take(out, n);
  }
  Arrays Switch(keel_trace* t, const Array& i, std::vector<Block> branches) {
    std::vector<keel_array*> out(4);
    std::vector<keel_block> code(branches.size(), Block::Run);
    std::vector<void*> args;
    for (Block& b : branches) args.push_back(&b);
    uint32_t n = 0;
    Call(keel_trace_switch, t, i.get(), code.data(), args.data(), static_cast<uint32_t>(code.size()),
         out.data(), 4u, &n);
    return Take(out, n);
  }
  Arrays While(keel_trace* t, const Arrays& init, Block test, Block body) {
    std::vector<keel_array*> out(init.size());
    auto n = static_cast<uint32_t>(init.size());
    Call(keel_trace_while, t, Raw(init).data(), n, Block::Run, &test, Block::Run, &body, out.data());
    return Take(out, n);
  }
  Arrays Scan(keel_trace* t, const Arrays& carry, const Arrays& xs, Block body, keel_dim length = -1,
              bool reverse = false) {
    std::vector<keel_array*> out(4);
    uint32_t n = 0;
    Call(keel_trace_scan, t, Raw(carry).data(), static_cast<uint32_t>(carry.size()), Raw(xs).data(),
         static_cast<uint32_t>(xs.size()), length, static_cast<int32_t>(reverse), Block::Run, &body,
         out.data(), 4u, &n);
    return Take(out, n);
  }

  // The program on x: eagerly, and as a graph with one symbolic dim.
  using Program = std::function<Array(keel_trace*, const Array&)>;
  void Both(const Program& program, const Floats& x, const Floats& wanted) {
    EXPECT_EQ(Values(program(nullptr, F(x))), wanted) << "eagerly";
    keel::Module module = Traced(program);
    EXPECT_EQ(Values(keel::Session(module, GetParam()).prepare().run(std::vector{F(x)})[0]), wanted)
        << module.text();
  }
  keel::Module Traced(const Program& program) {
    keel_trace* t = nullptr;
    keel::call(keel_trace_new, context_.get(), "f", GetParam().c_str(), &t);
    keel::Handle<keel_trace, keel_trace_free> handle(t);
    keel_dim n = 0;
    keel::call(keel_trace_dim, t, "n", 0, &n);
    keel_array* x = nullptr;
    keel::call(keel_trace_param, t, "x", KEEL_F32, &n, 1, &x);
    Array param(x), y = program(t, param);
    keel::call(keel_trace_result, t, "y", y.get());
    keel_module* out = nullptr;
    keel::call(keel_trace_end, t, &out);
    return keel::Module::take(out);
  }
  std::string Fails(const Program& program) {
    try {
      Traced(program);
    } catch (const keel::Error& e) {
      return std::string(e.what()) + "; " + e.hint();
    }
    return "";
  }
  static Floats Values(const Array& a) {
    auto all = a.values<float>();
    return {all.begin(), all.end()};
  }
  keel::Context context_ = keel_test::Open(GetParam());
};

TEST_P(Control, BranchesNestAndCapture) {
  Array ten = Scalar(10);
  Program program = [&](keel_trace* t, const Array& x) {
    Array doubled = Do("add", x, x);
    return Cond(t, Do("greater", Sum(x), Scalar(0)), {[&](keel_trace* then, const Arrays&) {
                  return Cond(then, Do("greater", Sum(doubled), Scalar(10)),
                              {[&](auto, auto&) { return Arrays{Do("add", doubled, ten)}; }},
                              {[&](auto, auto&) { return Arrays{Do("mul", doubled, x)}; }});
                }},
                {[&](auto, auto&) { return Arrays{x}; }})[0];
  };
  Both(program, {1, 2}, {2, 8});
  Both(program, {3, 4}, {16, 18});
  Both(program, {-3, -4}, {-3, -4});
}

TEST_P(Control, SwitchTakesTheBranchOfANumber) {
  auto at = [&](int i) {
    return [=, this](keel_trace* t, const Array& x) {
      Array index = keel::Op(context_, GetParam(), "cast", keel::Attrs().dtype("to", KEEL_I32))(
          {Do("add", Do("mul", Sum(x), Scalar(0)), Scalar(static_cast<float>(i)))})[0];
      return Switch(t, index,
                    {{[&](auto, auto&) { return Arrays{x}; }},
                     {[&](auto, auto&) { return Arrays{Do("add", x, x)}; }},
                     {[&](auto, auto&) { return Arrays{Do("mul", x, x)}; }}})[0];
    };
  };
  Both(at(0), {3, 4}, {3, 4});
  Both(at(1), {3, 4}, {6, 8});
  Both(at(2), {3, 4}, {9, 16});
  for (int i : {-1, 3}) {
    std::string wanted = "index " + std::to_string(i) + " is not in [0, 3)";
    EXPECT_TRUE(Has(Failure([&] { at(i)(nullptr, F({1})); }), wanted));
    keel::Plan plan = keel::Session(Traced(at(i)), GetParam()).prepare();
    EXPECT_TRUE(Has(Failure([&] { plan.run(std::vector{F({1})}); }), wanted));
  }
}

TEST_P(Control, LoopsNestAndCarryNothingElse) {
  Both(
      [&](keel_trace* t, const Array& x) {  // x, added to itself 3 times 4 times
        Block less{[&](auto, const Arrays& c) { return Arrays{Do("less", c[0], I(3))}; }};
        Arrays all =
            While(t, {I(0), x}, less, {[&](keel_trace* body, const Arrays& c) {
                    Block inner{[&](auto, const Arrays& d) { return Arrays{Do("less", d[0], I(4))}; }};
                    Arrays sum = While(body, {I(0), c[1]}, inner, {[&](auto, const Arrays& d) {
                                         return Arrays{Do("add", d[0], I(1)), Do("add", d[1], x)};
                                       }});
                    return Arrays{Do("add", c[0], I(1)), sum[1]};
                  }});
        return all[1];
      },
      {1, 2, 3}, {13, 26, 39});
}

TEST_P(Control, ScanCarriesAndStacks) {
  for (bool reverse : {false, true})
    Both(
        [&](keel_trace* t, const Array& x) {
          Arrays made = Scan(t, {Scalar(100)}, {x, x}, {[&](auto, const Arrays& in) {
                               return Arrays{Do("add", in[0], in[1]), Do("add", in[0], in[2])};
                             }},
                             -1, reverse);
          EXPECT_EQ(made.size(), 2u);
          return Do("sub", made[1], made[0]);
        },
        {1, 2, 3}, reverse ? Floats{0, -1, -3} : Floats{-5, -3, 0});
  Both(
      [&](keel_trace* t, const Array& x) {  // captured values come between carried values and entries
        Array total = Sum(x);
        return Scan(t, {Scalar(100)}, {x}, {[&](auto, const Arrays& in) {
                      return Arrays{in[0], Do("add", Do("sub", total, in[1]), in[0])};
                    }})[1];
      },
      {1, 2, 3}, {105, 104, 103});
  Both(
      [&](keel_trace* t, const Array& x) {
        return Scan(t, {x}, {}, {[&](auto, const Arrays& in) { return Arrays{Do("add", in[0], in[0])}; }},
                    10)[0];
      },
      {1, 3}, {1024, 3072});
}

// As when traced: the body does not run, so it neither prints nor assigns.
TEST_P(Control, ScanOfNoEntries) {
  keel::Variable v(context_, I(5));
  Array none = Array::of<float>(context_, std::vector<int64_t>{0, 2}, Floats{});
  auto program = [&](keel_trace* t, const Array& carry, const Array& xs, keel_dim length) {
    return Scan(t, {carry}, {xs}, {[&](keel_trace* body, const Arrays& in) {
                  EXPECT_TRUE(Writes(body));
                  EXPECT_EQ(keel::Tensor(in[1]).type(), "f32[2]");
                  keel::call(keel_variable_write, v.get(), body, "assign_add", I(1).get());
                  Array two = Do("add", in[1], F({1, 2}));
                  return Arrays{Do("add", in[0], Sum(two)), two, Do("less", Sum(two), in[0]),
                                Scan(body, {in[0]}, {two}, {[&](auto, const Arrays& d) {
                                       return Arrays{Do("mul", d[0], d[1]), I(1)};
                                     }})[1]};
                }},
                length);
  };
  for (keel_dim length : {-1, 0}) {
    Arrays made = program(nullptr, Scalar(7), none, length);
    ASSERT_EQ(made.size(), 4u);
    EXPECT_EQ(Values(made[0]), Floats{7});
    const char* wanted[] = {"f32[0, 2]", "bool[0]", "i32[0, 2]"};
    for (size_t i = 0; i < 3; i++) EXPECT_EQ(keel::Tensor(made[i + 1]).type(), wanted[i]);
    EXPECT_EQ(v.read().values<int32_t>()[0], 5);
  }
  Array leaked;
  Arrays kept = Scan(nullptr, {}, {none}, {[&](auto, const Arrays& in) {
                       leaked = in[0];
                       return Arrays{};
                     }});
  EXPECT_TRUE(kept.empty());
  EXPECT_TRUE(Has(Failure([&] { Do("add", leaked, leaked); }), "has ended"));
  EXPECT_TRUE(Has(Failure([&] {
                    Scan(nullptr, {Scalar(1)}, {none},
                         {[&](auto, const Arrays& in) { return Arrays{in[1]}; }});
                  }),
                  "result 0 of body"));
  EXPECT_TRUE(Has(Failure([&] { Scan(nullptr, {}, {F({1})}, {[](auto, auto& in) { return in; }}, 0); }),
                  "has 1 entries, not 0"));
}

// The node of one condition, by begin and end.
TEST_P(Control, BodiesBetweenBeginAndEnd) {
  auto body = [&](keel_trace* t, const char* label, const Program& code, const Array& x) {
    keel_trace* b = nullptr;
    keel::call(keel_body_begin, t, static_cast<keel_tape*>(nullptr), label,
               static_cast<keel_array* const*>(nullptr), 0u, 0u, KEEL_BODY_BRANCH, &b,
               static_cast<keel_array**>(nullptr));
    keel::Handle<keel_trace, keel_trace_free> handle(b);
    Array y = code(b, x);
    keel::call(keel_trace_result, b, static_cast<const char*>(nullptr), y.get());
    return handle;
  };
  auto run = [&](const char* op, const Array& p, const std::vector<keel_trace*>& bodies) {
    keel_array *before = p.get(), *out = nullptr;
    uint32_t n = 0;
    keel::call(keel_body_run, op, &before, 1u, static_cast<keel_array* const*>(nullptr), 0u, bodies.data(),
               static_cast<uint32_t>(bodies.size()), keel_dim{-1}, 0, &out, 1u, &n);
    return Array(out);
  };
  Program twice = [&](auto, const Array& x) { return Do("add", x, x); };
  Program same = [&](auto, const Array& x) { return x; };
  auto positive = [&](const Array& x) { return Do("greater", Sum(x), Scalar(0)); };
  keel::Module module = Traced([&](keel_trace* t, const Array& x) {
    Array p = positive(x);
    auto then = body(t, "then", twice, x);
    keel::call(keel_body_end, then.get());
    body(t, "else", same, x);  // rolled back: nothing remains
    auto otherwise = body(t, "else", same, x);
    keel::call(keel_body_end, otherwise.get());
    EXPECT_TRUE(Writes(then.get()));
    EXPECT_TRUE(Has(Failure([&] { run("cond", p, {then.get()}); }), "a cond has 2 bodies, got 1"));
    EXPECT_TRUE(Has(Failure([&] { run("add", p, {then.get()}); }), "\"add\" has no bodies"));
    EXPECT_TRUE(Has(Failure([&] { run("cond", p, {then.get(), t}); }), "is not a body"));
    Array y = run("cond", p, {then.get(), otherwise.get()});
    EXPECT_TRUE(Has(Failure([&] {
                      run("cond", p, {then.get(), otherwise.get()});
                    }),
                    "already belongs to another node"));
    return y;
  });
  EXPECT_FALSE(Has(module.text(), "else_1")) << module.text();
  keel::Plan plan = keel::Session(module, GetParam()).prepare();
  EXPECT_EQ(Values(plan.run(std::vector{F({1, 2})})[0]), (Floats{2, 4}));
  EXPECT_EQ(Values(plan.run(std::vector{F({-1, -2})})[0]), (Floats{-1, -2}));

  EXPECT_TRUE(Has(Fails([&](keel_trace* t, const Array& x) {
                    auto then = body(t, "then", twice, x), inside = body(then.get(), "else", same, x);
                    keel::call(keel_body_end, inside.get());
                    keel::call(keel_body_end, then.get());
                    return run("cond", positive(x), {then.get(), inside.get()});
                  }),
                  "end each body before the next one begins"));
  EXPECT_TRUE(Has(Fails([&](keel_trace* t, const Array& x) {
                    auto open = body(t, "then", twice, x);
                    Traced([&](keel_trace*, const Array& y) { return y; });  // another program
                    keel_module* out = nullptr;
                    keel::call(keel_trace_end, t, &out);
                    return x;
                  }),
                  "the body \"f.v0.then\" of \"f\" has not ended"));
  keel_trace* none = nullptr;
  EXPECT_EQ(keel_body_begin(nullptr, nullptr, "then", nullptr, 0, 0, 0, &none, nullptr, nullptr),
            KEEL_PRECONDITION);
  EXPECT_FALSE(Writes(nullptr));
}

TEST_P(Control, BadInput) {
  Block x_{[](auto, const Arrays& in) { return in; }};
  auto positive = [&](const Array& x) { return Do("greater", Sum(x), Scalar(0)); };
  auto gives = [](const Array& a) { return Block{[a](auto, auto&) { return Arrays{a}; }}; };
  EXPECT_TRUE(Has(Fails([&](keel_trace* t, const Array& x) {
                    Array p = positive(x);
                    return Cond(t, p, gives(x), {[&](auto, auto&) { return Arrays{Sum(x)}; }})[0];
                  }),
                  "result 0 of else (@f.v2.else) is f32[] but that of then (@f.v2.then) is f32[n]"));
  EXPECT_TRUE(Has(Fails([&](keel_trace* t, const Array& x) { return Cond(t, x, gives(x), gives(x))[0]; }),
                  "p is f32[n]"));
  EXPECT_TRUE(Has(Failure([&] {
                    Cond(nullptr, F({1, 2}), x_, x_);
                  }),
                  "the predicate is f32[2], expected bool[]"));
  EXPECT_TRUE(Has(Failure([&] { Switch(nullptr, Scalar(1), {x_}); }), "the index is f32[], expected i32[]"));
  EXPECT_TRUE(Has(Failure([&] { Switch(nullptr, I(0), {}); }), "a switch has no branch"));
  EXPECT_TRUE(Has(Failure([&] { Cond(nullptr, Do("less", I(1), I(2)), gives(I(1)), x_, 0); }),
                  "1 results, but 'out' has room for 0"));
  for (bool traced : {false, true}) {
    Program carry = [&](keel_trace* t, const Array& x) {
      Block more{[&](auto, const Arrays& c) { return Arrays{positive(c[0])}; }};
      return While(t, {x}, more, {[&](auto, const Arrays& c) { return Arrays{Sum(c[0])}; }})[0];
    };
    std::string said = traced ? Fails(carry) : Failure([&] { carry(nullptr, F({1, 2})); });
    EXPECT_TRUE(Has(said, "result 0 of body")) << said;
    EXPECT_TRUE(Has(said, "is f32[] but the carried operand")) << said;
    Program scalar = [&](keel_trace* t, const Array& x) { return Scan(t, {}, {Sum(x)}, x_)[0]; };
    said = traced ? Fails(scalar) : Failure([&] { scalar(nullptr, F({1, 2})); });
    EXPECT_TRUE(Has(said, "of a scan is a scalar: it has no dim to scan over")) << said;
  }
  EXPECT_TRUE(Has(Failure([&] { Scan(nullptr, {}, {F({1}), F({1, 2})}, x_); }), "has 2 entries, not 1"));
  EXPECT_TRUE(Has(Failure([&] { Scan(nullptr, {I(1)}, {}, x_); }), "set its length"));
  Array leaked;
  std::string said = Fails([&](keel_trace* t, const Array& x) {
    Cond(t, positive(x), {[&](auto, auto&) { return Arrays{leaked = Do("add", x, x)}; }}, gives(x));
    return Do("add", leaked, x);
  });
  EXPECT_TRUE(Has(said, "value \"v0\", f32[n], of the trace of \"f.v2.then\" cannot be used in the trace of"))
      << said;
  EXPECT_TRUE(Has(said, "return the value as a result of its body")) << said;
  said = Fails([&](keel_trace*, const Array& x) {  // this loop is not known to be part of a trace
    return While(nullptr, {I(0)}, {[&](auto, auto&) { return Arrays{positive(x)}; }}, x_)[0];
  });
  EXPECT_TRUE(Has(said, "the test is value")) << said;
  EXPECT_TRUE(Has(said, "pass the trace as 'within'")) << said;
  keel_block fails = [](void*, keel_trace*, keel_array* const*, uint32_t, keel_error** err) -> keel_rc {
    keel_array* none = nullptr;
    return keel_array_new(nullptr, KEEL_F32, nullptr, 0, &none, err);
  };
  said = Fails([&](keel_trace* t, const Array& x) {
    keel_array* out = nullptr;
    uint32_t n = 0;
    Call(keel_trace_cond, t, positive(x).get(), fails, nullptr, fails, nullptr, &out, 1u, &n);
    return x;
  });
  EXPECT_TRUE(Has(said, "'context' is NULL")) << "the block's own error: " << said;
  Program after = [&](keel_trace* t, const Array& x) {  // the failed body is rolled back
    keel_array* out = nullptr;
    uint32_t n = 0;
    keel_error* error = nullptr;
    keel_rc rc = keel_trace_cond(t, positive(x).get(), fails, nullptr, fails, nullptr, &out, 1, &n, &error);
    keel_error_free(error);
    EXPECT_NE(rc, KEEL_OK);
    return Do("add", x, x);
  };
  EXPECT_EQ(Values(keel::Session(Traced(after), GetParam()).prepare().run(std::vector{F({1, 2})})[0]),
            (Floats{2, 4}));
}

INSTANTIATE_TEST_SUITE_P(Device, Control, testing::ValuesIn(keel_test::Devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
