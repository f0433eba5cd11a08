// matmul.cc: a matrix product of a region, as one primitive or in parts.
#include <algorithm>

#include "plugins/cpu/matmul/choice.h"
#include "plugins/cpu/matmul/matmul.h"
#include "plugins/cpu/regions/ops.h"

namespace keel_cpu {
namespace {

// The layout of operand 0 or 1: batch dims (1 where it broadcasts), then rows and columns.
Layout Operand(const MatmulShape& s, int which, dnnl::memory::data_type type) {
  const int64_t rows = which == 0 ? s.m : s.k, columns = which == 0 ? s.k : s.n;
  const bool transposed = which == 0 ? s.ta : s.tb;
  Dims dims, strides;
  for (int d = 0; d + 1 < s.batch.rank; d++) {
    const int64_t step = s.batch.steps[which][d];
    dims.push_back(step == 0 ? 1 : s.batch.dims[d]);
    strides.push_back(step == 0 ? rows * columns : step);
  }
  dims.insert(dims.end(), {rows, columns});
  strides.insert(strides.end(), {transposed ? 1 : columns, transposed ? rows : 1});
  return Strided(dims, strides, type);
}

// The dims under which a product sees a value whose batch dims may have been merged into m or into each
// other.
std::optional<Dims> MatmulView(const Dims& dims, const Dims& c, const Dims& merged) {
  const std::optional<Dims> d = Broadcast(dims, c);
  if (!d) return {};
  const size_t rank = c.size(), to = merged.size();
  const int64_t m = (*d)[rank - 2], n = (*d)[rank - 1];
  Dims view(to, 1);
  if (*d == c) return merged;
  bool one_matrix = true;  // broadcast over the batch
  for (size_t i = 0; i + 2 < rank; i++) one_matrix &= (*d)[i] == 1;
  view[to - 1] = n;
  if (one_matrix && (m == 1 || merged[to - 2] == m)) {
    view[to - 2] = m;
    return view;
  }
  Dims columns = c;
  columns.back() = 1;
  if (*d != columns) return {};
  view = merged;
  view.back() = 1;
  return view;
}

using MatmulPart = Parts<dnnl::matmul>::Part;

// The part of all operands for a box of batch, rows, columns and depth.
MatmulPart MatmulPartOf(const dnnl::matmul::primitive_desc& d, const Layout& left, const Layout& bias,
                        const Box& all, int64_t depth) {
  const size_t rank = all.size.size() - 1, row = rank - 2, column = rank - 1, deep = rank;
  const auto pick = [&](size_t i, size_t j) {
    Box b = {Dims(all.lo.begin(), all.lo.end() - 3), Dims(all.size.begin(), all.size.end() - 3)};
    for (size_t at : {i, j}) {
      b.lo.push_back(all.lo[at]);
      b.size.push_back(all.size[at]);
    }
    return b;
  };
  MatmulPart p;
  p.box = pick(row, column);
  p.leading = rank;
  p.src = PartOf(left, pick(row, deep), rank, &p.src_at);
  p.weights = PartOf(d.weights_desc(), pick(deep, column), rank, &p.weights_at);
  p.out = PartOf(d.dst_desc(), p.box, rank, &p.out_at);
  p.adds = all.lo[deep] > 0;
  p.last = all.lo[deep] + all.size[deep] == depth;
  if (!bias.is_zero() && !p.adds) p.bias = PartOf(bias, p.box, rank, &p.bias_at);
  return p;
}

// Splits by batch; a single product by rows or, if there are more, columns; or (deep) by parts of its sums.
// Those accumulate in the result, so nothing else may be added to it.
Parts<dnnl::matmul> MatmulParts(const MatmulShape& s, const dnnl::matmul::primitive_desc& d,
                                const Layout& left, const Layout& bias, bool deep) {
  constexpr int64_t kGrain = 192;  // a multiple of all block sizes of packed weights
  Parts<dnnl::matmul> cut;
  const Dims out = d.dst_desc().get_dims();
  const size_t batch = out.size() - 2;
  const int64_t finer = s.m * s.n < 16 ? 4 : 1;  // a single thread reads so few rows
  const int64_t work = s.Work() + finer * TouchWork(s.Touched());
  const bool rows = s.m >= s.n;
  std::vector<size_t> order = {rows ? batch : batch + 1};
  // Splits the other dim too if this one is too short; slightly long parts are accepted.
  if (work / std::max(s.m, s.n) * kGrain > PartWork()) order.push_back(rows ? batch + 1 : batch);
  if (deep) order = {batch + 2};
  if (work <= PartWork()) return cut;
  Dims all = out, dims(out.begin(), out.end() - 2);
  all.push_back(s.k);
  for (size_t i : order) dims.push_back(all[i]);
  try {
    for (const Box& box : Boxes(dims, work, rows && !deep ? 48 : kGrain)) {
      Box part = {Dims(all.size()), all};
      for (size_t i = 0; i < dims.size(); i++) {
        const size_t at = i < batch ? i : order[i - batch];
        part.lo[at] = box.lo[i];
        part.size[at] = box.size[i];
      }
      cut.parts.push_back(MatmulPartOf(d, left, bias, part, s.k));
    }
  } catch (const dnnl::error&) {
    return {};
  }
  cut.make = [](const auto& p, const dnnl::primitive_attr& attr) {
    return dnnl::matmul::primitive_desc(Engine(), p.src, p.weights, p.bias, p.out, attr);
  };
  return cut;
}

}  // namespace

bool EmitMatmul(Builder& b, const BodyNode& node, const Recipe& r) {
  const MatmulShape s = ReadMatmul(node.node);
  const auto type = TypeOf(b.Value(node.in[0]).dtype);
  const bool constant = b.Value(node.in[1]).data != nullptr;
  const ProductReason& reason = ProductReasons()[ReasonFor(s, constant)];
  if (!reason.onednn) b.Explain(node, reason.name);
  if (!reason.onednn || s.Work() == 0) return false;
  const Layout left = Operand(s, 0, type), right = Operand(s, 1, type);
  Dims c(s.batch.dims, s.batch.dims + s.batch.rank - 1), row(c.size(), 1);
  c.insert(c.end(), {s.m, s.n});
  row.insert(row.end(), {1, s.n});
  Attributes a;
  const Dims& full = b.Value(node.out[0]).dims;
  const View view = [&](const BodyValue& v) { return MatmulView(v.dims, full, c); };
  if (!Describe(b, r, c, b.Value(r.out).result == kNone, view, &a)) return false;
  const Layout bias = r.shift.empty() ? Layout() : Plain(row);
  using Product = dnnl::matmul;
  Product::primitive_desc d;
  try {
    d = Product::primitive_desc(Engine(), left, constant ? AnyLayout(right.get_dims(), type) : right, bias,
                                Plain(c, type), Attr(b, r, a));
  } catch (const dnnl::error&) {
    return false;
  }
  if (!IsOptimized(d)) return false;
  const int weights = Weights(b, node, r, right, d.weights_desc(), {s.tb ? s.k : 1, s.n});
  std::vector<Parts<Product>> cuts = {MatmulParts(s, d, left, bias, false)};
  if (a.sum == nullptr)
    cuts.insert(s.k > 16 * std::max(s.m, s.n) ? cuts.begin() : cuts.end(),
                MatmulParts(s, d, left, bias, true));
  EmitWith<Product>(b, d, r, a, cuts,
                    {{DNNL_ARG_SRC, left, b.BufferIn(node.in[0], b.PlainOf(node.in[0]))},
                     {DNNL_ARG_WEIGHTS, d.weights_desc(), weights},
                     {DNNL_ARG_BIAS, bias, BiasOf(b, r)}});
  b.Explain(node, reason.name);
  return true;
}

}  // namespace keel_cpu
