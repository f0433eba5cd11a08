// fft.cc: see fft.h.
#include "plugins/cpu/transform/fft.h"

#include <bit>
#include <cmath>

#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {
namespace {

constexpr int64_t kMostRadix = 31;

Pair operator+(Pair a, Pair b) { return {a.re + b.re, a.im + b.im}; }
Pair operator-(Pair a, Pair b) { return {a.re - b.re, a.im - b.im}; }
Pair operator*(Pair a, Pair b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
Pair Conjugate(Pair a) { return {a.re, -a.im}; }

// exp(-2 pi i part / n)
Pair Root(int64_t part, int64_t n) {
  const double angle = 2 * 3.14159265358979323846 * static_cast<double>(2 * part > n ? part - n : part) /
                       static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

// The factors of n, fours first; empty: one is above kMostRadix.
std::vector<int64_t> Radices(int64_t n) {
  std::vector<int64_t> radices;
  for (int64_t p : {4, 2})
    for (; n % p == 0; n /= p) radices.push_back(p);
  for (int64_t p = 3; p <= kMostRadix; p += 2)
    for (; n % p == 0; n /= p) radices.push_back(p);
  return n == 1 ? radices : std::vector<int64_t>{};
}

// y[r] = sum_k a[k] exp(-2 pi i k r / p); step: of the roots.
template <class P>
void Butterfly(P p, const Pair* a, const Pair* roots, int64_t step, Pair* y) {
  if constexpr (std::is_same_v<P, std::integral_constant<int64_t, 2>>) {
    y[0] = a[0] + a[1], y[1] = a[0] - a[1];
  } else if constexpr (std::is_same_v<P, std::integral_constant<int64_t, 4>>) {
    const Pair s = a[0] + a[2], d = a[0] - a[2], t = a[1] + a[3], e = a[1] - a[3];
    y[0] = s + t, y[2] = s - t;
    y[1] = {d.re + e.im, d.im - e.re}, y[3] = {d.re - e.im, d.im + e.re};
  } else {
    for (int64_t r = 0; r < p; r++) {
      y[r] = a[0];
      for (int64_t k = 1; k < p; k++) y[r] = y[r] + a[k] * roots[k * r % p * step];
    }
  }
}

template <class F>
void Chunks(const keel_call* call, int64_t n, int64_t cost, F&& f) {
  if (call)
    InChunks(call, 0, n, cost, f);
  else
    f(int64_t{0}, n);
}

}  // namespace

Fft::Fft(int64_t n) : n_(n), radices_(Radices(n)) {
  if (n == 1 || !radices_.empty()) {
    for (int64_t j = 0; j < n; j++) roots_.push_back(Root(j, n));
    return;
  }
  convolution_ = std::make_unique<Fft>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1))));
  const auto m = static_cast<size_t>(convolution_->length());
  for (int64_t j = 0, square = 0; j < n; square = (square + 2 * j + 1) % (2 * n), j++)
    chirp_.push_back(Root(square, 2 * n));
  weights_.resize(static_cast<size_t>(convolution_->room()), Pair{0, 0});
  for (size_t j = 0; j < chirp_.size(); j++)
    weights_[j] = weights_[(m - j) % m] = {chirp_[j].re / static_cast<double>(m),
                                           -chirp_[j].im / static_cast<double>(m)};
  convolution_->Run(nullptr, weights_.data());
  weights_.resize(m);
}

void Fft::Run(const keel_call* call, Pair* x) const {
  if (convolution_)
    RunConvolution(call, x);
  else
    RunStages(call, x, x + n_);
}

// A stage of radix p at stride s: from[q + s (j + m k)] to to[q + s (p j + r)], for the m p numbers of each
// q.
void Fft::RunStages(const keel_call* call, Pair* x, Pair* other) const {
  Pair *from = x, *to = other;
  int64_t s = 1;
  for (int64_t radix : radices_) {
    const int64_t m = n_ / s / radix;
    WithUsual<2, 3, 4, 5>(radix, [&](auto p) {
      Chunks(call, m, s * p * 8, [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; j++)
          for (int64_t q = 0; q < s; q++) {
            Pair a[kMostRadix], y[kMostRadix];
            for (int64_t k = 0; k < p; k++) a[k] = from[q + s * (j + m * k)];
            Butterfly(p, a, roots_.data(), n_ / p, y);
            to[q + s * p * j] = y[0];
            for (int64_t r = 1; r < p; r++)
              to[q + s * (p * j + r)] = y[r] * roots_[static_cast<size_t>(j * r * s)];
          }
      });
    });
    std::swap(from, to);
    s *= radix;
  }
  if (from != x)
    Chunks(call, n_, 2, [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, x + begin); });
}

// X[k] = c[k] sum_j (x[j] c[j]) conj(c[k - j]), where j k = (j^2 + k^2 - (k - j)^2) / 2. The inverse
// transform is that of the conjugates.
void Fft::RunConvolution(const keel_call* call, Pair* x) const {
  const int64_t m = convolution_->length();
  Pair* line = x + n_;
  for (int64_t j = 0; j < n_; j++) line[j] = x[j] * chirp_[static_cast<size_t>(j)];
  std::fill(line + n_, line + m, Pair{0, 0});
  convolution_->Run(call, line);
  for (int64_t j = 0; j < m; j++) line[j] = Conjugate(line[j] * weights_[static_cast<size_t>(j)]);
  convolution_->Run(call, line);
  for (int64_t j = 0; j < n_; j++) x[j] = Conjugate(line[j]) * chirp_[static_cast<size_t>(j)];
}

}  // namespace keel_cpu
