// work.cc: formulas of work by op, in one table; the machine's roof, measured. See work.h.
#include "work.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "timing.h"

namespace cli {
namespace {

double elements(const keel_tensor& t) {
  double n = 1;
  for (int32_t i = 0; i < t.ndim; i++) n *= static_cast<double>(t.shape[i]);
  return n;
}

double from_end(const keel_tensor& t, int32_t i) {  // the i-th dim from the end, from 1 on; 1: there is none
  return t.ndim >= i ? static_cast<double>(t.shape[t.ndim - i]) : 1;
}

double matmul_flops(const keel_event& e) {  // the inner size: a matrix of the first operand by its rows
  double inner = from_end(*e.in[0], 1) * from_end(*e.in[0], 2) / std::max(1.0, from_end(*e.out[0], 2));
  return 2 * elements(*e.out[0]) * inner;
}

double conv_flops(const keel_event& e) {  // weights [out, in of a group, window..]
  const keel_tensor& w = *e.in[1];
  return 2 * elements(*e.out[0]) * elements(w) / std::max(1.0, static_cast<double>(w.shape[0]));
}

double conv_grad_x_flops(const keel_event& e) {
  const keel_tensor& w = *e.in[1];
  return 2 * elements(*e.in[0]) * elements(w) / std::max(1.0, static_cast<double>(w.shape[0]));
}

double attention_flops(const keel_event& e) {  // q [.., l, d], k [.., s, d], v [.., s, e]: two products
  double rows = elements(*e.in[0]) / std::max(1.0, from_end(*e.in[0], 1));
  return 2 * rows * from_end(*e.in[1], 2) * (from_end(*e.in[0], 1) + from_end(*e.in[2], 1));
}

struct Formula {
  std::string_view op;
  uint32_t operands;
  double (*flops)(const keel_event&);
};
// The first that fits; a fused call goes by the name of its impl, its main op's operands come first.
constexpr Formula kFormulas[] = {
    {"conv_grad_x", 2, conv_grad_x_flops}, {"conv", 2, conv_flops},     {"attention", 3, attention_flops},
    {"matmul", 2, matmul_flops},           {"linear", 2, matmul_flops},
};

// Ops that read no more of their first operand than they give back.
constexpr std::string_view kPickers[] = {"gather", "gather_elements", "gather_nd", "slice"};

const Formula* find_formula(const keel_event& e) {
  std::string_view op = e.op, impl = e.impl;
  bool fused = op == "call";
  for (const Formula& f : kFormulas)
    if (e.n_in >= f.operands && (fused ? impl.find(f.op) != impl.npos : op == f.op)) return &f;
  return nullptr;
}

// Milliseconds of the best of five; the first run, which packs and allocates, does not count.
template <class F>
double best_ms(F run) {
  run();
  double best = 0;
  for (int i = 0; i < 5; i++) {
    Clock::time_point start = Clock::now();
    run();
    double ms = ms_since(start);
    if (!i || ms < best) best = ms;
  }
  return best;
}

keel::Plan matmul_plan(const keel::Context& context, const std::string& device, int threads, int64_t n) {
  std::string text = fmt::format(
      "keel 1\n\nfn @main(a: f32[{0}, {0}], b: f32[{0}, {0}]) -> f32[{0}, {0}] {{\n  y = matmul(a, b)\n"
      "  return y\n}}\n\nentry main = @main (a, b) -> (y)\n",
      n);
  keel::Options options;
  options.set("threads", std::to_string(threads));
  return keel::Session(keel::Module::parse(context, text), device, options).prepare();
}

// Products of square matrices, each size twice the one before, until one takes a while.
double matmul_gflops(const keel::Context& context, const std::string& device, int threads) {
  double best = 0, ms = 0;
  for (int64_t n = 64; n <= 1024 && ms < 10; n *= 2) {
    std::vector<float> ones(static_cast<size_t>(n * n), 1.0f);
    keel::Array a = keel::Array::of<float>(context, std::vector{n, n}, ones);
    keel::Plan plan = matmul_plan(context, device, threads, n);
    ms = best_ms([&] { plan.run(std::vector{a, a}); });
    best = std::max(best, 2e-6 * static_cast<double>(n * n * n) / ms);
  }
  return best;
}

void triad(float* a, const float* b, const float* c, size_t n) {
  for (size_t i = 0; i < n; i++) a[i] = b[i] + 0.5f * c[i];
}

// a = b + s c over 192 MB, a thread for each part.
double triad_gbytes(int threads) {
  constexpr size_t kSize = size_t{1} << 24;
  std::vector<float> a(kSize, 1.0f), b(kSize, 2.0f), c(kSize, 3.0f);
  size_t part = kSize / static_cast<size_t>(threads);
  double ms = best_ms([&] {
    std::vector<std::jthread> others;
    for (size_t at = part; at + part <= kSize; at += part)
      others.emplace_back([&, at] { triad(&a[at], &b[at], &c[at], part); });
    triad(a.data(), b.data(), c.data(), part);
  });
  return 3e-6 * sizeof(float) * static_cast<double>(part * static_cast<size_t>(threads)) / ms;
}

}  // namespace

Work work_of(const keel_event& event) {
  Work work;
  double most = 0;
  auto add = [&](const keel_tensor* t, double n) {
    work.bytes += n * t->dtype.bits / 8;
    most = std::max(most, n);
  };
  bool picks = std::find(std::begin(kPickers), std::end(kPickers), event.op) != std::end(kPickers);
  for (uint32_t i = 0; i < event.n_in; i++)
    if (event.in[i]) add(event.in[i], elements(picks && !i ? *event.out[0] : *event.in[i]));
  for (uint32_t i = 0; i < event.n_out; i++) add(event.out[i], elements(*event.out[i]));
  const Formula* formula = find_formula(event);
  work.flops = formula ? formula->flops(event) : most;
  return work;
}

Roof measure_roof(const keel::Context& context, const std::string& device, int threads) {
  return {matmul_gflops(context, device, threads), triad_gbytes(threads)};
}

}  // namespace cli
