// programs_test.cc: variables in traces and tapes that read them, through the C API, on each device. Oracles
// are literals. sdk/ tests keel::Variable and keel::Tape.
#include <gtest/gtest.h>

#include <functional>

#include "sdk/cpp/keel/keel.hpp"
#include "tests/devices.h"
#include "tests/failure.h"

namespace {

using keel::Array;
using keel_test::Failure;
using Floats = std::vector<float>;

class Programs : public testing::TestWithParam<std::string> {
 protected:
  struct Trace {
    keel::Handle<keel_trace, keel_trace_free> handle;
    Trace(const keel::Context& context, const char* name) {
      keel_trace* out = nullptr;
      keel::call(keel_trace_new, context.get(), name, GetParam().c_str(), &out);
      handle.reset(out);
    }
    Array param(const char* name, keel_dim n) {
      keel_array* out = nullptr;
      keel::call(keel_trace_param, handle.get(), name, KEEL_F32, &n, 1, &out);
      return Array(out);
    }
    void result(const Array& a) { keel::call(keel_trace_result, handle.get(), nullptr, a.get()); }
    keel::Module end() {
      keel_module* out = nullptr;
      keel::call(keel_trace_end, handle.get(), &out);
      return keel::Module::take(out);
    }
  };
  Array Vector(const Floats& v) const {
    const int64_t shape[] = {static_cast<int64_t>(v.size())};
    return Array::of<float>(context_, shape, v);
  }
  keel_variable* New(keel_trace* within, const Array& initial, const keel::Options& options = {}) {
    std::vector<keel_kv> kv = options.view();
    keel_variable* out = nullptr;
    keel::call(keel_variable_new, context_.get(), within, initial.get(), kv.data(),
               static_cast<uint32_t>(kv.size()), &out);
    return made_.emplace_back(out).get();
  }
  static Array Read(keel_trace* within, keel_variable* v, keel_tape* tape = nullptr) {
    keel_array* out = nullptr;
    keel::call(keel_variable_read, v, within, tape, &out);
    return Array(out);
  }
  static void Write(keel_trace* within, keel_variable* v, const char* how, const Array& value) {
    keel::call(keel_variable_write, v, within, how, value.get());
  }
  static Floats Values(const Array& a) {
    auto all = a.values<float>();
    return {all.begin(), all.end()};
  }
  keel::Context context_ = keel_test::Open(GetParam());
  keel::Op mul_{context_, GetParam(), "mul"}, exp_{context_, GetParam(), "exp"};
  std::vector<keel::Handle<keel_variable, keel_variable_free>> made_;
};

TEST_P(Programs, NodesStandInTheOrderOfTheProgram) {
  keel_variable* w = New(nullptr, Vector({1, 2}), {{"name", "w"}});
  const char* name = nullptr;
  keel_variable_info(w, &name, nullptr, nullptr);
  EXPECT_STREQ(name, "w");
  Trace trace(context_, "step");
  keel_trace* t = trace.handle.get();
  Array x = trace.param("x", 2), before = Read(t, w);
  EXPECT_TRUE(keel_array_symbolic(before.get()));
  Write(t, w, "assign_add", x);
  Array after = Read(t, w);
  Write(nullptr, w, "assign_sub", mul_({x, after})[0]);  // a symbolic array identifies the trace
  trace.result(before);
  trace.result(after);
  keel::Plan plan = keel::Session(trace.end(), GetParam()).prepare();
  std::vector<Array> got = plan.run(std::vector{Vector({10, 20})});
  EXPECT_EQ(Values(got[0]), (Floats{1, 2}));
  EXPECT_EQ(Values(got[1]), (Floats{11, 22}));
  EXPECT_EQ(Values(Read(nullptr, w)), (Floats{11 - 110, 22 - 440}));
}

TEST_P(Programs, AFirstValueOfConstants) {
  Trace trace(context_, "f");
  keel_trace* t = trace.handle.get();
  Array two = Vector({2, 3}), in[] = {two, two};
  keel_array *raw[] = {in[0].get(), in[1].get()}, *out = nullptr;
  keel::call(keel_trace_apply, t, nullptr, mul_.get(), raw, 2u, &out, 1u);
  Array square(out), x = trace.param("x", 2);
  ASSERT_TRUE(keel_array_symbolic(square.get()));
  keel_variable* v = New(t, square, {{"trainable", "0"}});
  EXPECT_EQ(Values(Read(nullptr, v)), (Floats{4, 9})) << "it is there at once";
  int32_t trainable = 1;
  keel_variable_info(v, nullptr, &trainable, nullptr);
  EXPECT_EQ(trainable, 0);
  EXPECT_NE(Failure([&] {
              New(t, mul_({exp_({x})[0], square})[0]);
            }).find("depends on parameter \"x\" of \"f\": x -> v1 -> v2"),
            std::string::npos);
  trace.result(Read(t, v));
  EXPECT_EQ(Values(keel::Session(trace.end(), GetParam()).prepare().run(std::vector{Vector({0, 0})})[0]),
            (Floats{4, 9}));
}

TEST_P(Programs, TapesKnowWhatWasReadOfAVariable) {
  keel_variable* w = New(nullptr, Vector({3}));
  keel_variable* fixed = New(nullptr, Vector({5}), {{"trainable", "0"}});
  for (bool watch : {false, true}) {
    keel_tape* made = nullptr;
    keel::call(keel_tape_new, context_.get(), GetParam().c_str(), static_cast<const keel_kv*>(nullptr), 0u,
               static_cast<keel_tape*>(nullptr), &made);
    keel::Handle<keel_tape, keel_tape_free> tape(made);
    if (watch) keel::call(keel_tape_watch, made, nullptr, fixed);
    Array a = Read(nullptr, w, made), b = Read(nullptr, fixed, made);
    keel_array *in[] = {a.get(), b.get()}, *y = nullptr, *out[] = {nullptr, nullptr, nullptr};
    keel::call(keel_trace_apply, nullptr, made, mul_.get(), in, 2u, &y, 1u);
    Array kept(y);
    keel_array* xs[] = {a.get(), nullptr, nullptr};
    keel_variable* variables[] = {nullptr, w, fixed};
    keel::call(keel_tape_gradient, made, &y, 1u, nullptr, xs, variables, 3u, 0u, out);
    std::vector<Array> d = keel::take_arrays({out[0], out[1], out[2]});
    EXPECT_EQ(Values(d[0]), Floats{5});
    EXPECT_EQ(Values(d[1]), Floats{5});
    ASSERT_EQ(static_cast<bool>(d[2]), watch);
    EXPECT_EQ(watch ? Values(d[2]) : Floats{3}, Floats{3});
  }
}

TEST_P(Programs, BadInput) {
  keel_variable* w = New(nullptr, Vector({1, 2}));
  keel_array* out = nullptr;
  EXPECT_EQ(keel_variable_read(nullptr, nullptr, nullptr, &out, nullptr), KEEL_INVALID);
  EXPECT_EQ(keel_variable_write(w, nullptr, nullptr, nullptr, nullptr), KEEL_INVALID);
  EXPECT_NE(Failure([&] {
              Write(nullptr, w, "add", Vector({1, 2}));
            }).find("expected one of assign, assign_add, assign_sub"),
            std::string::npos);
  EXPECT_NE(Failure([&] { New(nullptr, Vector({1}), {{"name", ""}}); }), "");
  EXPECT_NE(Failure([&] {
              New(nullptr, Vector({1}), {{"trainable", "no"}});
            }).find("expected 0 or 1"),
            std::string::npos);
  Trace trace(context_, "f");
  Array x = trace.param("x", 3);
  std::string wrong = Failure([&] { Write(trace.handle.get(), w, "assign", x); });
  EXPECT_NE(wrong.find("x has P = 3 but the variable has P = 2"), std::string::npos) << wrong;
  trace.end();
  EXPECT_NE(Failure([&] { Read(trace.handle.get(), w); }).find("has ended: cannot read a variable"),
            std::string::npos);
  EXPECT_NE(
      Failure([&] { New(trace.handle.get(), Vector({1})); }).find("has ended: cannot create a variable"),
      std::string::npos);
  EXPECT_EQ(Values(Read(nullptr, w)), (Floats{1, 2}));
}

INSTANTIATE_TEST_SUITE_P(Device, Programs, testing::ValuesIn(keel_test::Devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
