// linear.cc: matrix products and convolutions.
#include <algorithm>
#include <numeric>

#include "plugins/onnx/export/window.h"

namespace onnx_export {

Ints inner(Call& c, uint32_t i) {
  Ints sizes;
  const Dims dims = c.dims(i);
  for (size_t d = 2; d < dims.size(); d++) {
    if (KEEL_DIM_IS_HANDLE(dims[d]))
      throw Refused{cat("a size of ", c.scope.text(dims[d]), ": not a number")};
    sizes.push_back(dims[d]);
  }
  return sizes;
}

Ints pads(const Ints& lo, const Ints& hi) {
  Ints all = lo;
  all.insert(all.end(), hi.begin(), hi.end());
  return all;
}

NodeAttrs window(Call& c, const Ints& kernel, const Ints& pads) {
  return NodeAttrs()
      .ints("kernel_shape", kernel)
      .ints("strides", c.numbers("stride"))
      .ints("dilations", c.numbers("dil"))
      .i("group", c.number("groups"))
      .ints("pads", pads);
}

void check_image(Call& c) {
  if (c.rank() < 3) throw Refused{"images without dims"};
  for (int64_t n : inner(c, 1))
    if (n == 0) throw Refused{"a window without elements"};
}

namespace {

std::string turned(Call& c, const std::string& x, int64_t rank) {
  Ints perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return c.add("Transpose", {x}, NodeAttrs().ints("perm", perm));
}

void matmul(Call& c) {
  const keel_dt own = c.dtype(), wide = wide_dtype(own);
  Names in = {c.in(0), c.in(1)};
  if (c.flag("ta")) in[0] = turned(c, in[0], c.rank(0));
  if (c.flag("tb")) in[1] = turned(c, in[1], c.rank(1));
  if (wide == own) return c.give("MatMul", in);
  for (std::string& each : in) each = c.cast(each, wide);
  c.give_cast(c.add("MatMul", in));
}

void conv(Call& c) {
  check_image(c);
  c.give("Conv", {c.in(0), c.in(1)}, window(c, inner(c, 1), pads(c.numbers("lo"), c.numbers("hi"))));
}

// ConvTranspose, whose pads cut its result: `cut` at the end, or zeros follow where the image was larger.
void conv_grad_x(Call& c) {
  check_image(c);
  const Ints small = inner(c, 0), kernel = inner(c, 1), lo = c.numbers("lo"), stride = c.numbers("stride"),
             dil = c.numbers("dil"), dims = c.numbers("dims");
  Ints cut, more(dims.size() * 2);
  for (size_t d = 0; d < small.size(); d++) {
    const int64_t rest = stride[d] * (small[d] - 1) + dil[d] * (kernel[d] - 1) + 1 - lo[d] - dims[d + 2];
    cut.push_back(std::max<int64_t>(rest, 0));
    more[dims.size() + 2 + d] = std::max<int64_t>(-rest, 0);
  }
  const Names in = {c.in(0), c.in(1)};
  NodeAttrs attrs = window(c, kernel, pads(lo, cut));
  if (std::all_of(more.begin(), more.end(), [](int64_t n) { return n == 0; }))
    return c.give("ConvTranspose", in, std::move(attrs));
  const std::string part = c.add("ConvTranspose", in, std::move(attrs));
  c.give("Pad", {part, c.ints(more), c.scalar(c.dtype(), 0)});
}

// x as images of its channels: [n, groups * g, ..] to [g, groups * n, ..]; dy [n, o, ..] to [o, n, ..] as the
// window. In them batch and channels change places, and so do strides and dilations.
void conv_grad_w(Call& c) {
  if (c.rank() < 3) throw Refused{"images without dims"};
  const Ints steps = inner(c, 0), image = inner(c, 1), stride = c.numbers("stride"), dil = c.numbers("dil"),
             lo = c.numbers("lo"), dims = c.numbers("dims");
  for (int64_t n : steps)
    if (n == 0) throw Refused{"of results without elements"};
  const auto rank = static_cast<int64_t>(steps.size() + 2);
  const int64_t groups = c.number("groups");
  const auto swapped = [rank] {  // batch and channels
    Ints perm(static_cast<size_t>(rank));
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[0], perm[1]);
    return NodeAttrs().ints("perm", perm);
  };
  Ints cut, end;
  bool shorter = false;  // the windows do not reach the end of the image
  for (size_t d = 0; d < steps.size(); d++) {
    const int64_t rest = dil[d] * (dims[d + 2] - 1) + stride[d] * (steps[d] - 1) + 1 - image[d] - lo[d];
    cut.push_back(std::max<int64_t>(rest, 0));
    end.push_back(image[d] + std::min<int64_t>(rest, 0));
    shorter |= rest < 0;
    if (end.back() < 1) throw Refused{"of an image that is all padding"};
  }
  std::string x = c.in(1), dy = c.add("Transpose", {c.in(0)}, swapped());
  if (shorter) {
    Ints axes(steps.size());
    std::iota(axes.begin(), axes.end(), 2);
    x = c.add("Slice", {x, c.ints(Ints(axes.size(), 0)), c.ints(end), c.ints(axes)});
  }
  if (groups == 1) {
    x = c.add("Transpose", {x}, swapped());
  } else {
    Ints apart = {-1, groups, dims[1]}, joined = {dims[1], -1};
    for (Ints* to : {&apart, &joined}) to->insert(to->end(), end.begin(), end.end());
    Ints perm(static_cast<size_t>(rank) + 1);
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[0], perm[2]);
    x = c.add("Reshape", {x, c.ints(apart)});
    x = c.add("Reshape", {c.add("Transpose", {x}, NodeAttrs().ints("perm", perm)), c.ints(joined)});
  }
  const std::string y = c.add("Conv", {x, dy},
                              NodeAttrs()
                                  .ints("kernel_shape", steps)
                                  .ints("strides", dil)
                                  .ints("dilations", stride)
                                  .i("group", groups)
                                  .ints("pads", pads(lo, cut)));
  c.give("Transpose", {y}, swapped());
}

constexpr Row kRows[] = {
    {"conv_grad_w", conv_grad_w}, {"matmul", matmul}, {"conv", conv}, {"conv_grad_x", conv_grad_x}};

}  // namespace

Rows linear_rows() { return kRows; }

}  // namespace onnx_export
