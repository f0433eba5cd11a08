// window.cc: reads strides, dilations, pads and auto_pad.
#include "plugins/onnx/ops/window.h"

namespace onnx_import {
namespace {

Ints per_dim(Call& c, const char* name, size_t rank) {
  const Ints list = c.ints(name, Ints(rank, 1));
  if (list.size() != rank) c.invalid(cat(name, " has ", list.size(), " entries for ", rank, " image dims"));
  for (int64_t n : list)
    if (n < 1 || n > INT32_MAX) c.invalid(cat(name, " has the entry ", n, "; expected 1 or more"));
  return list;
}

void explicit_pads(Call& c, Window& w) {
  const size_t rank = w.size.size();
  const Ints pads = c.ints("pads", Ints(2 * rank, 0));
  if (pads.size() != 2 * rank) c.invalid(cat("pads has ", pads.size(), " entries for ", rank, " image dims"));
  for (int64_t n : pads)
    if (n < INT32_MIN || n > INT32_MAX) c.invalid(cat("pads has the entry ", n));
  w.lo.assign(pads.begin(), pads.begin() + static_cast<ptrdiff_t>(rank));
  w.hi.assign(pads.begin() + static_cast<ptrdiff_t>(rank), pads.end());
}

// Padding for a result of the image's size divided by the stride, rounded up.
void same_pads(Call& c, Window& w, const Dims& image, bool upper) {
  Edit& e = c.e;
  for (size_t k = 0; k < image.size(); k++) {
    const keel_dim out = e.div(e.add(image[k], w.stride[k] - 1), w.stride[k]);
    const keel_dim reach = e.add(e.mul(e.sub(out, 1), w.stride[k]), w.span(k));
    keel_dim all = w.stride[k] == 1 ? w.span(k) - 1 : e.sub(reach, image[k]);
    if (!e.at_least(all, 0)) all = e.max(all, 0);
    const keel_dim less = e.div(all, 2), more = e.sub(all, less);
    w.lo.push_back(upper ? less : more);
    w.hi.push_back(upper ? more : less);
  }
}

}  // namespace

Window window(Call& c, const Dims& image, const Ints& size) {
  Window w;
  const size_t rank = image.size();
  if (size.size() != rank) c.invalid(cat("the window has ", size.size(), " dims but the image has ", rank));
  for (int64_t n : size)
    if (n < 1 || n > INT32_MAX) c.invalid(cat("the window has a dim of ", n));
  w.size = size;
  w.stride = per_dim(c, "strides", rank);
  w.dilation = per_dim(c, "dilations", rank);
  const std::string mode = c.s("auto_pad", "NOTSET");
  if (mode == "NOTSET")
    explicit_pads(c, w);
  else if (mode == "VALID")
    w.lo.assign(rank, 0), w.hi.assign(rank, 0);
  else if (mode == "SAME_UPPER" || mode == "SAME_LOWER")
    same_pads(c, w, image, mode == "SAME_UPPER");
  else
    c.invalid(cat("auto_pad is '", mode, "'"));
  return w;
}

}  // namespace onnx_import
