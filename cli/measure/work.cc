// work.cc: FLOP formulas by op, in one table; the measured roofline. See work.h.
#include "cli/measure/work.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cli/measure/timing.h"

namespace cli {
namespace {

double from_end(const Sized& t, size_t i) {  // the i-th dim from the end, counting from 1; 1 if absent
  return t.dims.size() >= i ? t.dims[t.dims.size() - i] : 1;
}

double matmul_flops(const Operands& o) {  // the contracted size
  double inner = from_end(o.in[0], 1) * from_end(o.in[0], 2) / std::max(1.0, from_end(o.out[0], 2));
  if (o.in[0].dims.size() == 1) inner = o.in[0].elements();
  return 2 * o.out[0].elements() * inner;
}

double linear_flops(const Operands& o) { return 2 * o.out[0].elements() * from_end(o.in[0], 1); }

// Weights [out, in per group, window..]: each output element is a sum over the other dims.
double window_flops(const Sized& image, const Sized& weights) {
  return 2 * image.elements() * weights.elements() /
         std::max(1.0, weights.dims.empty() ? 1 : weights.dims[0]);
}
double conv_flops(const Operands& o) { return window_flops(o.out[0], o.in[1]); }
double conv_grad_x_flops(const Operands& o) { return window_flops(o.in[0], o.in[1]); }
double conv_grad_w_flops(const Operands& o) { return window_flops(o.in[0], o.out[0]); }

double attention_flops(const Operands& o) {  // q [.., l, d], k [.., s, d], v [.., s, e]: two products
  double rows = o.in[0].elements() / std::max(1.0, from_end(o.in[0], 1));
  return 2 * rows * from_end(o.in[1], 2) * (from_end(o.in[0], 1) + from_end(o.in[2], 1));
}

double no_flops(const Operands&) { return 0; }
double unknown_flops(const Operands&) { return NAN; }

struct Formula {
  std::string_view op;
  size_t operands;
  double (*flops)(const Operands&);
};
constexpr Formula kFormulas[] = {
    {"conv_grad_x", 2, conv_grad_x_flops},
    {"conv_grad_w", 2, conv_grad_w_flops},
    {"conv", 2, conv_flops},
    {"attention", 3, attention_flops},
    {"matmul", 2, matmul_flops},
    {"linear", 2, linear_flops},
    {"call", 0, unknown_flops},
    {"scan", 0, unknown_flops},
    {"while", 0, unknown_flops},
    {"cond", 0, unknown_flops},
    {"switch", 0, unknown_flops},
};

// Ops without arithmetic: they move, broadcast or generate elements.
constexpr std::string_view kMoves[] = {
    "assign",    "broadcast_to", "concat",        "dim",  "fill",     "gather",  "gather_elements",
    "gather_nd", "identity",     "iota",          "pad",  "read",     "reshape", "reverse",
    "slice",     "split",        "stop_gradient", "tile", "transpose"};

// Ops that read only as much of their first operand as they return.
constexpr std::string_view kPickers[] = {"gather", "gather_elements", "gather_nd", "slice"};

bool is_in(std::string_view op, std::span<const std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

Sized sized(const keel_tensor* t) {
  Sized out;
  for (int32_t i = 0; t && i < t->ndim; i++) out.dims.push_back(static_cast<double>(t->shape[i]));
  return out;
}

// Best of five, in milliseconds, after a first run that packs and allocates.
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

// Square matrix products, doubling the size until a run takes long enough. NaN: the device has none.
double matmul_gflops(const keel::Context& context, const std::string& device, int threads) try {
  double best = 0, ms = 0;
  for (int64_t n = 64; n <= 1024 && ms < 10; n *= 2) {
    std::vector<float> ones(static_cast<size_t>(n * n), 1.0f);
    keel::Array a = keel::Array::of<float>(context, std::vector{n, n}, ones);
    keel::Plan plan = matmul_plan(context, device, threads, n);
    ms = best_ms([&] { plan.run(std::vector{a, a}); });
    best = std::max(best, 2e-6 * static_cast<double>(n * n * n) / ms);
  }
  return best;
} catch (const keel::Error& error) {
  if (error.code() != KEEL_UNIMPLEMENTED) throw;
  return std::nan("");
}

void triad(float* a, const float* b, const float* c, size_t n) {
  for (size_t i = 0; i < n; i++) a[i] = b[i] + 0.5f * c[i];
}

// a = b + s c over 192 MB, one thread per part.
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

double Sized::elements() const {
  double n = 1;
  for (double d : dims) n *= d;
  return n;
}

double flops_of(const Operands& o) {
  if (is_in(o.op, kMoves)) return no_flops(o);
  for (const Formula& f : kFormulas)
    if (o.op == f.op && o.in.size() >= f.operands && !o.out.empty()) return f.flops(o);
  double most = 0;
  for (const auto* side : {&o.in, &o.out})
    for (const Sized& t : *side) {
      if (std::isnan(t.elements())) return NAN;
      most = std::max(most, t.elements());
    }
  return most;
}

Work work_of(const keel_event& event) {
  Work work;
  Operands operands{event.op, {}, {}};
  auto add = [&](const keel_tensor* t, const Sized& size) {
    work.bytes += size.elements() * t->dtype.bits / 8;
  };
  const bool picks = is_in(event.op, kPickers);
  for (uint32_t i = 0; i < event.n_in; i++) {
    if (event.in[i]) add(event.in[i], sized(picks && !i ? event.out[0] : event.in[i]));
    operands.in.push_back(sized(event.in[i]));
  }
  for (uint32_t i = 0; i < event.n_out; i++) {
    operands.out.push_back(sized(event.out[i]));
    add(event.out[i], operands.out.back());
  }
  work.flops = flops_of(operands);
  return work;
}

Roofline measure_roofline(const keel::Context& context, const std::string& device, int threads) {
  return {matmul_gflops(context, device, threads), triad_gbytes(threads)};
}

}  // namespace cli
