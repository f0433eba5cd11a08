// integer_pixels.cc: conv_integer on channels-last images with results' places as the lanes of vectors, for
// processors that add pairs of products to 16-bit integers only. The zero point of the images: see
// integer_images.cc.
#include "plugins/cpu/conv/integer_pixels.h"

#include <algorithm>
#include <optional>

#include "plugins/cpu/conv/cells.h"
#include "plugins/cpu/conv/integer.h"
#include "plugins/cpu/matmul/int8_pairs.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {
namespace {

constexpr int64_t kPanel = kMostVectors * kPlaces;
constexpr int64_t kMostShare = 3;  // with one extra group for three, 16-bit weights are as fast

int64_t DepthOf(const Conv& s) { return s.PerGroupIn() * s.w.Cells(s.w.window); }
int64_t GroupsOf(const Conv& s) { return (DepthOf(s) + 3) / 4; }
int64_t QuadsOf(const Conv& s) { return (s.PerGroupOut() + kQuad - 1) / kQuad; }
uint64_t QuadBytes(const Conv& s) {  // without extra groups
  return sizeof(WeightQuad) + static_cast<uint64_t>(GroupsOf(s) * kQuad) * 4;
}

// Calls f(group, weights) for the groups of four weights of channel o, in the order of a result's cells.
template <class F>
void EachGroup(const Conv& s, const std::vector<int16_t>& w, int64_t o, F&& f) {
  const int64_t in = s.PerGroupIn(), cells = s.w.Cells(s.w.window), depth = in * cells;
  for (int64_t g = 0; g < GroupsOf(s); g++) {
    int32_t four[4] = {};
    for (int64_t k = g * 4; k < std::min(depth, g * 4 + 4); k++)
      four[k % 4] = w[static_cast<size_t>((o * in + k % in) * cells + k / in)];
    f(g, four);
  }
}

int64_t CountExtras(const Conv& s, const std::vector<int16_t>& w) {
  int64_t count = 0;
  for (int64_t o = 0; o < s.o; o++)
    EachGroup(s, w, o, [&](int64_t, const int32_t* four) {
      count += FitsPair(four[0], four[1]) && FitsPair(four[2], four[3]) ? 0 : 1;
    });
  return count;
}

// A channel's groups, and extra groups with the second halves of pairs that do not fit.
void PackChannel(const Conv& s, const std::vector<int16_t>& w, int64_t o, int8_t* groups,
                 std::vector<ExtraWeights>* extras, int32_t* sum) {
  uint32_t all = 0;
  EachGroup(s, w, o, [&](int64_t g, const int32_t* four) {
    ExtraWeights extra = {static_cast<int32_t>(g * 32), {}};
    bool needed = false;
    for (int i = 0; i < 4; i++) {
      const bool fits = FitsPair(four[i & 2], four[i | 1]);
      const int32_t here = fits ? four[i] : four[i] / 2;
      groups[g * kQuad * 4 + i] = static_cast<int8_t>(here);
      extra.w[i] = static_cast<int8_t>(four[i] - here);
      needed |= !fits;
      all += static_cast<uint32_t>(four[i]);
    }
    if (needed) extras->push_back(extra);
  });
  *sum = static_cast<int32_t>(all);
}

struct Pixels {
  Conv s;
  int32_t zero = 0;  // of the flipped cells
  bool zero_varies = false;
  uint32_t flip = 0;  // moves signed cells into the range of unsigned ones
  const char* quads = nullptr;
  Int8Result result;
  int64_t parts = 1;  // of a group's channels, which do not share panels
  bool pointwise = false;
  const PixelLoopTable* loops = PixelLoops();

