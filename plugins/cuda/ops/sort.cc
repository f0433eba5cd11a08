// sort.cc: top_k, by sorts of pieces (kernels/sort.cu).
#include <bit>

#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

constexpr int64_t kPiece = 2048;           // kernels/sort.cu
constexpr int64_t kMostKept = kPiece / 4;  // so that each round leaves less than a quarter

// As kernels/sort.cu reads it.
struct Numbers {
  int64_t rows, size, largest, results, entries, width, pieces, kept, first, last, whole;
  int64_t from_values, from_indices, to_values, to_indices;
  int64_t k, j;
};
// A list of entries in scratch: byte offsets of the elements and of their indices. -1: x, or the results.
struct List {
  int64_t values = -1, indices = -1;
};

class Sort {
 public:
  explicit Sort(Op& op) : op_(op), type_(NameOf(keel::plugin::dtype_of(op.In(0)))) {
    const keel_tensor x = op.In(0), y = op.Out(0);
    n_.rows = product(x.shape, x.shape + x.ndim - 1);
    n_.size = dim_from_end(x, 1), n_.results = dim_from_end(y, 1), n_.largest = op.Int("largest") != 0;
    value_bytes_ = std::max(x.dtype.bits / 8, IsFloat(x) ? 4 : 1);
  }
  void Encode() {
    if (op_.rc || !n_.rows || !n_.results) return;
    if (n_.size > INT32_MAX)
      return op_.Fail(KEEL_UNIMPLEMENTED, "top_k: rows of more than 2147483647 elements");
    if (n_.size <= kPiece || n_.results <= kMostKept)
      Rounds();
    else
      Whole();
  }

 private:
  List Reserve(int64_t entries) {
    const auto take = [this](int64_t bytes) {
      const uint64_t at = op_.work.scratch_bytes;
      op_.work.scratch_bytes += static_cast<uint64_t>(CeilDiv(bytes, 16) * 16);
      return static_cast<int64_t>(at);
    };
    List made;
    made.values = take(n_.rows * entries * value_bytes_), made.indices = take(n_.rows * entries * 4);
    return made;
  }
  void Add(const char* kernel, uint32_t blocks, const List& from, const List& to) {
    n_.from_values = from.values, n_.from_indices = from.indices;
    n_.to_values = to.values, n_.to_indices = to.indices;
    const auto words = std::bit_cast<std::array<int64_t, sizeof(Numbers) / sizeof(int64_t)>>(n_);
    op_.Add("sort", kernel + type_, blocks, {0, op_.Result(0), op_.Result(1), op_.Result(2)},
            {words.begin(), words.end()});
  }
  void SortPieces(const List& from, const List& to) {
    Add("sort_", Blocks(n_.rows * n_.pieces, 1), from, to);
  }

  // Pieces are sorted, and the best of each are the entries of the next round.
  void Rounds() {
    List from;
    n_.kept = n_.results, n_.first = 2;
    for (n_.entries = n_.size;; n_.entries = n_.pieces * n_.kept) {
      n_.width = n_.last =
          std::min(kPiece, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n_.entries))));
      n_.pieces = CeilDiv(n_.entries, n_.width);
      if (n_.pieces == 1) return SortPieces(from, {});
      const List to = Reserve(n_.pieces * n_.kept);
      SortPieces(from, to);
      from = to;
    }
  }
  // One bitonic sort of each row: pieces first, then each stage for pairs in other pieces and the rest in
  // pieces.
  void Whole() {
    const auto filled = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n_.size)));
    const List all = Reserve(filled);
    n_.whole = 1, n_.width = n_.kept = kPiece, n_.pieces = filled / kPiece;
    n_.entries = n_.size, n_.first = 2, n_.last = kPiece;
    SortPieces({}, all);
    n_.entries = filled;
    for (n_.k = 2 * kPiece; n_.k <= filled; n_.k *= 2) {
      for (n_.j = n_.k / 2; n_.j >= kPiece; n_.j /= 2)
        Add("exchange_", Blocks(n_.rows * filled / 2), all, all);
      n_.first = n_.last = n_.k;
      SortPieces(all, n_.k == filled ? List() : all);
    }
  }

  Op& op_;
  std::string type_;
  Numbers n_ = {};
  int64_t value_bytes_;
};

void TopK(Op& op) { Sort(op).Encode(); }

}  // namespace

Impls SortImpls() { return {Row<TopK>("top_k", kNumTypes, "bitonic sorts of pieces")}; }

}  // namespace keel_cuda
