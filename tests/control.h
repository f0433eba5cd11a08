// control.h: the fixture of the tests of control flow: blocks of C++ code, and programs that run eagerly and
// as a graph, on each device.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "sdk/cpp/keel/keel.hpp"
#include "tests/devices.h"
#include "tests/failure.h"

namespace control_test {

using keel::Array;
using keel_test::Failure;
using keel_test::Has;
using Arrays = std::vector<Array>;
using Floats = std::vector<float>;

inline bool Writes(const keel_trace* trace) {
  int32_t writes = 7;
  keel_trace_info(trace, nullptr, &writes);
  return writes == 1;
}

inline std::exception_ptr thrown;  // by a block
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

}  // namespace control_test
