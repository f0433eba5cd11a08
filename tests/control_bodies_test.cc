// control_bodies_test.cc: control flow through the C API (keel_control.h): bodies between begin and end, and
// bad input, on each device. Oracles are literals.
#include "tests/control.h"

namespace {

using namespace control_test;

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

}  // namespace
