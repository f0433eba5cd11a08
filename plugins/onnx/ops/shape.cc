// shape.cc: the same elements with other dims: Reshape, Squeeze, Transpose, Concat, Split, Expand ...
#include <algorithm>

#include "plugins/onnx/import/named.h"
#include "plugins/onnx/ops/strings.h"

namespace onnx_import {
namespace {

void reshape(Call& c) {
  const Dims dims = c.dims(0);
  Dims to = c.list(1);
  for (size_t k = 0; k < to.size(); k++) {
    if (to[k] != 0 || c.i("allowzero", 0)) continue;
    if (k >= dims.size())
      c.invalid(cat("shape has a 0 at index ", k, ", but the operand has ", dims.size(), " dims"));
    to[k] = dims[k];
  }
  c.done("reshape", {c.in(0)}, Attrs().dims("to", to));
}

void flatten(Call& c) {
  const int64_t rank = c.rank(0), axis = c.i("axis", 1);
  const auto at = static_cast<size_t>(axis == rank ? rank : c.axis(axis, rank));
  const Dims dims = c.dims(0);
  c.done("reshape", {c.in(0)}, Attrs().dims("to", {c.e.product(dims, 0, at), c.e.product(dims, at)}));
}

// Axes are an operand from opset 13 on, an attribute before.
bool axes_of(Call& c, Ints* axes) {
  const bool given = c.opset < 13 ? c.has_attribute("axes") : c.has(1);
  if (given) *axes = c.opset < 13 ? c.ints("axes") : c.numbers(1);
  return given;
}

void squeeze(Call& c) {
  Ints axes;
  const bool given = axes_of(c, &axes);
  const Dims dims = c.dims(0);
  for (auto& axis : axes) axis = c.axis(axis, c.rank(0));
  Dims to;
  for (size_t k = 0; k < dims.size(); k++) {
    const bool drop =
        given ? std::count(axes.begin(), axes.end(), static_cast<int64_t>(k)) > 0 : dims[k] == 1;
    if (drop && !KEEL_DIM_IS_HANDLE(dims[k]) && dims[k] != 1)
      c.invalid(cat("dim ", k, " has ", dims[k], " elements, so it cannot be squeezed"));
    if (!drop) to.push_back(dims[k]);
  }
  c.done("reshape", {c.in(0)}, Attrs().dims("to", to));
}

void unsqueeze(Call& c) {
  Ints axes;
  if (!axes_of(c, &axes)) c.invalid("operand or attribute 'axes' is missing");
  Dims to = c.dims(0);
  const auto rank = static_cast<int64_t>(to.size() + axes.size());
  for (auto& axis : axes) axis = c.axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) c.invalid("an axis is given twice");
  for (int64_t axis : axes) to.insert(to.begin() + axis, 1);
  c.done("reshape", {c.in(0)}, Attrs().dims("to", to));
}

void transpose(Call& c) {
  Ints perm = c.ints("perm", counting(0, c.rank(0)));
  if (!c.has_attribute("perm")) std::reverse(perm.begin(), perm.end());
  c.done("transpose", {c.in(0)}, Attrs().ints("perm", perm));
}

void concat(Call& c) {
  if (c.n_in() == 1) return c.alias(0, 0);
  for (size_t i = 0; i < c.n_in(); i++)
    if (holds_strings(c, i)) return concat_strings(c);
  c.done("concat", c.all(), Attrs().i("axis", c.axis(c.required("axis"), c.rank(0))));
}

void split_into(Call& c, const Dims& sizes) {
  if (sizes.size() != c.node.outputs.size())
    c.invalid(cat("there are ", sizes.size(), " sizes for ", c.node.outputs.size(), " results"));
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(0));
  const Ids parts = c.e.ops("split", {c.in(0)}, Attrs().dims("sizes", sizes).i("axis", axis),
                            static_cast<uint32_t>(sizes.size()), c.name);
  for (size_t k = 0; k < parts.size(); k++) c.set(k, parts[k]);
}

// Equal parts; from opset 18 on the last may be smaller.
void split_evenly(Call& c, int64_t parts) {
  const keel_dim size = c.dims(0)[static_cast<size_t>(c.axis(c.i("axis", 0), c.rank(0)))];
  if (parts < 1 || parts != static_cast<int64_t>(c.node.outputs.size()))
    c.invalid(cat("num_outputs is ", parts, " but there are ", c.node.outputs.size(), " results"));
  const keel_dim part = c.e.div(c.e.add(size, parts - 1), parts);
  Dims sizes(static_cast<size_t>(parts), part);
  sizes.back() = c.e.sub(size, c.e.mul(part, parts - 1));
  split_into(c, sizes);
}

