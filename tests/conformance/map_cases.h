// map_cases.h: random bodies of elementwise ops, and the same ops run separately, for tests of the CPU
// plugin's fused loops.
#pragma once
#include <random>

#include "bare_plugin.h"

namespace map_cases {

using bare::Plugin;
using Dims = std::vector<int64_t>;
using Rng = std::mt19937;

inline const Plugin& Cpu() {
  static const Plugin plugin("cpu");
  return plugin;
}

inline int Draw(Rng& rng, int n) { return static_cast<int>(rng() % static_cast<uint32_t>(n)); }

// Bytes of a tensor with values on which no op here fails.
inline std::string Values(Rng& rng, const BareTensor& t) {
  std::string bytes(static_cast<size_t>(t.Bytes()), '\0');
  for (int64_t i = 0; i < t.Count(); i++) {
    char* at = bytes.data() + i * t.Size();
    const float f = static_cast<float>(Draw(rng, 4000) - 2000) / 512 + 0.001f;
    const int32_t n = Draw(rng, 2) ? Draw(rng, 100) + 1 : -Draw(rng, 100) - 1;
    const int64_t wide = n;
    const double d = static_cast<double>(f);
    const uint8_t bit = static_cast<uint8_t>(n & 1);
    const uint16_t half = static_cast<uint16_t>(0x3800 + Draw(rng, 0x800) + 0x8000 * Draw(rng, 2));
    if (t.dtype == KEEL_F32) std::memcpy(at, &f, 4);
    if (t.dtype == KEEL_I32) std::memcpy(at, &n, 4);
    if (t.dtype == KEEL_I64) std::memcpy(at, &wide, 8);
    if (t.dtype == KEEL_F64) std::memcpy(at, &d, 8);
    if (t.dtype == KEEL_BOOL) std::memcpy(at, &bit, 1);
    if (t.dtype == KEEL_F16 || t.dtype == KEEL_BF16) std::memcpy(at, &half, 2);
  }
  return bytes;
}

inline Dims Broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims out = longer;
  for (size_t i = 0; i < shorter.size(); i++) {
    int64_t& d = out[out.size() - 1 - i];
    if (d == 1) d = shorter[shorter.size() - 1 - i];
  }
  return out;
}

struct Case {
  keel_node call;
  std::vector<std::string> operands;
};

struct Value {
  BareTensor type;
  uint32_t number;
};

inline keel_attr Whole(int64_t v) { return {KEEL_ATTR_I64, 0, v, 0, nullptr}; }

class Builder {
 public:
  Builder(uint32_t seed, Dims full) : rng_(seed), full_(std::move(full)) { c_.call.op = "call"; }

  Case Make(int operands, int nodes, int results) {
    for (int i = 0; i < operands; i++) AddOperand(Dtype(), i == 0 ? full_ : Part());
    for (int i = 0; i < nodes; i++) AddNode();
    // Only values of the full shape can be results together; the last node's value always is one.
    std::vector<Value> whole;
    for (const Value& v : values_)
      if (v.type.dims == full_ && v.number >= static_cast<uint32_t>(operands)) whole.push_back(v);
    for (int i = 0; i < results && !whole.empty(); i++) {
      const Value v =
          i == 0 ? whole.back() : whole[static_cast<size_t>(Draw(rng_, static_cast<int>(whole.size())))];
      c_.call.results.push_back(v.number);
      c_.call.out.push_back(v.type);
    }
    c_.call.n_values = static_cast<uint32_t>(values_.size());
    return c_;
  }