  bool IsInPlace() const { return pointwise && s.c % 4 == 0; }  // an image's rows of cells are whole groups
  bool IsBytes() const { return result.Bytes() == 1; }
  int64_t Results() const { return s.n * s.w.Cells(s.w.out); }
  int64_t Panels() const { return (Results() + kPanel - 1) / kPanel; }
  const char* Quad(int64_t q) const {
    int64_t at;
    std::memcpy(&at, quads + q * 8, sizeof at);
    return quads + at;
  }
};

int32_t ZeroOfCells(int32_t zero, uint32_t flip) { return zero + (flip == 0 ? 0 : 128); }

// The cells that a result of group g sees, in the order of the window.
void Gather(const Pixels& m, const char* x, int64_t result, int64_t g, char* to) {
  const Conv& s = m.s;
  const auto in = static_cast<size_t>(s.PerGroupIn());
  const int64_t step = s.w.dil[s.w.rank - 1], wide = s.PerGroupIn();
  const Place place = PlaceOf(s, result);
  x += place.image * s.w.Cells(s.w.image) * s.c + g * wide;
  EachRun(s.w, place, [&](int64_t cell, int64_t at, int64_t n) {
    char* into = to + cell * wide;
    const auto count = static_cast<size_t>(n);
    if (at < 0)
      std::memset(into, static_cast<int>(m.zero ^ static_cast<int32_t>(m.flip & 255)), count * in);
    else if (step == 1 && s.groups == 1)
      std::memcpy(into, x + at * s.c, count * in);
    else
      for (int64_t i = 0; i < n; i++) std::memcpy(into + i * wide, x + (at + i * step) * s.c, in);
  });
}

// The memory that a thread needs.
struct Workspace {
  Bytes rows, panel, made, sums;
  explicit Workspace(const Pixels& m)
      : rows(m.IsInPlace() ? nullptr : Allocate(static_cast<size_t>(kPanel * GroupsOf(m.s) * 4))),
        panel(Allocate(static_cast<size_t>(kPanel * GroupsOf(m.s) * 4))),
        made(Allocate(static_cast<size_t>(kPanel * QuadsOf(m.s) * 4 * (m.IsBytes() ? 1 : kQuad)))),
        sums(m.IsBytes() ? nullptr : Allocate(static_cast<size_t>(kPanel * QuadsOf(m.s) * kQuad * 4))) {}
};

PixelPanel PackPanel(const Pixels& m, const char* x, int64_t first, int64_t n, int64_t g,
                     const Workspace& own) {
  const int64_t groups = GroupsOf(m.s), vectors = (n + kPlaces - 1) / kPlaces, row = groups * 4;
  if (m.IsInPlace()) {
    m.loops->columns(x + first * row, row, n, groups, vectors, m.flip, own.panel.get());
  } else {
    for (int64_t i = 0; i < n; i++) {
      char* to = own.rows.get() + i * row;
      Gather(m, x, first + i, g, to);
      std::fill(to + DepthOf(m.s), to + row, 0);
    }
    m.loops->columns(own.rows.get(), row, n, groups, vectors, m.flip, own.panel.get());
  }
  return {own.panel.get(), vectors, groups, m.zero};
}

void RunPart(const keel_call* call, const Pixels& m, int64_t unit, const Workspace& own) {
  const int64_t part = unit % m.parts, g = unit / m.parts % m.s.groups, of = m.s.PerGroupOut();
  const int64_t first = unit / m.parts / m.s.groups * kPanel, n = std::min(kPanel, m.Results() - first);
  const int64_t quads = QuadsOf(m.s), begin = quads * part / m.parts, end = quads * (part + 1) / m.parts;
  const PixelPanel panel = PackPanel(m, In<char>(call, 0), first, n, g, own);
  const int64_t places = panel.vectors * kPlaces, channel = g * of + begin * kQuad,
                channels = std::min(end * kQuad, of) - begin * kQuad;
  char *y = Out<char>(call, 0) + static_cast<uint64_t>(first * m.s.o + channel) * m.result.Bytes(),
       *made = own.made.get();
  auto* numbers = reinterpret_cast<uint32_t*>(made);
  for (int64_t q = begin; q < end; q++) {
    const char* quad = m.Quad(g * quads + q);
    if (m.IsBytes())
      m.loops->bytes(panel, quad, m.result, g * of + q * kQuad, made + (q - begin) * places * 4);
    else
      m.loops->sums(panel, quad, made + (q - begin) * places * kQuad * 4);
  }
  if (m.IsBytes()) return m.loops->rows(numbers, panel.vectors, n, channels, y, m.s.o);
  m.loops->rows(numbers, panel.vectors, n, channels * 4, own.sums.get(), channels * 4);
  Int16Loops().finish(reinterpret_cast<int32_t*>(own.sums.get()), channels, n, channels, m.result, channel, y,
                      m.s.o);
}

keel_rc RunPixels(const keel_call* call) {
  std::optional<Pixels> own;
  if (State<Pixels>(call).zero_varies) {
    own = State<Pixels>(call);
    own->zero = ZeroOfCells(ZeroInCall(call, 1, own->flip != 0), own->flip);
  }
  const Pixels& m = own ? *own : State<Pixels>(call);
  const int64_t cost = kPanel * DepthOf(m.s) * m.s.PerGroupOut() / m.parts / 32;
  ParallelFor(call, m.Panels() * m.s.groups * m.parts, cost, [&](int64_t begin, int64_t end) {
    const Workspace own(m);
    for (int64_t u = begin; u < end; u++) RunPart(call, m, u, own);
  });
  return Done(call);
}

}  // namespace

