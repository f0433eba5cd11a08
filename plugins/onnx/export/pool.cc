// pool.cc: pooling. ONNX Runtime wants pads smaller than the window, so larger ones become a Pad.
#include <algorithm>
#include <limits>

#include "plugins/onnx/export/call.h"

namespace onnx_export {
namespace {

struct Window {
  Ints size, stride, dil, lo, hi, over;
  explicit Window(Call& c)
      : size(c.numbers("window")),
        stride(c.numbers("stride")),
        dil(c.numbers("dil")),
        lo(c.numbers("lo")),
        hi(c.numbers("hi")),
        over(size.size()) {
    if (size.empty()) throw Refused{"images without dims"};
  }
  bool fits() const {  // the pads
    for (size_t d = 0; d < size.size(); d++)
      if (lo[d] >= size[d] || hi[d] + over[d] >= size[d]) return false;
    return true;
  }
  NodeAttrs attrs() const {
    Ints pads = lo;
    for (size_t d = 0; d < size.size(); d++) pads.push_back(hi[d] + over[d]);
    return NodeAttrs()
        .ints("kernel_shape", size)
        .ints("strides", stride)
        .ints("dilations", dil)
        .ints("pads", pads);
  }
  // lo and hi become elements of the image. (Not by Pad, which ONNX Runtime merges into the pool.)
  std::string padded(Call& c, std::string x, const std::string& value) {
    Dims dims = c.dims();
    for (size_t d = 0; d < size.size(); d++) {
      const auto axis = static_cast<int64_t>(d) + 2;
      Names parts;
      for (int64_t n : {lo[d], int64_t{-1}, hi[d]}) {
        Dims part = dims;
        part[d + 2] = n;
        if (n != 0) parts.push_back(n < 0 ? x : c.add("Expand", {value, c.scope.shape(part)}));
      }
      if (parts.size() > 1) x = c.add("Concat", parts, NodeAttrs().i("axis", axis));
      dims[d + 2] = c.scope.sum(dims[d + 2], lo[d] + hi[d]);
      lo[d] = hi[d] = 0;
    }
    return x;
  }
};

// A dtype that MaxPool takes and that holds all numbers of this one; 64-bit integers have none.
keel_dt of_pool(keel_dt t) {
  if (is_float(t) || t == KEEL_I8 || t == KEEL_U8) return t;
  if (dtype_bits(t) == 16) return KEEL_F32;
  if (dtype_bits(t) == 32) return KEEL_F64;
  throw Refused{"of 64-bit integers"};
}

// 1 where x is NaN, which wins in Keel; ONNX leaves it open. A window of padding alone has less than 0.
std::string nan_mask(Call& c, const std::string& x) { return c.cast(c.add("IsNaN", {x}), KEEL_F32); }
std::string is_one(Call& c, const std::string& x) { return c.add("Greater", {x, c.scalar(KEEL_F32, 0)}); }

void max_pool(Call& c) {
  Window w(c);
  const keel_dt own = c.dtype(), t = of_pool(own);
  std::string x = own == t ? c.in(0) : c.cast(c.in(0), t);
  const double least = is_float(t) ? -std::numeric_limits<double>::infinity() : t == KEEL_I8 ? -128 : 0;
  if (!w.fits()) {
    if (own != t) throw Refused{"of integers with a padding as wide as the window"};
    x = w.padded(c, x, c.scalar(t, least));
  }
  if (own != t) return c.give_cast(c.add("MaxPool", {x}, w.attrs()));
  if (!is_float(t)) return c.give("MaxPool", {x}, w.attrs());
  const std::string nan = c.scalar(t, std::numeric_limits<double>::quiet_NaN());
  const std::string any = is_one(c, c.add("MaxPool", {nan_mask(c, x)}, w.attrs()));
  c.give("Where", {any, nan, c.add("MaxPool", {x}, w.attrs())});
}

void max_pool_index(Call& c) {
  Window w(c);
  const keel_dt own = c.dtype(), t = dtype_bits(own) == 16 ? keel_dt{KEEL_F32} : of_pool(own);
  if (!w.fits()) throw Refused{"with a padding as wide as the window"};
  const std::string x = own == t ? c.in(0) : c.cast(c.in(0), t);
  auto pooled = [&](const std::string& of) {
    return c.scope.add_many("MaxPool", {of}, w.attrs().i("storage_order", c.flag("column_major")), 2);
  };
  const std::string index = pooled(x)[1];
  if (!is_float(own)) return c.give(index);
  const Names nan = pooled(nan_mask(c, x));
  c.give("Where", {is_one(c, nan[0]), nan[1], index});
}

// Counted padding is zeros of the image; cells of `over` never count. Without it, no cell of lo and hi does.
void avg_pool(Call& c) {
  Window w(c);
  w.over = c.numbers("over");
  std::string x = c.in(0);
  const bool counts = c.flag("count_pad");
  const bool over = std::any_of(w.over.begin(), w.over.end(), [](int64_t n) { return n != 0; });
  if (counts && (over || !w.fits())) x = w.padded(c, x, c.scalar(c.dtype(), 0));
  if (!w.fits()) throw Refused{"with a padding as wide as the window"};
  c.give("AveragePool", {x}, w.attrs().i("count_include_pad", counts && !over));
}

constexpr Row kRows[] = {{"max_pool", max_pool}, {"max_pool_index", max_pool_index}, {"avg_pool", avg_pool}};

}  // namespace

Rows pool_rows() { return kRows; }

}  // namespace onnx_export
