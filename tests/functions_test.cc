// functions_test.cc: traces and functions (keel.h): the same program eager and traced, on each device.
// Oracles are literals and eager runs. Ids in comments (T16) name the example programs in tests/rows.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "sdk/cpp/keel/keel.hpp"
#include "tests/devices.h"
#include "tests/failure.h"

namespace {

using keel::Array;
using keel_test::Failure;
using keel_test::Has;
using Program = std::function<std::vector<Array>(keel_trace*, std::span<const keel_leaf>)>;

Array Borrow(keel_array* a) { return Array(keel_array_retain(a)); }

// A function whose program is a lambda; its exceptions surface as keel::Error.
class Function {
 public:
  Function(const keel::Context& context, const std::string& device, Program program,
           const keel::Options& options = {}, const char* name = "f")
      : program_(std::move(program)) {
    std::vector<keel_kv> kv = options.view();
    keel_function* out = nullptr;
    keel::call(keel_function_new, context.get(), name, device.c_str(), kv.data(),
               static_cast<uint32_t>(kv.size()), Run, static_cast<void*>(this), nullptr, &out);
    handle_.reset(out);
  }
  keel_function* get() const { return handle_.get(); }

  std::vector<Array> operator()(std::vector<keel_leaf> leaves, const char* structure = "",
                                keel_trace* within = nullptr) {
    std::vector<keel_array*> out(8);
    uint32_t n = 0;
    thrown_ = nullptr;
    try {
      keel::call(keel_function_call, get(), within, nullptr, structure, leaves.data(),
                 static_cast<uint32_t>(leaves.size()), out.data(), 8u, &n);
    } catch (...) {
      if (std::exception_ptr first = std::exchange(thrown_, nullptr)) std::rethrow_exception(first);
      throw;
    }
    out.resize(n);
    return keel::take_arrays(out);
  }
  std::string report() const {
    keel_text* out = nullptr;
    keel::call(keel_function_report, get(), "report", &out);
    return keel::take_text(out);
  }
  int traces = 0;

