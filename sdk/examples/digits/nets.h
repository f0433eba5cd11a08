// nets.h: layers, two networks and two optimizers, written in Keel ops on variables. operator() of a network
// is its forward pass; parameters() are the sources of gradients. The state() of an optimizer starts as
// zeros.
#ifndef KEEL_EXAMPLES_DIGITS_NETS_H
#define KEEL_EXAMPLES_DIGITS_NETS_H
#include <keel/keel.hpp>
#include <string>
#include <utility>
#include <vector>

namespace digits {

using keel::Tensor;
using keel::Variable;
using Shape = std::vector<int64_t>;
using Variables = std::vector<Variable>;

/// Depends on a symbolic key, so that the zeros are computed in the run and not stored in the file.
inline Tensor zeros(const Shape& shape, const Tensor& key) {
  return keel::fill(keel::cast(key - key, KEEL_F32), {.dims = shape});
}

/// Initial weights [in, out] or [out, in, 3, 3] after He et al. (2015): uniform, with variance 2 / fan in.
/// Biases: zeros.
inline Tensor initial(const Shape& shape, const Tensor& key) {
  const int64_t fan_in = shape.size() == 2   ? shape[0]
                         : shape.size() == 4 ? shape[1] * shape[2] * shape[3]
                                             : 0;
  if (fan_in == 0) return zeros(shape, key);
  const double limit = std::sqrt(6.0 / static_cast<double>(fan_in));
  return keel::random(key, shape) * (2 * limit) - limit;
}
inline Tensor key_of(int64_t seed) { return keel::tensor(seed, KEEL_U64); }
inline Variable parameter(const std::string& name, const Shape& shape) {
  return Variable(initial(shape, key_of(0)), {.name = name});
}
inline Variables states(const std::string& name, const Variables& parameters) {
  Variables all;
  for (const Variable& p : parameters)
    all.emplace_back(keel::zeros(p.shape()),
                     keel::VariableOptions{.name = p.name() + "/" + name, .trainable = false});
  return all;
}

struct Dense {
  Variable w, b;
  Dense(const std::string& name, int64_t in, int64_t out)
      : w(parameter(name + "/w", {in, out})), b(parameter(name + "/b", {out})) {}
  Tensor operator()(const Tensor& x) const { return keel::linear(x, w, b); }
};

/// 3 x 3 windows with padding: the output has the size of the image.
struct Conv {
  Variable w, b;
  Conv(const std::string& name, int64_t in, int64_t out)
      : w(parameter(name + "/w", {out, in, 3, 3})), b(parameter(name + "/b", {out, 1, 1})) {}
  Tensor operator()(const Tensor& x) const { return keel::conv(x, w, {.lo = {1, 1}, .hi = {1, 1}}) + b; }
};

/// images: u8[n, 64] of 0 to 16 -> logits f32[n, 10].
struct Mlp {
  Dense hidden{"mlp/hidden", 64, 48}, out{"mlp/out", 48, 10};
  Tensor operator()(const Tensor& images) const {
    return out(keel::relu(hidden(keel::cast(images, KEEL_F32) / 16)));
  }
  Variables parameters() const { return {hidden.w, hidden.b, out.w, out.b}; }
};
struct ConvNet {
  Conv first{"conv/first", 1, 8}, second{"conv/second", 8, 16};
  Dense out{"conv/out", 16 * 4 * 4, 10};
  Tensor operator()(const Tensor& images) const {
    Tensor x = keel::reshape(keel::cast(images, KEEL_F32) / 16, {-1, 1, 8, 8});
    x = keel::max_pool(keel::relu(first(x)), {2, 2}, {.stride = {2, 2}});
    x = keel::relu(second(x));
    return out(keel::reshape(x, {-1, 16 * 4 * 4}));
  }
  Variables parameters() const { return {first.w, first.b, second.w, second.b, out.w, out.b}; }
};

/// Stochastic gradient descent with momentum.
class Sgd {
 public:
  Sgd(Variables parameters, float rate, float momentum)
      : parameters_(std::move(parameters)),
        velocity_(states("velocity", parameters_)),
        rate_(rate),
        momentum_(momentum) {}
  void step(const std::vector<Tensor>& gradients) const {
    for (size_t k = 0; k < parameters_.size(); k++) {
      Tensor velocity = velocity_[k] * momentum_ + gradients[k];
      velocity_[k].assign(velocity);
      parameters_[k].assign_sub(velocity * rate_);
    }
  }
  Variables state() const { return velocity_; }

 private:
  Variables parameters_, velocity_;
  float rate_, momentum_;
};

/// Adam (Kingma and Ba, 2015).
class Adam {
 public:
  Adam(Variables parameters, float rate)
      : parameters_(std::move(parameters)),
        mean_(states("mean", parameters_)),
        square_(states("square", parameters_)),
        count_(keel::zeros({}), {.name = "adam/count", .trainable = false}),
        rate_(rate) {}
  void step(const std::vector<Tensor>& gradients) const {
    constexpr float kMean = 0.9f, kSquare = 0.999f, kLeast = 1e-8f;
    Tensor count = count_ + 1;
    count_.assign(count);
    // Bias correction: the running means start at 0, so in step n they are too small by these factors.
    Tensor rate = keel::sqrt(1 - keel::pow(kSquare, count)) / (1 - keel::pow(kMean, count)) * rate_;
    for (size_t k = 0; k < parameters_.size(); k++) {
      const Tensor& g = gradients[k];
      Tensor mean = mean_[k] * kMean + g * (1 - kMean), square = square_[k] * kSquare + g * g * (1 - kSquare);
      mean_[k].assign(mean);
      square_[k].assign(square);
      parameters_[k].assign_sub(rate * mean / (keel::sqrt(square) + kLeast));
    }
  }
  Variables state() const {
    Variables all = mean_;
    all.insert(all.end(), square_.begin(), square_.end());
    all.push_back(count_);
    return all;
  }

 private:
  Variables parameters_, mean_, square_;
  Variable count_;
  float rate_;
};

}  // namespace digits
#endif
