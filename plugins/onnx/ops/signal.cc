// signal.cc: window functions, DFT, STFT and MelWeightMatrix.
#include <cmath>

#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

constexpr double kPi = 3.14159265358979323846;

// first - second cos(2 pi i / n) + third cos(4 pi i / n).
void cosine_window(Call& c, double first, double second, double third) {
  const keel_dim size = c.list(0).at(0);
  const keel_dt to = c.type("output_datatype", KEEL_F32);
  const keel_dt inner = is_float(to) && !is_half(to) ? to : keel_dt{KEEL_F32};
  const Term at = counting_term(c.e, size, inner);
  const Term n = at.size(c.i("periodic", 1) ? size : c.e.sub(size, 1));
  const Term angle = at * (2 * kPi) / n;
  Term y = first - angle.op("cos") * second;
  if (third != 0) y = y + (angle * 2).op("cos") * third;
  c.set(0, y.to(to).v);
}
void hann(Call& c) { cosine_window(c, 0.5, 0.5, 0); }
void hamming(Call& c) { cosine_window(c, 25.0 / 46, 21.0 / 46, 0); }
void blackman(Call& c) { cosine_window(c, 0.42, 0.5, 0.08); }

Term transformed(const Term& x, int64_t axis, keel_dim length, bool inverse, bool onesided) {
  return x.op(
      "dft",
      Attrs().i("axis", axis).dim("length", length).flag("inverse", inverse).flag("onesided", onesided));
}

void check_signal(Call& c) {
  const Dims d = c.dims(0);
  if (d.size() < 2 || (d.back() != 1 && d.back() != 2))
    c.invalid("the last dim of its operand must be 1 (real) or 2 (complex)");
}

void dft_along(Call& c, int64_t given) {
  check_signal(c);
  const int64_t rank = c.rank(0), axis = c.axis(given, rank);
  if (axis == rank - 1) c.invalid("axis is the last dim, which holds real and imaginary parts");
  const bool inverse = c.i("inverse", 0) != 0, onesided = c.i("onesided", 0) != 0;
  if (onesided && !inverse && c.dims(0).back() == 2)
    c.invalid("onesided needs a real operand, whose last dim is 1");
  const keel_dim size = c.dims(0)[static_cast<size_t>(axis)];
  const keel_dim length = c.has(1)              ? c.list(1).at(0)
                          : inverse && onesided ? c.e.mul(c.e.sub(size, 1), 2)
                                                : size;
  if (!KEEL_DIM_IS_HANDLE(length) && length < 1) c.invalid(cat("dft_length is ", length));
  c.set(0, transformed(Term(c, 0), axis, length, inverse, onesided).v);
}
void dft(Call& c) { dft_along(c, c.has(2) ? c.numbers(2).at(0) : -2); }
void dft_17(Call& c) { dft_along(c, c.i("axis", 1)); }

// Frames of the signal [b, length, parts], weighted by the window, each transformed.
void stft(Call& c) {
  check_signal(c);
  Edit& e = c.e;
  const Dims d = c.dims(0);
  if (d.size() != 3) c.invalid(cat("its signal has ", d.size(), " dims; expected [batch, length, parts]"));
  const keel_dim hop = c.list(1).at(0), n = c.has(3) ? c.list(3).at(0) : c.has(2) ? c.dims(2).at(0) : d[1];
  if (!KEEL_DIM_IS_HANDLE(hop) && hop < 1) c.invalid(cat("frame_step is ", hop));
  const keel_dim frames = e.add(e.div(e.sub(d[1], n), hop), 1);
  const Term index = counting_term(e, {frames, n}, 0, KEEL_I64) * Term(e, e.number(hop, KEEL_I64)) +
                     counting_term(e, {frames, n}, 1, KEEL_I64);
  Term x = Term(c, 0).to(wide(c.dtype(0))).gather(index, 1);
  if (c.has(2)) x = x * Term(c, 2).to(x.dtype()).reshape({n, 1});
  c.set(0, transformed(x, 2, n, false, c.i("onesided", 1) != 0).to(c.dtype(0)).v);
}

// ---- MelWeightMatrix: triangles over the bins of a spectrum, computed here from its five numbers.

double number(Call& c, size_t i) {
  double n = 0;
  if (!stored_number(c, i, &n)) c.unsupported(cat("operand ", i, " must be known at import"));
  return n;
}

// The bins between which the triangles rise and fall.
std::vector<int64_t> mel_edges(Call& c, int64_t bins, double length, int64_t rows) {
  const double rate = number(c, 2);
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(number(c, 3)), step = (mel(number(c, 4)) - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; i++) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    const double bin = std::floor((length + 1) * hertz / rate);
    if (!(bin >= 0 && bin < static_cast<double>(rows)))
      c.invalid(
          cat("edge ", i, " is bin ", bin, " of ", rows, "; lower the upper edge or raise sample_rate"));
    edges.push_back(static_cast<int64_t>(bin));
  }
  return edges;
}

void mel_weights(Call& c) {
  const double n_bins = number(c, 0), length = number(c, 1);
  if (!(n_bins >= 1 && n_bins <= 1 << 16 && length >= 1 && length <= 1 << 24))
    c.invalid(cat("num_mel_bins is ", n_bins, " and dft_length ", length, "; expected positive sizes"));
  const auto bins = static_cast<int64_t>(n_bins), rows = static_cast<int64_t>(length) / 2 + 1;
  if (rows * bins > 1 << 26) c.invalid(cat("a matrix of ", rows, " by ", bins, " is too large"));
  const std::vector<int64_t> edges = mel_edges(c, bins, length, rows);
  std::vector<double> m(static_cast<size_t>(rows * bins), 0);
  for (int64_t i = 0; i < bins; i++) {
    const auto k = static_cast<size_t>(i);
    const int64_t from = edges[k], top = edges[k + 1], until = edges[k + 2];
    const auto at = [&](int64_t row) -> double& { return m[static_cast<size_t>(row * bins + i)]; };
    if (from == top) at(top) = 1;
    for (int64_t j = from; from < top && j <= top; j++)
      at(j) = static_cast<double>(j - from) / static_cast<double>(top - from);
    for (int64_t j = top; j < until; j++)
      at(j) = static_cast<double>(until - j) / static_cast<double>(until - top);
  }
  Value value;
  value.data = store(KEEL_F64, {rows, bins}, m);
  c.set(0, c.e.cast(c.e.id(value), c.type("output_datatype", KEEL_F32)));
}

constexpr Rule kRules[] = {
    {"HannWindow", 17, hann, "output_datatype periodic", bit(0)},
    {"HammingWindow", 17, hamming, "output_datatype periodic", bit(0)},
    {"BlackmanWindow", 17, blackman, "output_datatype periodic", bit(0)},
    {"DFT", 20, dft, "inverse onesided", bit(1) | bit(2)},
    {"DFT", 17, dft_17, "axis inverse onesided", bit(1)},
    {"STFT", 17, stft, "onesided", bit(1) | bit(3)},
    {"MelWeightMatrix", 17, mel_weights, "output_datatype", bit(0) | bit(1) | bit(2) | bit(3) | bit(4)},
};

}  // namespace

Rules signal_rules() { return kRules; }

}  // namespace onnx_import