 private:
  static keel_rc Run(void* arg, keel_trace* trace, const keel_leaf* leaves, uint32_t n, keel_error** err) {
    auto* self = static_cast<Function*>(arg);
    self->traces++;
    try {
      for (const Array& result : self->program_(trace, {leaves, n}))
        if (keel_rc rc = keel_trace_result(trace, nullptr, result.get(), err)) return rc;
    } catch (...) {
      thrown_ = std::current_exception();
      return KEEL_INVALID;
    }
    return KEEL_OK;
  }
  static inline thread_local std::exception_ptr thrown_;
  Program program_;
  keel::Handle<keel_function, keel_function_free> handle_;
};

keel_leaf Leaf(const Array& a, const char* name = nullptr) {
  return {KEEL_LEAF_ARRAY, 0, name, a.get(), 0, 0, nullptr};
}
keel_leaf Leaf(int64_t i) { return {KEEL_LEAF_I64, 0, nullptr, nullptr, i, 0, nullptr}; }
keel_leaf Leaf(double f) { return {KEEL_LEAF_F64, 0, nullptr, nullptr, 0, f, nullptr}; }
keel_leaf Leaf(bool b) { return {KEEL_LEAF_BOOL, 0, nullptr, nullptr, b, 0, nullptr}; }

class Functions : public testing::TestWithParam<std::string> {
 protected:
  Array Vector(std::vector<float> v) const {
    const int64_t shape[] = {static_cast<int64_t>(v.size())};
    return Array::of<float>(context_, shape, v);
  }
  std::vector<float> Values(const Array& a) const {
    auto all = a.values<float>();
    return {all.begin(), all.end()};
  }
  keel::Context context_ = keel_test::Open(GetParam());
  keel::Op add_{context_, GetParam(), "add"}, mul_{context_, GetParam(), "mul"};
};

TEST_P(Functions, TraceOnceForEachSignature) {
  Function f(context_, GetParam(), [&](keel_trace*, std::span<const keel_leaf> in) {
    return mul_({add_({Borrow(in[0].array), Borrow(in[1].array)})[0], Borrow(in[1].array)});
  });
  Array x = Vector({1, 2}), y = Vector({3, 4});
  EXPECT_EQ(Values(f({Leaf(x), Leaf(y)})[0]), (std::vector<float>{12, 24}));
  EXPECT_EQ(Values(f({Leaf(y), Leaf(x)})[0]), (std::vector<float>{4, 12}));
  EXPECT_EQ(f.traces, 1);
  Array z = Vector({1, 2, 3});
  EXPECT_EQ(Values(f({Leaf(z, "x"), Leaf(z, "y")})[0]), (std::vector<float>{2, 8, 18}));
  EXPECT_EQ(f.traces, 2);
  EXPECT_TRUE(Has(f.report(), "argument x was f32[2], now f32[3]")) << f.report();
}

TEST_P(Functions, TheThirdSizeIsForAll) {
  Function f(context_, GetParam(), [&](keel_trace*, std::span<const keel_leaf> in) {
    return add_({Borrow(in[0].array), Borrow(in[1].array)});
  });
  for (size_t n : {2u, 3u, 4u, 5u, 900u, 4u, 2u}) {
    Array x = Vector(std::vector<float>(n, 1)), y = Vector(std::vector<float>(n, 2));
    EXPECT_EQ(Values(f({Leaf(x), Leaf(y)})[0]), std::vector<float>(n, 3));
  }
  EXPECT_EQ(f.traces, 3);
  EXPECT_TRUE(Has(f.report(), "f(x0: f32[s0], x1: f32[s0]) -> f32[s0]")) << f.report();
  Array one = Vector({1}), five = Vector({1, 1, 1, 1, 1});  // s0 cannot be 1: a dim of 1 broadcasts
  EXPECT_EQ(Values(f({Leaf(one), Leaf(five)})[0]), std::vector<float>(5, 2));
  EXPECT_EQ(f.traces, 4);
}

TEST_P(Functions, NeverGeneralisesIfToldSo) {
  Function f(context_, GetParam(),
             [&](keel_trace*, std::span<const keel_leaf> in) {
               return add_({Borrow(in[0].array), Borrow(in[0].array)});
             },
             {{"any_after", "never"}, {"max_traces", "3"}});
  for (size_t n = 2; n < 8; n++) {
    Array x = Vector(std::vector<float>(n, 1));
    EXPECT_EQ(Values(f({Leaf(x)})[0]), std::vector<float>(n, 2));
  }
  EXPECT_EQ(f.traces, 6);
  EXPECT_TRUE(Has(f.report(), "\"dropped\":3")) << f.report();
}

TEST_P(Functions, StaticLeavesCountWithTheirType) {
  Function f(context_, GetParam(), [&](keel_trace*, std::span<const keel_leaf> in) {
    const keel_leaf& k = in[1];
    float factor = k.kind == KEEL_LEAF_F64 ? static_cast<float>(k.f) : static_cast<float>(k.i);
    return mul_({Borrow(in[0].array), Vector({factor})});
  });
  Array x = Vector({3});
  EXPECT_EQ(Values(f({Leaf(x), Leaf(int64_t{1})})[0]), std::vector<float>{3});
  f({Leaf(x), Leaf(1.0)});
  f({Leaf(x), Leaf(true)});
  EXPECT_EQ(Values(f({Leaf(x), Leaf(int64_t{2})})[0]), std::vector<float>{6});
  EXPECT_EQ(f.traces, 4);
  f({Leaf(x), Leaf(int64_t{1})});
  f({Leaf(x), Leaf(1.0)});
  EXPECT_EQ(f.traces, 4);
  f({Leaf(x), Leaf(1.0)}, "[a b]");
  EXPECT_EQ(f.traces, 5);
}

TEST_P(Functions, ASignatureServesAllThatFits) {
  Function f(context_, GetParam(),
             [&](keel_trace*, std::span<const keel_leaf> in) {
               return add_({Borrow(in[0].array), Borrow(in[1].array)});
             },
             {{"signature", "x: f32[b], y: f32[b]"}});
  for (size_t n : {0u, 1u, 2u, 7u}) {
    Array x = Vector(std::vector<float>(n, 1));
    EXPECT_EQ(Values(f({Leaf(x), Leaf(x)})[0]), std::vector<float>(n, 2));
  }
  EXPECT_EQ(f.traces, 1);
  Array two = Vector({1, 2}), three = Vector({1, 2, 3});
  EXPECT_TRUE(Has(Failure([&] {
                    f({Leaf(two), Leaf(three)});
                  }),
                  "\"y\""))
      << Failure([&] {
           f({Leaf(two), Leaf(three)});
         });
  EXPECT_TRUE(Has(Failure([&] { f({Leaf(two)}); }), "takes (x: f32[b], y: f32[b])"));
  EXPECT_TRUE(Has(Failure([&] {
                    Function bad(context_, GetParam(), nullptr, {{"signature", "x: f33[b]"}});
                  }),
                  "f33"));
}

TEST_P(Functions, RunEagerlyIsTheSameProgram) {
  bool symbolic = true;
  keel::Op neg(context_, GetParam(), "neg");
  Function f(context_, GetParam(), [&](keel_trace* t, std::span<const keel_leaf> in) {
    keel_array *x = in[0].array, *ins[] = {x, x}, *out = nullptr;
    EXPECT_EQ(keel_array_symbolic(x) != 0, symbolic);
    keel::call(keel_trace_apply, t, nullptr, add_.get(), ins, 2u, &out, 1u);
    return neg({Array(out)});
  });
  Array x = Vector({1, -2});
  EXPECT_EQ(Values(f({Leaf(x)})[0]), (std::vector<float>{-2, 4}));
  symbolic = false;
  keel_run_eagerly(nullptr, f.get(), 1);
  EXPECT_EQ(Values(f({Leaf(x)})[0]), (std::vector<float>{-2, 4}));
  EXPECT_EQ(Values(f({Leaf(x)})[0]), (std::vector<float>{-2, 4}));
  EXPECT_EQ(f.traces, 3);
  keel_run_eagerly(nullptr, f.get(), 0);
  f({Leaf(x)});
  EXPECT_EQ(f.traces, 3);
  keel_run_eagerly(context_.get(), nullptr, 1);
  f({Leaf(x)});
  EXPECT_EQ(f.traces, 4);
}

TEST_P(Functions, FunctionsCallFunctions) {  // T5
  Function inner(context_, GetParam(), [&](keel_trace*, std::span<const keel_leaf> in) {
    return add_({Borrow(in[0].array), Vector({4})});
  });
  Function outer(context_, GetParam(), [&](keel_trace*, std::span<const keel_leaf> in) {
    return inner({Leaf(mul_({Borrow(in[0].array), Vector({2})})[0])});
  });
  EXPECT_EQ(Values(outer({Leaf(Vector({4}))})[0]), std::vector<float>{12});
  EXPECT_EQ(Values(outer({Leaf(Vector({5}))})[0]), std::vector<float>{14});
  EXPECT_EQ(inner.traces, 1);
}

TEST_P(Functions, RecursionAndLeaksAreNamed) {
  Function* self = nullptr;
  Array seed = Vector({1}), leaked;
  Function f(
      context_, GetParam(),
      [&](keel_trace*, std::span<const keel_leaf> in) {
        leaked = Borrow(in[0].array);
        return self ? (*self)({Leaf(seed)}) : std::vector<Array>{leaked};
      },
      {}, "fib");
  f({Leaf(Vector({1, 2}))});
  std::string said = Failure([&] { add_({leaked, seed}); });
  EXPECT_TRUE(Has(said, "the trace of \"fib\" has ended")) << said;
  keel_array* nothing = nullptr;
  said = Failure([&] { keel::call(keel_array_to, context_.get(), leaked.get(), nullptr, &nothing); });
  EXPECT_TRUE(Has(said, "is symbolic: value \"x0\", f32[2], of the trace of \"fib\"")) << said;
  self = &f;
  said = Failure([&] { f({Leaf(Vector({1, 2, 3}))}); });
  EXPECT_TRUE(Has(said, "function \"fib\" calls itself while it is being traced")) << said;
  self = nullptr;
  EXPECT_EQ(Values(f({Leaf(Vector({1, 2, 3}))})[0]), (std::vector<float>{1, 2, 3}));
}

TEST_P(Functions, ModulesOfFunctionsRunAlone) {
  std::string path = testing::TempDir() + "function" + std::to_string(getpid()) + ".keel";
  {
    Function f(context_, GetParam(), [&](keel_trace*, std::span<const keel_leaf> in) {
      return add_({Borrow(in[0].array), Vector({1, 2})});
    });
    Array x = Vector({0, 0});
    std::vector<keel_leaf> leaves{Leaf(x, "x")};
    keel_module* m = nullptr;
    keel::call(keel_function_module, f.get(), "", leaves.data(), 1u, &m, nullptr);
    keel::Handle<keel_module, keel_module_free> owner(m);
    keel::call(keel_module_save, m, path.c_str());
  }
  keel::Context other = keel_test::Open(GetParam());
  keel::Module loaded = keel::Module::load(other, path);
  std::filesystem::remove(path);
  EXPECT_TRUE(Has(loaded.text(), "fn @f(x: f32[2])")) << loaded.text();
  const int64_t shape[] = {2};
  Array x = Array::of<float>(other, shape, std::vector<float>{5, 6});
  keel::Plan plan = keel::Session(loaded, GetParam()).prepare();
  EXPECT_EQ(Values(plan.run(std::vector{x})[0]), (std::vector<float>{6, 8}));
}

TEST_P(Functions, ManyThreadsTraceOne) {
  Function f(context_, GetParam(), [&](keel_trace*, std::span<const keel_leaf> in) {
    return add_({Borrow(in[0].array), Borrow(in[0].array)});
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&, t] {
      for (size_t n = 1; n < 12; n++) {
        Array x = Vector(std::vector<float>(n + static_cast<size_t>(t) % 3, 1));
        EXPECT_EQ(Values(f({Leaf(x)})[0]), std::vector<float>(static_cast<size_t>(x.size()), 2));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_LE(f.traces, 4);  // one for size 1, three others until sizes become a symbol
}

TEST_P(Functions, ErrorsOfTheProgramComeOut) {
  Function f(context_, GetParam(), [&](keel_trace*, std::span<const keel_leaf>) -> std::vector<Array> {
    return add_({Vector({1, 2}), Vector({1, 2, 3})});
  });
  EXPECT_TRUE(Has(Failure([&] { f({}); }), "add")) << Failure([&] { f({}); });
  std::vector<keel_leaf> wrong{{9, 0, nullptr, nullptr, 0, 0, nullptr}};
  EXPECT_TRUE(Has(Failure([&] { f(wrong); }), "argument 0: kind 9"));
  wrong[0].kind = KEEL_LEAF_ARRAY;
  EXPECT_TRUE(Has(Failure([&] { f(wrong); }), "argument 0 is NULL"));
}

// T16: of unused operations only effects run, in program order, as in eager code.
TEST_P(Functions, EffectsRunThoughNobodyNeedsThem) {
  std::string printed;
  auto append = [](void* to, int32_t, const char* text, uint64_t size) {
    static_cast<std::string*>(to)->append(text, size);
  };
  context_.print_to(append, &printed);
  keel::Op print(context_, GetParam(), "print", keel::Attrs().str("format", "sum {}"));
  keel::Op check(context_, GetParam(), "assert", keel::Attrs().str("message", "too big"));
  keel::Op less(context_, GetParam(), "less");
  auto program = [&](keel_trace*, std::span<const keel_leaf> in) -> std::vector<Array> {
    Array x = Borrow(in[0].array), limit = Borrow(in[1].array), sum = add_({x, x})[0];
    print({sum}, 0);
    mul_({x, x});  // unused
    check({less({x, limit})[0], x}, 0);
    print({x}, 0);
    return {x};
  };
  Function f(context_, GetParam(), program);
  auto scalar = [&](float v) { return Array::of<float>(context_, {}, std::span<const float>(&v, 1)); };
  Array one = scalar(1), limit = scalar(2), big = scalar(3);
  std::vector<keel_leaf> good{Leaf(one), Leaf(limit)}, bad{Leaf(big), Leaf(limit)};
  program(nullptr, good);
  EXPECT_EQ(std::exchange(printed, ""), "sum 2\nsum 1\n");
  f(good);
  f(good);
  EXPECT_EQ(std::exchange(printed, ""), "sum 2\nsum 1\nsum 2\nsum 1\n");
  EXPECT_EQ(f.traces, 1);
  for (const std::string& error : {Failure([&] { program(nullptr, bad); }), Failure([&] { f(bad); })})
    EXPECT_TRUE(Has(error, "too big: 3")) << error;
  EXPECT_EQ(printed, "sum 6\nsum 6\n");
  context_.print_to(nullptr, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Device, Functions, testing::ValuesIn(keel_test::Devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
