// int8_bin_matmul.cc: matmul_integer of several rows and a constant matrix by the products of
// int8_bin_products.h.
#include <algorithm>

#include "plugins/cpu/matmul/int8_bin_products.h"
#include "plugins/cpu/matmul/matmul.h"

namespace keel_cpu {
namespace {

constexpr int64_t kLeastRows = 3 * kPlaces;  // fewer leave too many lanes or sums unused

struct BinMatmul {
  BinShape shape;
  BinRows rows;
  bool has_zero = false, is_signed = false;  // of a
  Bytes weights;
  Int8Result result;
  int64_t parts = 1;  // of the columns, which do not share panels
};

void RunPart(const keel_call* call, const BinMatmul& m, int32_t zero, int64_t unit, const BinScratch& own) {
  const int64_t part = unit % m.parts, p = unit / m.parts, n = m.shape.channels, quads = m.shape.Quads();
  const int64_t begin = quads * part / m.parts, end = quads * (part + 1) / m.parts, column = begin * kQuad;
  const auto [row, vectors, rows] = m.rows.At(p);
  const char* a = In<char>(call, 0);
  for (int64_t v = 0; v < vectors; v++)
    BinLoops()->columns(a + (row + v * kPlaces) * m.shape.depth, m.shape.depth,
                        std::min(kPlaces, rows - v * kPlaces), m.shape.Groups(), FlipOf(m.is_signed),
                        own.panel.get() + v * kPlaces * 4);
  char* y = Out<char>(call, 0) + static_cast<uint64_t>(row * n + column) * m.result.Bytes();
  MultiplyBins({own.panel.get(), vectors, rows, zero}, m.shape, m.weights.get(), begin, end,
               std::min(end * kQuad, n) - column, m.result, column, y, n, own);
}

keel_rc RunBins(const keel_call* call) {
  const BinMatmul& m = State<BinMatmul>(call);
  if (call->count == 0) return KEEL_OK;
  const int32_t zero = MovedZero(m.has_zero ? ZeroInCall(call, kAZero, m.is_signed) : 0, m.is_signed);
  const int64_t cost = kMostVectors * kPlaces * m.shape.depth * m.shape.channels / m.parts / 32;
  ParallelFor(call, m.rows.Panels() * m.parts, cost, [&](int64_t begin, int64_t end) {
    const BinScratch own(m.shape.depth, m.result);
    for (int64_t u = begin; u < end; u++) RunPart(call, m, zero, u, own);
  });
  return Done(call);
}

int64_t Count(const keel_tensor& t) { return keel_count(&t); }

template <class T>
int32_t ZeroAt(const keel_tensor& zero, int64_t j) {
  return static_cast<const T*>(keel_ptr(&zero))[keel_count(&zero) == 1 ? 0 : j];
}

// The columns of b less its zero points, as rows. Empty: not bytes.
template <class T>
std::vector<int8_t> Turned(const keel_tensor& b, const keel_tensor* zero, const BinShape& s) {
  const int64_t row = s.Groups() * 4;
  std::vector<int8_t> rows(static_cast<size_t>(s.channels * row));
  const T* from = static_cast<const T*>(keel_ptr(&b));
  constexpr int64_t kTile = 64;  // columns, whose rows stay in the cache
  for (int64_t first = 0; first < s.channels; first += kTile)
    for (int64_t k = 0; k < s.depth; k++)
      for (int64_t j = first; j < std::min(first + kTile, s.channels); j++) {
        const int32_t w = from[k * s.channels + j] - (zero == nullptr ? 0 : ZeroAt<T>(*zero, j));
        if (w != static_cast<int8_t>(w)) return {};
        rows[static_cast<size_t>(j * row + k)] = static_cast<int8_t>(w);
      }
  return rows;
}

std::vector<int8_t> RowsOf(const Node& node, const BinShape& s) {
  const keel_tensor b = node.In(1), zero = node.Has(kBZero) ? node.In(kBZero) : keel_tensor{};
  if (b.data == nullptr || (node.Has(kBZero) && zero.data == nullptr)) return {};
  const keel_tensor* given = node.Has(kBZero) ? &zero : nullptr;
  return TypeOf(b) == KEEL_I8 ? Turned<int8_t>(b, given, s) : Turned<uint8_t>(b, given, s);
}

}  // namespace

bool KeepBins(const Node& node, const MatmulShape& s, Int8Result* result, keel_launch* launch) {
  BinMatmul m;
  m.shape = {s.k, s.n};
  m.rows = {s.Batches() * s.m};
  m.has_zero = node.Has(kAZero);
  const keel_tensor a = node.In(0);
  if (BinLoops() == nullptr || s.b_matrices != 1 || s.k == 0 || s.k % 4 != 0 || m.rows.rows < kLeastRows ||
      m.rows.rows != Product(a.shape, a.ndim - 1))
    return false;
  if (m.has_zero && Count(node.In(kAZero)) != 1) return false;
  const std::vector<int8_t> rows = RowsOf(node, m.shape);
  const uint64_t bytes = rows.empty() ? 0 : BinBytes(m.shape, rows.data());
  if (bytes == 0) return false;
  m.is_signed = TypeOf(a) == KEEL_I8;
  m.weights = AllocateConstant(bytes);
  PackBins(m.shape, rows.data(), m.weights.get());
  m.result = std::move(*result);
  PadToQuad(&m.result);
  m.parts = PartsOf(m.rows.Panels(), m.shape.Quads());
  Keep(launch, std::move(m), Guard<RunBins>);
  return true;
}

}  // namespace keel_cpu
