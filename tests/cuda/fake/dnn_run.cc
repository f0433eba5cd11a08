// dnn_run.cc: see dnn_run.h.
#include "dnn_run.h"

#include <algorithm>
#include <cstring>

#include "floats.h"

namespace {

constexpr int64_t kWorkspace = 4096, kAlignment = 16;
using Index = std::vector<int64_t>;

Float FloatOf(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE  ? Float::f64
         : type == CUDNN_DATA_FLOAT ? Float::f32
         : type == CUDNN_DATA_HALF  ? Float::f16
                                    : Float::bf16;
}

// The next index of those below the dims, in row-major order; false: there is none.
bool Next(Index* index, const int64_t* dims) {
  for (size_t d = index->size(); d-- > 0;) {
    if (++(*index)[d] < dims[d]) return true;
    (*index)[d] = 0;
  }
  return false;
}

struct Sums {
  const FakeRun& run;
  const FakeConvolution& c = run.convolution;
  size_t rank = c.lo.size();

  char* Address(const FakeTensor& t, int64_t first, int64_t second, const Index& rest) const {
    int64_t i = first * t.strides[0] + second * t.strides[1];
    for (size_t d = 0; d < rank; d++) i += rest[d] * t.strides[d + 2];
    return run.at.at(t.id) + i * t.size();
  }
  // The image's cell for a place and a tap; false: outside.
  bool CellOf(const Index& place, const Index& tap, Index* cell) const {
    bool inside = true;
    for (size_t d = 0; d < rank; d++) {
      const int64_t t = c.flips ? c.w.dims[d + 2] - 1 - tap[d] : tap[d];
      (*cell)[d] = place[d] * c.stride[d] + t * c.dilation[d] - c.lo[d];
      inside &= (*cell)[d] >= 0 && (*cell)[d] < c.x.dims[d + 2];
    }
    return inside;
  }
  // The place whose window has the cell at the tap; false: there is none.
  bool PlaceOf(const Index& cell, const Index& tap, Index* place) const {
    bool inside = true;
    for (size_t d = 0; d < rank; d++) {
      const int64_t t = c.flips ? c.w.dims[d + 2] - 1 - tap[d] : tap[d];
      const int64_t from = cell[d] + c.lo[d] - t * c.dilation[d];
      (*place)[d] = from / c.stride[d];
      inside &= from >= 0 && from % c.stride[d] == 0 && (*place)[d] < c.y.dims[d + 2];
    }
    return inside;
  }

  // The sum of n products of elements that are `step` apart; b NULL: of zeros. Like the kernels of the real
  // library, it multiplies by zeros for cells outside.
  double Dot(const FakeTensor& of_a, const char* a, int64_t step_a, const FakeTensor& of_b, const char* b,
             int64_t step_b, int64_t n) const {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
      sum +=
          Element(of_a, a + i * step_a * of_a.size()) * (b ? Element(of_b, b + i * step_b * of_b.size()) : 0);
    return sum;
  }
  double Element(const FakeTensor& of, const char* at) const {
    const double v = LoadFloat(FloatOf(of.type), at);
    return run.engine.rounds ? ToTf32(static_cast<float>(v)) : v;
  }
  double Forward(int64_t image, int64_t out, const Index& place) const {
    const int64_t ins = c.w.dims[1], first = out / (c.w.dims[0] / c.groups()) * ins;
    double sum = 0;
    Index cell(rank), tap(rank);
    do {
      const bool inside = CellOf(place, tap, &cell);
      sum += Dot(c.w, Address(c.w, out, 0, tap), c.w.strides[1], c.x,
                 inside ? Address(c.x, image, first, cell) : nullptr, c.x.strides[1], ins);
    } while (Next(&tap, &c.w.dims[2]));
    return sum;
  }
  double ForImage(int64_t image, int64_t channel, const Index& cell) const {
    const int64_t ins = c.w.dims[1], outs = c.w.dims[0] / c.groups(), first = channel / ins * outs;
    double sum = 0;
    Index place(rank), tap(rank);
    do {
      const bool inside = PlaceOf(cell, tap, &place);
      sum += Dot(c.w, Address(c.w, first, channel % ins, tap), c.w.strides[0], c.y,
                 inside ? Address(c.y, image, first, place) : nullptr, c.y.strides[1], outs);
    } while (Next(&tap, &c.w.dims[2]));
    return sum;
  }
  double ForWeights(int64_t out, int64_t in, const Index& tap) const {
    const int64_t channel = out / (c.w.dims[0] / c.groups()) * c.w.dims[1] + in;
    double sum = 0;
    Index place(rank), cell(rank);
    do {
      const bool inside = CellOf(place, tap, &cell);
      sum += Dot(c.y, Address(c.y, 0, out, place), c.y.strides[0], c.x,
                 inside ? Address(c.x, 0, channel, cell) : nullptr, c.x.strides[0], c.x.dims[0]);
    } while (Next(&place, &c.y.dims[2]));
    return sum;
  }
  double One(const Index& at) const {
    const Index rest(at.begin() + 2, at.end());
    return c.kind == 0   ? Forward(at[0], at[1], rest)
           : c.kind == 1 ? ForImage(at[0], at[1], rest)
                         : ForWeights(at[0], at[1], rest);
  }
};

}  // namespace

