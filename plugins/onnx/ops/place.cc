// place.cc: elements moved to computed places: Col2Im, MaxUnpool, CenterCropPad, ReverseSequence,
// TensorScatter.
#include <algorithm>

#include "plugins/onnx/ops/lengths.h"

namespace onnx_import {
namespace {

// Each column is a block of the image; blocks that overlap are added up.
void col2im(Call& c) {
  Edit& e = c.e;
  const Dims image = c.list(1), d = c.dims(0);
  const Ints block = c.numbers(2);
  const size_t n = image.size();
  const Ints stride = c.ints("strides", Ints(n, 1)), dilation = c.ints("dilations", Ints(n, 1)),
             pads = c.ints("pads", Ints(2 * n, 0));
  if (d.size() != 3 || n == 0 || block.size() != n || stride.size() != n || dilation.size() != n ||
      pads.size() != 2 * n)
    c.invalid(
        cat("its operands and attributes do not fit an image of ", n, " dims and columns [n, c, blocks]"));
  Dims padded, grid(2 * n), start, stop;  // grid: cells of a block, then blocks
  for (size_t k = 0; k < n; k++) {
    if (block[k] < 1 || stride[k] < 1 || dilation[k] < 1 || pads[k] < 0 || pads[k + n] < 0)
      c.invalid("block_shape, strides and dilations must be positive, pads not negative");
    const keel_dim size = e.add(e.add(image[k], pads[k]), pads[k + n]);
    padded.push_back(size);
    start.push_back(pads[k]), stop.push_back(e.add(image[k], pads[k]));
    grid[k] = block[k];
    grid[k + n] = e.add(e.div(e.sub(size, e.add(e.mul(dilation[k], block[k] - 1), 1)), stride[k]), 1);
  }
  Term at = Term(e, e.scalar(KEEL_I64, 0)).broadcast(grid);
  for (size_t k = 0; k < n; k++) {
    const Term place =
        counting_term(e, grid, static_cast<int64_t>(k), KEEL_I64) * static_cast<double>(dilation[k]) +
        counting_term(e, grid, static_cast<int64_t>(k + n), KEEL_I64) * static_cast<double>(stride[k]);
    at = at * at.size(padded[k]) + place;
  }
  const keel_dim cells = e.product(block), channels = e.div(d[1], cells), all = e.mul(cells, d[2]);
  const Term u = Term(c, 0).reshape({d[0], channels, all});
  Term y = at.reshape({all}).op("scatter_add", u, Attrs().i("axis", 2).dim("size", e.product(padded)));
  Dims to = {d[0], channels};
  to.insert(to.end(), padded.begin(), padded.end());
  y = y.reshape(to);
  for (size_t k = 0; k < n; k++) y = y.slice(k + 2, start[k], stop[k]);
  c.set(0, y.v);
}

// The inverse of MaxPool with indices, which count elements of the image that the window implies.
void max_unpool(Call& c) {
  Edit& e = c.e;
  const Dims d = c.dims(0);
  const Ints size = c.ints("kernel_shape");
  const size_t n = size.size();
  const Ints stride = c.ints("strides", Ints(n, 1)), pads = c.ints("pads", Ints(2 * n, 0));
  if (n == 0 || d.size() != n + 2 || stride.size() != n || pads.size() != 2 * n)
    c.invalid(cat("its attributes do not fit an operand of ", d.size(), " dims"));
  Dims image = {d[0], d[1]};
  for (size_t k = 0; k < n; k++)
    image.push_back(e.sub(e.sub(e.add(e.mul(e.sub(d[k + 2], 1), stride[k]), size[k]), pads[k]), pads[k + n]));
  const keel_dim count = e.product(d);
  const Term zeros = filled(e, c.dtype(0), 0, {e.product(image)});
  const keel_value y =
      e.op("scatter_nd", {zeros.v, Term(c, 1).reshape({count, 1}).v, Term(c, 0).reshape({count}).v});
  if (!c.has(2)) return c.set(0, e.reshape(y, image));
  const Dims out = c.list(2);
  if (out.size() != image.size())
    c.invalid(cat("output_shape has ", out.size(), " entries; expected ", n + 2));
  Dims hi;
  for (size_t k = 0; k < out.size(); k++) hi.push_back(e.sub(out[k], image[k]));
  c.done("pad", {e.reshape(y, image), e.scalar(c.dtype(0), 0)}, Attrs().dims("hi", hi));
}

// Crops or pads around the centre; an odd rest is at the end.
void center_crop_pad(Call& c) {
  Edit& e = c.e;
  const Dims d = c.dims(0), shape = c.list(1);
  const Ints axes = c.ints("axes", counting(0, c.rank(0)));
  if (axes.size() != shape.size())
    c.invalid(cat("shape has ", shape.size(), " entries for ", axes.size(), " axes"));
  Dims start(d.size(), 0), stop = d, lo(d.size(), 0), hi(d.size(), 0);
  for (size_t k = 0; k < axes.size(); k++) {
    const auto axis = static_cast<size_t>(c.axis(axes[k], c.rank(0)));
    const keel_dim crop = e.max(e.sub(d[axis], shape[k]), 0), grow = e.max(e.sub(shape[k], d[axis]), 0);
    start[axis] = e.div(crop, 2), stop[axis] = e.sub(d[axis], e.sub(crop, start[axis]));
    lo[axis] = e.div(grow, 2), hi[axis] = e.sub(grow, lo[axis]);
  }
  const Term x = Term(c, 0).op("slice", Attrs().dims("start", start).dims("stop", stop));
  c.done("pad", {x.v, e.scalar(c.dtype(0), 0)}, Attrs().dims("lo", lo).dims("hi", hi));
}

// x with elements along an axis picked by `index`, which has x's dims.
Term picked(const Term& x, const Term& index, size_t axis) {
  return x.op("gather_elements", index, Attrs().i("axis", static_cast<int64_t>(axis)));
}

Dims only(size_t rank, size_t axis, keel_dim size) {
  Dims d(rank, 1);
  d.at(axis) = size;
  return d;
}

void reverse_sequence(Call& c) {
  const Dims d = c.dims(0);
  const auto batch = static_cast<size_t>(c.axis(c.i("batch_axis", 1), c.rank(0))),
             time = static_cast<size_t>(c.axis(c.i("time_axis", 0), c.rank(0)));
  if (batch == time) c.invalid("batch_axis and time_axis are equal");
  const Term length =
      checked_lengths(c, 1, KEEL_I64, d[batch], d[time]).reshape(only(d.size(), batch, d[batch]));
  const Term at = counting_term(c.e, d, static_cast<int64_t>(time), KEEL_I64);
  const Term index = select(at < length, length - 1 - at, at);
  c.set(0, picked(Term(c, 0), index, time).v);
}

// The update at positions from write_indices[b] on, for batch b; circular: modulo the length.
void tensor_scatter(Call& c) {
  Edit& e = c.e;
  const Dims d = c.dims(0), u = c.dims(1);
  const auto axis = static_cast<size_t>(c.axis(c.i("axis", -2), c.rank(0)));
  const std::string mode = c.s("mode", "linear");
  if (mode != "linear" && mode != "circular")
    c.invalid(cat("mode is '", mode, "'; expected linear or circular"));
  if (u.size() != d.size()) c.invalid(cat("update has ", u.size(), " dims; expected ", d.size()));
  if (axis == 0) c.invalid("axis is 0, which is the batch");
  Term at = counting_term(e, d, static_cast<int64_t>(axis), KEEL_I64);
  if (c.has(2)) at = at - Term(c, 2).to(KEEL_I64).reshape(only(d.size(), 0, d[0]));
  if (mode == "circular") at = at.op("mod", at.size(d[axis]));
  const Term inside = (at < at.n(0)).op("logical_not") & (at < at.size(u[axis]));
  const Term index = at.clamp(at.n(0), at.size(e.sub(u[axis], 1)));
  c.set(0, select(inside, picked(Term(c, 1), index, axis), Term(c, 0)).v);
}

constexpr Rule kRules[] = {
    {"Col2Im", 18, col2im, "dilations pads strides", bit(1) | bit(2)},
    {"MaxUnpool", 9, max_unpool, "kernel_shape pads strides", bit(2)},
    {"CenterCropPad", 18, center_crop_pad, "axes", bit(1)},
    {"ReverseSequence", 10, reverse_sequence, "batch_axis time_axis", 0, true},
    {"TensorScatter", 24, tensor_scatter, "axis mode"},
};

}  // namespace

Rules place_rules() { return kRules; }

}  // namespace onnx_import
