// index.cc: the Gather and Scatter families. ONNX indices may be negative (from the end), Keel's may not:
// they are converted unless known to be non-negative.
#include "plugins/onnx/import/named.h"

namespace onnx_import {
namespace {

keel_value forward(Call& c, size_t i, keel_dim size) {
  if (never_negative(c, i)) return c.in(i);
  return negative_index(c.e, c.in(i), c.e.number(size, c.dtype(i)));
}

void gather(Call& c) {
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(0));
  const keel_value index = forward(c, 1, c.dims(0)[static_cast<size_t>(axis)]);
  c.done("gather", {c.in(0), index}, Attrs().i("axis", axis));
}

void gather_elements(Call& c) {
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(0));
  const keel_value index = forward(c, 1, c.dims(0)[static_cast<size_t>(axis)]);
  c.done("gather_elements", {c.in(0), index}, Attrs().i("axis", axis));
}

// Rows of indices: entry k of a row refers to dim batch + k.
keel_value forward_rows(Call& c, size_t i, int64_t batch) {
  if (never_negative(c, i)) return c.in(i);
  const Dims dims = c.dims(0), rows = c.dims(i);
  if (rows.empty() || KEEL_DIM_IS_HANDLE(rows.back()))
    c.unsupported("the length of an index row is symbolic; expected a number");
  if (rows.back() < 0 || rows.back() + batch > static_cast<int64_t>(dims.size()))
    c.invalid(cat("rows of ", rows.back(), " indices for ", dims.size(), " dims"));
  const auto from = dims.begin() + batch;
  const keel_value sizes = c.e.array({c.dtype(i), {rows.back()}, Dims(from, from + rows.back())});
  return negative_index(c.e, c.in(i), sizes);
}

void gather_nd(Call& c) {
  const int64_t batch = c.i("batch_dims", 0);
  if (batch < 0 || batch > c.rank(0)) c.invalid(cat("batch_dims is ", batch));
  c.done("gather_nd", {c.in(0), forward_rows(c, 1, batch)}, Attrs().i("batch", batch));
}

const char* scatter_mode(Call& c) {
  const std::string mode = c.s("reduction", "none");
  for (const char* known : {"add", "mul", "max", "min"})
    if (mode == known) return known;
  if (mode != "none") c.invalid(cat("reduction is '", mode, "'"));
  return "set";
}

void scatter_nd(Call& c) {
  c.done("scatter_nd", {c.in(0), forward_rows(c, 1, 0), c.in(2)}, Attrs().word("mode", scatter_mode(c)));
}

// Element j of the updates goes to index j with its entry along axis replaced, as rows of indices.
void scatter_elements(Call& c) {
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(0));
  Edit& e = c.e;
  const Dims dims = c.dims(1);
  const keel_dt dtype = c.dtype(1);
  Dims column = dims;
  column.push_back(1);
  Ids columns;
  for (int64_t k = 0; k < c.rank(1); k++) {
    const keel_value at =
        k == axis ? forward(c, 1, c.dims(0)[static_cast<size_t>(axis)])
                  : e.op("iota", {}, Attrs().dims("dims", dims).i("axis", k).dtype("dtype", dtype));
    columns.push_back(e.reshape(at, column));
  }
  const keel_value rows =
      columns.size() == 1 ? columns[0] : e.op("concat", columns, Attrs().i("axis", c.rank(1)));
  c.done("scatter_nd", {c.in(0), rows, c.in(2)}, Attrs().word("mode", scatter_mode(c)));
}

constexpr Rule kRules[] = {
    {"Gather", 1, gather, "axis", 0, true},
    {"GatherElements", 11, gather_elements, "axis", 0, true},
    {"GatherND", 11, gather_nd, "batch_dims", 0, true},
    {"ScatterND", 11, scatter_nd, "reduction"},
    {"ScatterElements", 11, scatter_elements, "axis reduction"},
    {"Scatter", 9, scatter_elements, "axis"},
};

}  // namespace

Rules index_rules() { return kRules; }

}  // namespace onnx_import