 private:
  keel_dt Dtype() {
    constexpr keel_dt kDtypes[] = {KEEL_F32, KEEL_F32, KEEL_F32,  KEEL_I32,
                                   KEEL_F64, KEEL_F16, KEEL_BF16, KEEL_I64};
    return kDtypes[Draw(rng_, 8)];
  }
  Dims Part() {
    Dims d = full_;
    switch (Draw(rng_, 4)) {
      case 0:
        return {};
      case 1:
        for (int64_t& n : d)
          if (Draw(rng_, 2)) n = 1;
        return d;
      case 2:
        d.erase(d.begin(), d.begin() + Draw(rng_, static_cast<int>(d.size()) + 1));
        return d;
      default:
        return d;
    }
  }
  void AddOperand(keel_dt dt, Dims dims) {
    const BareTensor t = {dt, std::move(dims)};
    values_.push_back({t, static_cast<uint32_t>(c_.call.in.size())});
    c_.call.in.push_back(t);
    c_.operands.push_back(Values(rng_, t));
  }
  const Value* Pick(keel_dt dt) {
    std::vector<const Value*> fit;
    for (const Value& v : values_)
      if (v.type.dtype == dt) fit.push_back(&v);
    return fit.empty() ? nullptr : fit[static_cast<size_t>(Draw(rng_, static_cast<int>(fit.size())))];
  }
  void Add(const std::string& op, std::vector<Value> in, keel_dt out) {
    keel_node n;
    n.op = op;
    Dims dims;
    std::vector<uint32_t> numbers;
    for (const Value& v : in) {
      n.in.push_back(v.type);
      dims = Broadcast(dims, v.type.dims);
      numbers.push_back(v.number);
    }
    n.out.push_back({out, dims});
    n.attrs["tanh"] = Whole(Draw(rng_, 2));
    c_.call.nodes.push_back(n);
    c_.call.node_in.push_back(numbers);
    const uint32_t number = static_cast<uint32_t>(values_.size());
    c_.call.node_out.push_back(number);
    values_.push_back({n.out[0], number});
  }
  void AddNode() {
    constexpr const char* kUnary[] = {"exp",     "tanh", "gelu",  "neg", "abs",
                                      "sigmoid", "sqrt", "floor", "erf", "relu"};
    constexpr const char* kBinary[] = {"add", "sub", "mul", "maximum", "minimum"};
    constexpr const char* kCompare[] = {"less", "equal", "greater_equal"};
    const Value a = Draw(rng_, 3)
                        ? values_.back()
                        : values_[static_cast<size_t>(Draw(rng_, static_cast<int>(values_.size())))];
    const keel_dt dt = a.type.dtype;
    const bool real = (dt & 255) != 0 && dt != KEEL_BOOL;
    const Value b = *Pick(dt);
    if (dt == KEEL_BOOL) {
      const Value* x = Pick(KEEL_F32);
      if (x != nullptr && Draw(rng_, 2)) return Add("select", {a, *x, *Pick(KEEL_F32)}, KEEL_F32);
      return Draw(rng_, 2) ? Add("logical_xor", {a, b}, KEEL_BOOL) : Add("cast", {a}, KEEL_F32);
    }
    switch (Draw(rng_, real ? 5 : 4)) {
      case 0:
        return Add("cast", {a}, Dtype());
      case 1:
        return Add(kCompare[Draw(rng_, 3)], {a, b}, KEEL_BOOL);
      case 4:
        return Add(kUnary[Draw(rng_, 10)], {a}, dt);
      default:
        return Draw(rng_, 2) ? Add(kBinary[Draw(rng_, 5)], {a, b}, dt)
                             : Add(kBinary[Draw(rng_, 5)], {b, a}, dt);
    }
  }

  Rng rng_;
  Dims full_;
  Case c_;
  std::vector<Value> values_;
};

// Each node by the impl of the single op.
inline std::vector<std::string> OneByOne(const Case& c) {
  std::vector<std::string> values = c.operands;
  for (size_t i = 0; i < c.call.nodes.size(); i++) {
    std::vector<std::string> in;
    for (uint32_t v : c.call.node_in[i]) in.push_back(values[v]);
    values.push_back(bare::Run(Cpu(), c.call.nodes[i], in)[0]);
  }
  std::vector<std::string> results;
  for (uint32_t v : c.call.results) results.push_back(values[v]);
  return results;
}

inline void Compare(const Case& c) {
  if (c.call.results.empty()) return;
  const std::vector<std::string> want = OneByOne(c);
  for (bare::Options o : {bare::Options{1, true}, bare::Options{2, false}}) {
    const std::vector<std::string> got = bare::Run(Cpu(), c.call, c.operands, o);
    ASSERT_EQ(got.size(), want.size());
    for (size_t r = 0; r < got.size(); r++) {
      const int64_t size = c.call.out[r].Size();
      for (size_t i = 0; i < want[r].size(); i++)
        ASSERT_EQ(got[r][i], want[r][i]) << "result " << r << " element " << i / static_cast<size_t>(size)
                                         << " with " << o.threads << " threads";
    }
  }
}

}  // namespace map_cases
