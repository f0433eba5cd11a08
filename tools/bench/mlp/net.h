// net.h: the MLP 784-128-128-128-10 with relu, its loss and a step of SGD, written once. `trace` and `tape`
// select whether ops are traced, recorded on a tape, or only computed.
#pragma once

#include <keel/keel.hpp>

namespace mlp {

using keel::Array;
using Arrays = std::vector<Array>;
inline constexpr int64_t kWidths[] = {784, 128, 128, 128, 10};
inline constexpr size_t kLayers = 4;  // with a weight and a bias each

class Net {
 public:
  Net(const keel::Context& context, const std::string& device, float rate)
      : context_(context), device_(device), rate_(Array::of<float>(context, {}, std::span(&rate, 1))) {}

  keel_trace* trace = nullptr;
  keel_tape* tape = nullptr;

  Array Logits(Array x, std::span<const Array> params) const {
    for (size_t k = 0; k < kLayers; k++) {
      x = Apply(add_, Apply(matmul_, x, params[2 * k]), params[2 * k + 1]);
      if (k + 1 < kLayers) x = Apply(relu_, x);
    }
    return x;
  }
  Array Loss(const Array& x, const Array& labels, std::span<const Array> params) const {
    return Apply(mean_, Apply(cross_entropy_, Logits(x, params), labels));
  }
  // Parameters after one step; the loss before it is written to `loss`.
  Arrays Step(const Array& x, const Array& labels, std::span<const Array> params, Array* loss) {
    keel_tape* made = nullptr;
    keel::call(keel_tape_new, context_.get(), device_.c_str(), static_cast<const keel_kv*>(nullptr), 0u,
               static_cast<keel_tape*>(nullptr), &made);
    keel::Handle<keel_tape, keel_tape_free> owner;
    owner.reset(made);
    for (const Array& p : params) keel::call(keel_tape_watch, made, p.get(), nullptr);
    tape = trace ? nullptr : made;
    *loss = Loss(x, labels, params);
    tape = nullptr;
    Arrays next = Gradient(made, *loss, params);
    for (size_t i = 0; i < next.size(); i++) next[i] = Apply(sub_, params[i], Apply(mul_, next[i], rate_));
    return next;
  }

 private:
  template <class... In>
  Array Apply(const keel::Op& op, const In&... in) const {
    keel_array *ins[] = {in.get()...}, *out = nullptr;
    constexpr uint32_t n = sizeof...(in);
    if (trace)
      keel::call(keel_trace_apply, trace, nullptr, op.get(), ins, n, &out, 1u);
    else if (tape)
      keel::call(keel_trace_apply, nullptr, tape, op.get(), ins, n, &out, 1u);
    else
      keel::call(keel_apply, op.get(), ins, n, &out, 1u);
    return Array(out);
  }
  static Arrays Gradient(keel_tape* of, const Array& loss, std::span<const Array> params) {
    keel_array* y = loss.get();
    std::vector<keel_array*> xs = keel::raw(params), out(params.size());
    keel::call(keel_tape_gradient, of, &y, 1u, static_cast<keel_array* const*>(nullptr), xs.data(), nullptr,
               static_cast<uint32_t>(xs.size()), 0u, out.data());
    return keel::take_arrays(out);
  }
  keel::Op Bind(const char* op) const { return keel::Op(context_, device_, op); }

  const keel::Context& context_;
  std::string device_;
  Array rate_;
  keel::Op matmul_ = Bind("matmul"), add_ = Bind("add"), relu_ = Bind("relu"), mul_ = Bind("mul"),
           sub_ = Bind("sub"), mean_ = Bind("reduce_mean"), cross_entropy_ = Bind("cross_entropy");
};

// A function whose program is a C++ callable: body(net, arguments) -> results.
class Traced {
 public:
  using Body = std::function<Arrays(Net&, const Arrays&)>;
  Traced(const keel::Context& context, const std::string& device, const char* name, Net& net, Body body)
      : net_(net), body_(std::move(body)) {
    keel_function* out = nullptr;
    keel::call(keel_function_new, context.get(), name, device.c_str(), static_cast<const keel_kv*>(nullptr),
               0u, Run, static_cast<void*>(this), static_cast<void (*)(void*)>(nullptr), &out);
    handle_.reset(out);
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

  Arrays operator()(std::span<const Array> in) const {
    std::vector<keel_leaf> leaves = Leaves(in);
    keel_array* out[16];
    uint32_t n = 0;
    keel::call(keel_function_call, handle_.get(), static_cast<keel_trace*>(nullptr), nullptr, "",
               leaves.data(), static_cast<uint32_t>(leaves.size()), out, 16u, &n);
    return keel::take_arrays({out, out + n});
  }
  // JSON: the plan of its graph.
  std::string Report(std::span<const Array> in, const std::string& device) const {
    std::vector<keel_leaf> leaves = Leaves(in);
    keel_module* out = nullptr;
    keel::call(keel_function_module, handle_.get(), "", leaves.data(), static_cast<uint32_t>(leaves.size()),
               &out, nullptr);
    return keel::Session(keel::Module::take(out), device).prepare().report();
  }

 private:
  static std::vector<keel_leaf> Leaves(std::span<const Array> in) {
    std::vector<keel_leaf> leaves;
    for (const Array& a : in) leaves.push_back({KEEL_LEAF_ARRAY, 0, nullptr, a.get(), 0, 0, nullptr});
    return leaves;
  }
  static keel_rc Run(void* arg, keel_trace* trace, const keel_leaf* leaves, uint32_t n, keel_error**) {
    auto& self = *static_cast<Traced*>(arg);
    Arrays in;
    for (uint32_t i = 0; i < n; i++) in.emplace_back(keel_array_retain(leaves[i].array));
    self.net_.trace = trace;
    Arrays results = self.body_(self.net_, in);
    self.net_.trace = nullptr;
    for (const Array& a : results)
      keel::call(keel_trace_result, trace, static_cast<const char*>(nullptr), a.get());
    return KEEL_OK;
  }
  Net& net_;
  Body body_;
  keel::Handle<keel_function, keel_function_free> handle_;
};

}  // namespace mlp
