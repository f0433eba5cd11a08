// suppress.cc: non_max_suppression, which chooses the best of boxes that overlap. A row is one class of one
// batch. Its best candidates become a heap; boxes taken from it are compared with the chosen boxes, several
// at once. Only if they do not suffice, the other candidates follow.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/simd/simd.h"

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
float ScoreOf(uint64_t key) {
  const auto bits = static_cast<uint32_t>(key >> 32);
  return std::bit_cast<float>(bits >> 31 ? bits & 0x7fffffffu : ~bits);
}
int64_t PlaceOf(uint64_t key) { return UINT32_MAX - static_cast<uint32_t>(key); }

struct Suppress {
  int64_t classes, rows, n, size, lanes, lane_bytes;
  bool center;
};

// Whether a score is above `low`; NaN as `low`: any number is.
bool IsCandidate(float score, float low) { return !(score <= low) & (score == score); }

// Bit i: score i of n, at most kScores, is a candidate.
uint64_t CandidateBits(const float* scores, int64_t n, float low) {
  uint64_t bits = 0;
#if defined(__x86_64__)
  if (n == kScores) {
    const __m128 limit = _mm_set1_ps(low);
    for (int64_t i = 0; i < kScores; i += 4) {
      const __m128 x = _mm_loadu_ps(scores + i);
      const __m128 above = _mm_and_ps(_mm_cmpnle_ps(x, limit), _mm_cmpord_ps(x, x));
      bits |= static_cast<uint64_t>(_mm_movemask_ps(above)) << i;
    }
    return bits;
  }
#endif
  for (int64_t i = 0; i < n; i++) bits |= static_cast<uint64_t>(IsCandidate(scores[i], low)) << i;
  return bits;
}

// The candidates of a row whose keys are below `ceiling`: all, or, if there are more than twice `wanted`, at
// least the best `wanted`.
struct Candidates {
  uint64_t* end;
  uint64_t least = 0;  // all keys from here on to the ceiling are there; 0: all

  // Writes the keys.
  Candidates(const float* scores, int64_t n, float low, int64_t wanted, uint64_t ceiling, uint64_t* keys)
      : end(keys) {
    for (int64_t begin = 0; begin < n; begin += kScores) {
      uint64_t bits = CandidateBits(scores + begin, std::min(n - begin, kScores), low);
      for (; bits != 0; bits &= bits - 1) {
        const int64_t i = begin + std::countr_zero(bits);
        const uint64_t key = KeyOf(scores[i], i);
        *end = key;
        end += key < ceiling;
      }
      if (end - keys < 2 * wanted) continue;
      std::nth_element(keys, keys + wanted - 1, end, std::greater());
      end = keys + wanted;
      least = end[-1];
      low = ScoreOf(least);  // of equal scores a later one has a lower key
    }
  }
};

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
  int64_t wanted = std::max<int64_t>(4 * most, 256);
  for (uint64_t ceiling = most > 0 ? UINT64_MAX : 0; ceiling > 0; wanted = s.n) {
    auto [end, least] = Candidates(scores, s.n, low, wanted, ceiling, keys);
    std::make_heap(keys, end);
    while (chosen.Count() < most && end > keys && !Cancelled(call)) {
      std::pop_heap(keys, end);
      const int64_t place = PlaceOf(*--end);
      const Box box = BoxAt(In<float>(call, 0) + (batch * s.n + place) * 4, s.center);
      if (chosen.Overlaps(box, limit)) continue;
      chosen.Add(box);
      for (int64_t v : {batch, r % s.classes, place}) *found++ = v;
    }
    ceiling = chosen.Count() < most && !Cancelled(call) ? least : 0;
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