uint64_t PixelPanelBytes(const Conv& s, const std::vector<int16_t>& w) {
  const bool bytes = std::ranges::all_of(w, [](int16_t x) { return x == static_cast<int8_t>(x); });
  if (PixelLoops() == nullptr || !bytes || (s.groups > 1 && s.PerGroupOut() < kQuad)) return 0;
  const int64_t extras = CountExtras(s, w), quads = s.groups * QuadsOf(s);
  if (extras * kMostShare > s.o * GroupsOf(s)) return 0;
  return static_cast<uint64_t>(quads) * (8 + QuadBytes(s)) +
         static_cast<uint64_t>(extras) * sizeof(ExtraWeights);
}

void PackPixelPanels(const Conv& s, const std::vector<int16_t>& w, char* to) {
  const int64_t quads = s.groups * QuadsOf(s);
  int64_t at = quads * 8;
  for (int64_t q = 0; q < quads; q++) {
    const int64_t g = q / QuadsOf(s), first = q % QuadsOf(s) * kQuad;
    std::memcpy(to + q * 8, &at, sizeof at);
    std::memset(to + at, 0, QuadBytes(s));
    WeightQuad head = {};
    std::vector<ExtraWeights> extras;
    auto* groups = reinterpret_cast<int8_t*>(to + at + sizeof head);
    for (int64_t c = 0; c < std::min(kQuad, s.PerGroupOut() - first); c++) {
      const size_t before = extras.size();
      PackChannel(s, w, g * s.PerGroupOut() + first + c, groups + c * 4, &extras, &head.sums[c]);
      head.extras[c] = static_cast<int32_t>(extras.size() - before);
    }
    std::memcpy(to + at, &head, sizeof head);
    at += static_cast<int64_t>(QuadBytes(s));
    std::memcpy(to + at, extras.data(), extras.size() * sizeof(ExtraWeights));
    at += static_cast<int64_t>(extras.size() * sizeof(ExtraWeights));
  }
}

void KeepIntegerPixels(const Conv& s, const IntegerWeights& weights, bool x_signed, const void* panels,
                       Int8Result result, keel_launch* launch) {
  constexpr int64_t kPerThread = 3;
  const uint32_t flip = x_signed ? 0x80808080u : 0;
  Pixels m = {s,    ZeroOfCells(weights.x_zero, flip), weights.x_zero_varies,
              flip, static_cast<const char*>(panels),  std::move(result)};
  m.pointwise = IsPointwise(s);
  for (auto* v : {&m.result.scale, &m.result.shift})
    v->resize(v->size() + kQuad);  // the last quad may be cut
  const int64_t units = std::max<int64_t>(m.Panels() * s.groups, 1), threads = Budget();
  if (threads > 1 && units < kPerThread * threads)
    m.parts = std::clamp<int64_t>((kPerThread * threads + units - 1) / units, 1, QuadsOf(s));
  Keep(launch, std::move(m), Guard<RunPixels>);
}

}  // namespace keel_cpu