void split(Call& c) {
  if (c.has(1)) return split_into(c, c.list(1));
  split_evenly(c, c.i("num_outputs", static_cast<int64_t>(c.node.outputs.size())));
}
void split_2(Call& c) {
  if (c.has_attribute("split")) return split_into(c, c.ints("split"));
  split_evenly(c, static_cast<int64_t>(c.node.outputs.size()));
}

void expand(Call& c) {
  const Dims to = broadcast(c.e, c.dims(0), c.list(1));
  c.done("broadcast_to", {c.in(0)}, Attrs().dims("dims", to));
}

void tile(Call& c) {
  const Dims& times = c.list(1);
  if (static_cast<int64_t>(times.size()) != c.rank(0))
    c.invalid(cat("repeats has ", times.size(), " entries but the operand has ", c.rank(0), " dims"));
  c.done("tile", {c.in(0)}, Attrs().dims("times", times));
}

// Shape and Size always fold, so a data node is only required for unknown dims.
void unknown_dims(Call& c) { c.unsupported("the dims of its operand are unknown"); }

keel_value permuted(Edit& e, keel_value x, const Dims& to, const Ints& perm) {
  return e.op("transpose", {e.reshape(x, to)}, Attrs().ints("perm", perm));
}

Dims image_dims(Call& c, int64_t* block) {
  const Dims d = c.dims(0);
  *block = c.required("blocksize");
  if (d.size() != 4 || *block < 1 || *block > (1 << 20))
    c.invalid("expected a 4-dimensional operand and a positive blocksize");
  return d;
}

bool dcr_mode(Call& c) {  // depth, column, row; or column, row, depth
  const std::string mode = c.s("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.invalid(cat("mode is '", mode, "'; expected DCR or CRD"));
  return mode == "DCR";
}

void depth_to_space(Call& c) {
  int64_t b = 0;
  const Dims d = image_dims(c, &b);
  const keel_dim depth = c.e.div(d[1], b * b);
  const bool dcr = dcr_mode(c);
  const Dims split = dcr ? Dims{d[0], b, b, depth, d[2], d[3]} : Dims{d[0], depth, b, b, d[2], d[3]};
  const keel_value y = permuted(c.e, c.in(0), split, dcr ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
  c.done("reshape", {y}, Attrs().dims("to", {d[0], depth, c.e.mul(d[2], b), c.e.mul(d[3], b)}));
}

void space_to_depth(Call& c) {
  int64_t b = 0;
  const Dims d = image_dims(c, &b);
  const keel_dim h = c.e.div(d[2], b), w = c.e.div(d[3], b);
  const Ints perm = dcr_mode(c) ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4};
  const keel_value y = permuted(c.e, c.in(0), {d[0], d[1], h, b, w, b}, perm);
  c.done("reshape", {y}, Attrs().dims("to", {d[0], c.e.mul(d[1], b * b), h, w}));
}

constexpr Rule kRules[] = {
    {"Reshape", 5, reshape, "allowzero", bit(1), true},
    {"Flatten", 1, flatten, "axis", 0, true},
    {"Squeeze", 13, squeeze, "", bit(1), true},
    {"Squeeze", 1, squeeze, "axes", 0, true},
    {"Unsqueeze", 13, unsqueeze, "", bit(1), true},
    {"Unsqueeze", 1, unsqueeze, "axes", 0, true},
    {"Transpose", 1, transpose, "perm", 0, true},
    {"Concat", 4, concat, "axis", 0, false, false, true},
    {"Split", 18, split, "axis num_outputs", bit(1), true},
    {"Split", 13, split, "axis", bit(1), true},
    {"Split", 2, split_2, "axis split", 0, true},
    {"Expand", 8, expand, "", bit(1), true},
    {"Tile", 6, tile, "", bit(1), true},
    {"Shape", 1, unknown_dims, "start end", 0, false, false, true},
    {"Size", 1, unknown_dims, "", 0, false, false, true},
    {"DepthToSpace", 1, depth_to_space, "blocksize mode", 0, true},
    {"SpaceToDepth", 1, space_to_depth, "blocksize mode", 0, true},
};

}  // namespace

Rules shape_rules() { return kRules; }

}  // namespace onnx_import