int64_t FakeTensor::size() const { return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2; }

bool FakeConvolution::IsValid() const {
  const size_t rank = lo.size();
  for (const FakeTensor* t : {&x, &w, &y})
    if (t->dims.size() != rank + 2 || t->type != x.type) return false;
  bool valid = (rank == 2 || rank == 3) && hi.size() == rank && stride.size() == rank &&
               dilation.size() == rank &&
               compute == (x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT) &&
               x.dims[1] % w.dims[1] == 0 && w.dims[0] % groups() == 0 && y.dims[0] == x.dims[0] &&
               y.dims[1] == w.dims[0];
  for (size_t d = 0; valid && d < rank; d++) {
    const int64_t rest = x.dims[d + 2] + lo[d] + hi[d] - (w.dims[d + 2] - 1) * dilation[d] - 1;
    valid = rest >= 0 && y.dims[d + 2] == rest / stride[d] + 1;
  }
  return valid;
}

std::vector<Engine> Engines(const FakeConvolution& c, cudnnBackendHeurMode_t mode) {
  if (mode == CUDNN_HEUR_MODE_FALLBACK) return {{{CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, 0, false, 1}};
  if (c.x.type == CUDNN_DATA_DOUBLE) return {{{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 0, false, 1.25}};
  const bool is_half = c.x.size() == 2;
  std::vector<Engine> all = {
      {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, 0, false, 1.25},
      {{CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4}, 0, false, 1.25},
      {{CUDNN_NUMERICAL_NOTE_FFT}, 0, false, 1.25},
      {{CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, 0, false, 1.25},
      {{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 0, false, 1.25},
      {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 0, is_half, 1, true},
      {{}, int64_t{1} << 40, false, 1.25},
      {{}, 0, true, 1.25}};
  all.push_back({{}, kWorkspace, false, 1});
  if (is_half) all.back().notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  return all;
}

bool FakeRun::IsComplete() const {
  for (const FakeTensor* t : {&convolution.x, &convolution.w, &convolution.y}) {
    const auto found = at.find(t->id);
    if (found == at.end() || !found->second || reinterpret_cast<uintptr_t>(found->second) % kAlignment)
      return false;
  }
  return at.size() == 3 && (workspace || !engine.workspace);
}

void FakeRun::Run() {
  if (engine.workspace) std::memset(workspace, 0xa7, static_cast<size_t>(engine.workspace));
  const FakeConvolution& c = convolution;
  const Sums sums{*this};
  const FakeTensor& result = c.result();
  Index index(result.dims.size());
  do {
    char* to = sums.Address(result, index[0], index[1], {index.begin() + 2, index.end()});
    const double before = c.beta == 0 ? 0 : c.beta * LoadFloat(FloatOf(result.type), to);
    StoreFloat(FloatOf(result.type), to, engine.factor * c.alpha * sums.One(index) + before);
  } while (Next(&index, result.dims.data()));
}
