// shape.cc: ops that create and move elements without computing.
//
// Most ops are a view, "element at index of y is x at base + index . strides", which copy_view() copies; they
// use the width of the dtype only. Ops with index operands are in gather.cc.
#include <cstring>

#include "call.h"
#include "families.h"

namespace reference {
namespace {

const char* in_bytes(const keel_call& c, int i) { return in<char>(c, i); }
char* out_bytes(const keel_call& c, int i = 0) { return out<char>(c, i); }
int64_t width_of(const keel_call& c) { return static_cast<int64_t>(width(*c.out[0])); }

keel_rc copy_view(const keel_call& c, int64_t base, const Dims& strides) {
  const int64_t w = width_of(c);
  const char* x = in_bytes(c, 0);
  char* y = out_bytes(c);
  for (Odometer o(dims_of(*c.out[0])); o.valid(); o.next(), y += w) {
    std::memcpy(y, x + (base + dot(o.index, strides)) * w, static_cast<size_t>(w));
  }
  return KEEL_OK;
}

// ---- creating

keel_rc fill(const keel_call& c) {
  Dims still = dims_of(*c.out[0]);
  for (int64_t& step : still.v) step = 0;
  return copy_view(c, 0, still);
}

struct AxisState {
  int64_t axis;
  void read(Attributes& a) { axis = a.i64("axis"); }
};
keel_rc iota(const AxisState& s, const keel_call& c) {
  return typed<Any>(c, keel_dt_of(c.out[0]), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = out<T>(c);
    for (Odometer o(dims_of(*c.out[0])); o.valid(); o.next()) *y++ = convert<T>(o.index[s.axis]);
    return KEEL_OK;
  });
}

struct DimState {
  int64_t of;
  void read(Attributes& a) { of = a.i64("of"); }
};
keel_rc dim(const DimState& s, const keel_call& c) {
  return typed<Any>(c, keel_dt_of(c.out[0]), [&](auto tag) {
    using T = typename decltype(tag)::type;
    *out<T>(c) = convert<T>(s.of);
    return KEEL_OK;
  });
}

// ---- moving

keel_rc copy(const keel_call& c) {
  const size_t size = static_cast<size_t>(keel_bytes(keel_dt_of(c.out[0]), keel_count(c.out[0])));
  if (size != 0) std::memmove(out_bytes(c), in_bytes(c, 0), size);  // may be the same memory
  return KEEL_OK;
}

keel_rc broadcast_to(const keel_call& c) {
  return copy_view(c, 0, broadcast_strides(dims_of(*c.in[0]), dims_of(*c.out[0])));
}

struct PermState {
  Dims perm;
  void read(Attributes& a) { perm = a.list("perm"); }
};
keel_rc transpose(const PermState& s, const keel_call& c) {
  const Dims from = strides_of(dims_of(*c.in[0]));
  Dims strides = from;
  for (int32_t d = 0; d < from.n; ++d) strides[d] = from[s.perm[d]];
  return copy_view(c, 0, strides);
}

struct SliceState {
  Dims start, step;
  void read(Attributes& a) {
    start = a.list("start");
    step = a.list("step");
  }
};
keel_rc slice(const SliceState& s, const keel_call& c) {
  Dims strides = strides_of(dims_of(*c.in[0]));
  const int64_t base = dot(s.start, strides);
  for (int32_t d = 0; d < strides.n; ++d) strides[d] *= s.step[d];
  return copy_view(c, base, strides);
}

struct AxesState {
  Dims axes;
  void read(Attributes& a) { axes = a.list("axes"); }
};
keel_rc reverse(const AxesState& s, const keel_call& c) {
  const Dims dims = dims_of(*c.in[0]);
  Dims strides = strides_of(dims);
  int64_t base = 0;
  for (int32_t i = 0; i < s.axes.n; ++i) {
    const int64_t d = s.axes[i];
    base += (dims[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return copy_view(c, base, strides);
}

keel_rc tile(const keel_call& c) {
  const Dims from = dims_of(*c.in[0]), strides = strides_of(from);
  const int64_t w = width_of(c);
  char* y = out_bytes(c);
  for (Odometer o(dims_of(*c.out[0])); o.valid(); o.next(), y += w) {
    Dims source = o.index;
    for (int32_t d = 0; d < from.n; ++d) source[d] %= from[d];
    std::memcpy(y, in_bytes(c, 0) + dot(source, strides) * w, static_cast<size_t>(w));
  }
  return KEEL_OK;
}

struct PadState {
  Dims lo, gap;
  void read(Attributes& a) {
    lo = a.list("lo");
    gap = a.list("gap");
  }
};
keel_rc pad(const PadState& s, const keel_call& c) {
  const int64_t w = width_of(c), total = keel_count(c.out[0]);
  const Dims strides = strides_of(dims_of(*c.out[0]));
  const char* x = in_bytes(c, 0);
  char* y = out_bytes(c);
  for (int64_t i = 0; i < total; ++i) std::memcpy(y + i * w, in_bytes(c, 1), static_cast<size_t>(w));
  for (Odometer o(dims_of(*c.in[0])); o.valid(); o.next(), x += w) {
    Dims place = o.index;
    for (int32_t d = 0; d < place.n; ++d) place[d] = s.lo[d] + place[d] * (s.gap[d] + 1);
    std::memcpy(y + dot(place, strides) * w, x, static_cast<size_t>(w));
  }
  return KEEL_OK;
}

// A tensor viewed as [outer, n at axis, inner].
struct Split3 {
  int64_t outer, n, inner;
  Split3(const Dims& d, int64_t axis)
      : outer(product(part(d, 0, axis))), n(d[axis]), inner(product(part(d, axis + 1, d.n))) {}
};
// Copies all of `piece` from or to `whole`, from index `start` along the axis.
enum class Direction { kIntoWhole, kOutOfWhole };
void copy_piece(Direction direction, char* whole, const Split3& w, char* piece, const Split3& p,
                int64_t start, int64_t width) {
  const size_t bytes = static_cast<size_t>(p.n * p.inner * width);
  if (bytes == 0) return;
  for (int64_t o = 0; o < p.outer; ++o) {
    char* at = whole + (o * w.n + start) * w.inner * width;
    char* row = piece + o * p.n * p.inner * width;
    if (direction == Direction::kIntoWhole) std::memcpy(at, row, bytes);
    if (direction == Direction::kOutOfWhole) std::memcpy(row, at, bytes);
  }
}
keel_rc concat(const AxisState& s, const keel_call& c) {
  const Split3 whole(dims_of(*c.out[0]), s.axis);
  int64_t start = 0;
  for (int i = 0; i < c.n_in; ++i) {
    const Split3 piece(dims_of(*c.in[i]), s.axis);
    char* x = static_cast<char*>(keel_ptr(c.in[i]));
    copy_piece(Direction::kIntoWhole, out_bytes(c), whole, x, piece, start, width_of(c));
    start += piece.n;
  }
  return KEEL_OK;
}
keel_rc split(const AxisState& s, const keel_call& c) {
  const Split3 whole(dims_of(*c.in[0]), s.axis);
  char* x = static_cast<char*>(keel_ptr(c.in[0]));
  int64_t start = 0;
  for (int i = 0; i < c.n_out; ++i) {
    const Split3 piece(dims_of(*c.out[i]), s.axis);
    copy_piece(Direction::kOutOfWhole, x, whole, out_bytes(c, i), piece, start, width_of(c));
    start += piece.n;
  }
  return KEEL_OK;
}

struct TriangleState {
  bool upper;
  int64_t k;
  void read(Attributes& a) {
    upper = a.boolean("upper");
    k = a.i64("k");
  }
};
keel_rc triangle(const TriangleState& s, const keel_call& c) {
  const int64_t w = width_of(c);
  const char* x = in_bytes(c, 0);
  char* y = out_bytes(c);
  for (Odometer o(dims_of(*c.out[0])); o.valid(); o.next(), x += w, y += w) {
    const int64_t diagonal = o.index[o.index.n - 1] - o.index[o.index.n - 2];
    if (s.upper ? diagonal >= s.k : diagonal <= s.k) {
      std::memmove(y, x, static_cast<size_t>(w));
    } else {
      std::memset(y, 0, static_cast<size_t>(w));
    }
  }
  return KEEL_OK;
}

constexpr uint32_t kAny = KEEL_IMPL_ANY_DIMS;
constexpr keel_impl kImpls[] = {
    row<fill>(REFERENCE_OP("fill")),
    row<AxisState, iota>(REFERENCE_OP("iota"), kAny),
    row<DimState, dim>(REFERENCE_OP("dim"), 0),
    row<copy>(REFERENCE_OP("identity"), kAny | KEEL_IMPL_INPLACE),
    row<copy>(REFERENCE_OP("stop_gradient"), kAny | KEEL_IMPL_INPLACE),
    row<copy>(REFERENCE_OP("reshape"), kAny | KEEL_IMPL_INPLACE),
    row<broadcast_to>(REFERENCE_OP("broadcast_to")),
    row<PermState, transpose>(REFERENCE_OP("transpose"), kAny),
    row<AxisState, concat>(REFERENCE_OP("concat"), kAny),
    row<AxisState, split>(REFERENCE_OP("split"), kAny),
    row<SliceState, slice>(REFERENCE_OP("slice"), 0),
    row<PadState, pad>(REFERENCE_OP("pad"), 0),
    row<AxesState, reverse>(REFERENCE_OP("reverse"), kAny),
    row<tile>(REFERENCE_OP("tile")),
    row<TriangleState, triangle>(REFERENCE_OP("triangle"), kAny | KEEL_IMPL_INPLACE),
};

}  // namespace

std::span<const keel_impl> shape_impls() { return kImpls; }

}  // namespace reference
