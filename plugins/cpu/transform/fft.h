// fft.h: the fast Fourier transform of a line of complex numbers of any length, in double. Stages for the
// factors of the length (Stockham: results in order, without a permutation); a length with a prime factor
// above kMostRadix is a convolution by transforms of a power of 2 (Bluestein 1970).
#pragma once

#include <memory>
#include <vector>

#include "plugins/cpu/common.h"

namespace keel_cpu {

struct Pair {  // a complex number; std::complex would multiply with a test for NaN
  double re, im;
};

class Fft {
 public:
  explicit Fft(int64_t n);
  int64_t length() const { return n_; }
  // Pairs of memory that a transform takes: the line comes first.
  int64_t room() const { return convolution_ ? n_ + convolution_->room() : 2 * n_; }
  // sum_j x[j] exp(-2 pi i j k / n), in place. Stops when the run is cancelled (call may be null).
  void Run(const keel_call* call, Pair* x) const;

 private:
  void RunStages(const keel_call* call, Pair* x, Pair* other) const;
  void RunConvolution(const keel_call* call, Pair* x) const;

  int64_t n_;
  std::vector<int64_t> radices_;
  std::vector<Pair> roots_;            // exp(-2 pi i j / n)
  std::unique_ptr<Fft> convolution_;   // of a power of 2; null: stages
  std::vector<Pair> chirp_, weights_;  // exp(-pi i j^2 / n), and the transform of its conjugates
};

}  // namespace keel_cpu
