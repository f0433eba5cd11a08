// suppress.cc: non_max_suppression, which chooses the best of boxes that overlap. A row is one class of one
// batch. Its candidates become a heap; boxes taken from it are compared with the chosen boxes, several at
// once.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {
namespace {

constexpr int64_t kBlock = 16, kScores = 64;  // boxes and scores compared at once
constexpr int64_t RoundUp(int64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

// The ends on both axes, and the area. An empty box, also for one with NaN, overlaps none.
struct Box {
  float low[2] = {}, high[2] = {}, area = 0;
};

Box BoxAt(const float* x, bool center) {
  Box b;
  for (int k = 0; k < 2; k++) {
    const float half = x[k + 2] / 2;
    b.low[k] = center ? x[k] - half : std::min(x[k], x[k + 2]);
    b.high[k] = center ? x[k] + half : std::max(x[k], x[k + 2]);
    if (std::isnan(x[k]) || std::isnan(x[k + 2]) || std::isnan(b.low[k]) || std::isnan(b.high[k])) return {};
  }
  b.area = (b.high[0] - b.low[0]) * (b.high[1] - b.low[1]);
  return b;
}

// The chosen boxes of a row: five columns, filled up with empty boxes to a multiple of kBlock.
class Chosen {
 public:
  static int64_t Bytes(int64_t size) { return 5 * RoundUp(size) * static_cast<int64_t>(sizeof(float)); }

  Chosen(void* memory, int64_t size) : column_(static_cast<float*>(memory)), stride_(RoundUp(size)) {}

  int64_t Count() const { return count_; }

  void Add(const Box& b) {
    const float parts[] = {b.low[0], b.low[1], b.high[0], b.high[1], b.area};
    for (int64_t k = 0; k < 5; k++) {
      float* at = column_ + k * stride_ + count_;
      if (count_ % kBlock == 0) std::fill_n(at, kBlock, 0.0f);
      *at = parts[k];
    }
    count_++;
  }

  bool Overlaps(const Box& b, float limit) const {
    for (int64_t begin = 0; begin < count_; begin += kBlock)
      if (BlockOverlaps(column_ + begin, b, limit)) return true;
    return false;
  }

 private:
  bool BlockOverlaps(const float* at, const Box& b, float limit) const {
    const float *x = at, *y = at + stride_, *x_end = y + stride_, *y_end = x_end + stride_,
                *area = y_end + stride_;
    uint32_t any = 0;
    for (int64_t i = 0; i < kBlock; i++) {
      const float width = std::min(x_end[i], b.high[0]) - std::max(x[i], b.low[0]);
      const float height = std::min(y_end[i], b.high[1]) - std::max(y[i], b.low[1]);
      const float shared = (width > 0 ? width : 0) * (height > 0 ? height : 0);
      any |= static_cast<uint32_t>(shared > 0) &
             static_cast<uint32_t>(shared / (area[i] + b.area - shared) > limit);
    }
    return any != 0;
  }

  float* column_;
  int64_t stride_, count_ = 0;
};

// A number that is higher for a higher score and, of equal ones, for a lower place.
uint64_t KeyOf(float score, int64_t place) {
  auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 becomes 0
  bits = bits >> 31 ? ~bits : bits | 0x80000000u;
  return uint64_t{bits} << 32 | (UINT32_MAX - static_cast<uint32_t>(place));
}
int64_t PlaceOf(uint64_t key) { return UINT32_MAX - static_cast<uint32_t>(key); }

struct Suppress {
  int64_t classes, rows, n, size, lanes, lane_bytes;
  bool center;
};

// Whether a score is above `low`; NaN as `low`: any number is.
bool IsCandidate(float score, float low) { return !(score <= low) & (score == score); }

// Writes the keys of the candidates; returns their end. Most blocks of a detector's scores have none.
uint64_t* Candidates(const float* scores, int64_t n, float low, uint64_t* end) {
  for (int64_t begin = 0; begin < n; begin += kScores) {
    const int64_t stop = std::min(n, begin + kScores);
    uint32_t any = 0;
    for (int64_t i = begin; i < stop; i++) any |= static_cast<uint32_t>(IsCandidate(scores[i], low));
    for (int64_t i = begin; any && i < stop; i++) {
      *end = KeyOf(scores[i], i);
      end += IsCandidate(scores[i], low);
    }
  }
  return end;
}

int64_t Most(const keel_call* call) {
  return TypeOf(*call->in[2]) == KEEL_I32 ? *In<int32_t>(call, 2) : *In<int64_t>(call, 2);
}

// Writes the chosen boxes of row r as (batch, class, box); returns their number. NaN as `low`: all scores
// count.
int64_t RunRow(const keel_call* call, const Suppress& s, int64_t r, void* memory) {
  auto* keys = static_cast<uint64_t*>(memory);
  Chosen chosen(keys + s.n, s.size);
  const float *scores = In<float>(call, 1) + r * s.n, limit = *In<float>(call, 3), low = *In<float>(call, 4);
  const int64_t most = std::min(Most(call), s.size), batch = r / s.classes;
  int64_t* found = Out<int64_t>(call, 0) + r * s.size * 3;
  uint64_t* end = most > 0 ? Candidates(scores, s.n, low, keys) : keys;
  std::make_heap(keys, end);
  while (chosen.Count() < most && end > keys && !Cancelled(call)) {
    std::pop_heap(keys, end);
    const int64_t place = PlaceOf(*--end);
    const Box box = BoxAt(In<float>(call, 0) + (batch * s.n + place) * 4, s.center);
    if (chosen.Overlaps(box, limit)) continue;
    chosen.Add(box);
    for (int64_t v : {batch, r % s.classes, place}) *found++ = v;
  }
  return chosen.Count();
}

keel_rc RunSuppress(const keel_call* call) {
  const auto& s = State<Suppress>(call);
  auto* counts = static_cast<int64_t*>(call->scratch);
  char* memory = static_cast<char*>(call->scratch) + s.rows * static_cast<int64_t>(sizeof(int64_t));
  ParallelFor(call, s.lanes, s.rows / std::max<int64_t>(s.lanes, 1) * s.n * 16,
              [&](int64_t begin, int64_t end) {
                for (int64_t lane = begin; lane < end; lane++)
                  for (int64_t r = lane; r < s.rows && !Cancelled(call); r += s.lanes)
                    counts[r] = RunRow(call, s, r, memory + lane * s.lane_bytes);
              });
  if (Cancelled(call)) return KEEL_CANCELLED;
  int64_t *const found = Out<int64_t>(call, 0), total = 0;
  for (int64_t r = 0; r < s.rows; total += counts[r++])
    std::memmove(found + total * 3, found + r * s.size * 3,
                 static_cast<size_t>(counts[r]) * 3 * sizeof(int64_t));
  std::fill(found + total * 3, found + s.rows * s.size * 3, 0);
  *Out<int64_t>(call, 1) = total;
  return KEEL_OK;
}

keel_rc PrepareSuppress(const Node& node, keel_launch* launch) {
  const keel_tensor scores = node.In(1);
  Suppress s = {};
  s.classes = scores.shape[1], s.rows = scores.shape[0] * s.classes, s.n = scores.shape[2];
  if (s.n > UINT32_MAX) Throw(KEEL_UNIMPLEMENTED, "non_max_suppression of more than 2^32 boxes");
  s.size = node.Int("size"), s.center = node.Flag("center");
  s.lanes = std::min<int64_t>(Budget(), s.rows);
  s.lane_bytes = s.n * static_cast<int64_t>(sizeof(uint64_t)) + Chosen::Bytes(s.size);
  const auto bytes = s.rows * static_cast<int64_t>(sizeof(int64_t)) + s.lanes * s.lane_bytes;
  return Keep(launch, s, Guard<RunSuppress>, static_cast<uint64_t>(bytes));
}

constexpr keel_impl kImpls[] = {Impl("non_max_suppression", "heap of candidates", Prepare<PrepareSuppress>)};

}  // namespace

Impls SuppressImpls() { return kImpls; }

}  // namespace keel_cpu
