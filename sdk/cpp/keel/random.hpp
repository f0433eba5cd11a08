// random.hpp: random numbers from generators, which supply a new key for each draw.
//
//   keel::set_seed(42);                                                       // optional: the default is 0
//   keel::Tensor w = keel::random_normal({784, 128}, {.stddev = 0.05});
//   keel::Tensor i = keel::random_uniform({5}, {.high = 10, .dtype = KEEL_I32});   // 0 to 9
//
// The numbers come from keel::random(key, dims) (ops.hpp), a function of key and index only: the same seed
// and the same calls in the same order produce the same bits on every device.
#ifndef KEEL_RANDOM_HPP
#define KEEL_RANDOM_HPP

#include "keel/mutex.hpp"
#include "keel/ops.hpp"
#include "variable.hpp"

namespace keel {

struct UniformOptions {
  Literal low = 0, high = 1;  // low inclusive, high exclusive
  keel_dt dtype = KEEL_F32;
};
struct NormalOptions {
  double mean = 0, stddev = 1;
  keel_dt dtype = KEEL_F32;
};

struct TruncatedNormalOptions {
  double low = -2, high = 2;  // in standard deviations from the mean
  double mean = 0, stddev = 1;
  keel_dt dtype = KEEL_F32;
};

/// A stream of keys: a variable with a counter. In a traced function each run advances it and draws new
/// numbers. Thread-safe; the assignment of keys to concurrent threads is unspecified.
class Generator {
 public:
  explicit Generator(uint64_t seed = 0)
      : state_(default_context(), Array::of<uint64_t>(default_context(), {}, std::vector{mixed(seed)})) {}
  /// Restarts the stream.
  void seed(uint64_t seed) {
    std::lock_guard lock(mutex_);
    state_.assign(Array::of<uint64_t>(default_context(), {}, std::vector{mixed(seed)}));
  }
  /// u64[], a different one each time.
  Tensor key() {
    std::lock_guard lock(mutex_);
    Tensor now = state_.value();
    state_.assign_add(1);
    return now;
  }
  Tensor uniform(const Ints& dims, const UniformOptions& o = {}) {
    return random_uniform(key(), tensor(o.low, o.dtype), tensor(o.high, o.dtype), dims);
  }
  Tensor normal(const Ints& dims, const NormalOptions& o = {}) {
    return scaled(random(key(), dims, {.kind = "normal", .dtype = o.dtype}), o.mean, o.stddev);
  }
  Tensor truncated_normal(const Ints& dims, const TruncatedNormalOptions& o = {}) {
    const Tensor low = tensor(Literal(o.low), o.dtype), high = tensor(Literal(o.high), o.dtype);
    return scaled(keel::truncated_normal(key(), low, high, dims), o.mean, o.stddev);
  }
  /// Indices along the last dim, with the probabilities softmax(logits): dims of them for each row.
  Tensor categorical(const Tensor& logits, const Ints& dims = {}) {
    return keel::categorical(key(), logits, {.dims = dims});
  }
  /// The slices of x along axis in a random order.
  Tensor shuffle(const Tensor& x, int64_t axis = 0) { return keel::shuffle(key(), x, {.axis = axis}); }

 private:
  static Tensor scaled(const Tensor& x, double mean, double stddev) {
    return mean == 0 && stddev == 1 ? x : x * stddev + mean;
  }
  // Decorrelates adjacent seeds (the finalizer of SplitMix64; Steele, Lea, Flood 2014).
  static uint64_t mixed(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  Variable state_;
  Mutex mutex_;
};

/// The generator of the process.
inline Generator& default_generator() {
  static Generator generator;
  return generator;
}
inline void set_seed(uint64_t seed) { default_generator().seed(seed); }
inline Tensor random_uniform(const Ints& dims, const UniformOptions& o = {}) {
  return default_generator().uniform(dims, o);
}
inline Tensor random_normal(const Ints& dims, const NormalOptions& o = {}) {
  return default_generator().normal(dims, o);
}

}  // namespace keel
#endif
