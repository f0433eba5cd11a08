// einsum.cc: Einsum as transposes, sums and matrix products of two operands at a time (einsum_order.h).
//
// A Factor is an operand with one label per dim. Labels of an ellipsis are numbered from the right, so that
// they broadcast; a dim of 1 that broadcasts loses its label.
#include <algorithm>
#include <bit>
#include <functional>

#include "plugins/onnx/ops/einsum_order.h"
#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

constexpr char kEllipsis = '\x10';  // label of the last dim of an ellipsis; the next to its left is one more

struct Factor {
  Term x;
  std::string labels;
  bool has(char label) const { return labels.find(label) != std::string::npos; }
  keel_dim size(char label) const { return x.dim(labels.find(label)); }
};

bool is_label(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "i...j" for an operand of this rank, with labels for the dots. dots: how many dims they are.
std::string spelled(Call& c, const std::string& term, size_t dots) {
  std::string labels;
  bool seen = false;
  for (size_t i = 0; i < term.size(); i++) {
    if (is_label(term[i])) {
      labels += term[i];
    } else if (!seen && term.compare(i, 3, "...") == 0) {
      for (size_t k = dots; k-- > 0;) labels += static_cast<char>(kEllipsis + static_cast<char>(k));
      seen = true, i += 2;
    } else {
      c.invalid(cat("equation has '", std::string(1, term[i]), "' in '", term,
                    "'; expected letters and one '...'"));
    }
  }
  return labels;
}

size_t letters(const std::string& term) {
  return static_cast<size_t>(std::count_if(term.begin(), term.end(), is_label));
}

// x[i, i] becomes x[i].
void take_diagonals(Call& c, Factor& f) {
  for (size_t i = 0; i < f.labels.size(); i++)
    for (size_t j = f.labels.find(f.labels[i], i + 1); j != std::string::npos;
         j = f.labels.find(f.labels[i], j)) {
      const Dims d = f.x.dims();
      if (c.e.compare(d[i], d[j]) != KEEL_EQUAL)
        c.invalid(cat("label '", f.labels.substr(i, 1), "' has two sizes"));
      const Term same = counting_term(c.e, d, static_cast<int64_t>(i), KEEL_I64) ==
                        counting_term(c.e, d, static_cast<int64_t>(j), KEEL_I64);
      f.x = select(same, f.x, 0).sum({static_cast<int64_t>(j)});
      f.labels.erase(j, 1);
    }
}

void sum_unused(Factor& f, const std::string& kept) {
  Ints axes;
  std::string rest;
  for (size_t i = 0; i < f.labels.size(); i++)
    if (kept.find(f.labels[i]) == std::string::npos)
      axes.push_back(static_cast<int64_t>(i));
    else
      rest += f.labels[i];
  if (!axes.empty()) f.x = f.x.sum(axes);
  f.labels = rest;
}

Term ordered(const Factor& f, const std::string& labels) {
  Ints perm;
  for (char label : labels) perm.push_back(static_cast<int64_t>(f.labels.find(label)));
  return f.x.transpose(perm);
}

// Drops dims of 1 whose label has another size elsewhere.
void drop_broadcast(Factor& f, const std::vector<Factor>& all) {
  for (size_t i = 0; i < f.labels.size();) {
    const char label = f.labels[i];
    const bool wider = f.x.dim(i) == 1 && std::any_of(all.begin(), all.end(), [&](const Factor& other) {
                         return other.has(label) && other.size(label) != 1;
                       });
    if (!wider) {
      i++;
      continue;
    }
    f.x = f.x.reshape(without(f.x.dims(), i));
    f.labels.erase(i, 1);
  }
}

keel_dim product_of(Edit& e, const Factor& f, const std::string& labels) {
  keel_dim p = 1;
  for (char label : labels) p = e.mul(p, f.size(label));
  return p;
}

Factor contracted(Call& c, const Factor& a, const Factor& b, const std::string& kept) {
  Edit& e = c.e;
  std::string batch, inner, left, right;
  for (char label : a.labels) {
    if (!b.has(label)) {
      left += label;
      continue;
    }
    if (c.e.compare(a.size(label), b.size(label)) != KEEL_EQUAL && !KEEL_DIM_IS_HANDLE(a.size(label)) &&
        !KEEL_DIM_IS_HANDLE(b.size(label)))
      c.invalid(cat("label '", std::string(1, label), "' has sizes ", a.size(label), " and ", b.size(label)));
    (kept.find(label) == std::string::npos ? inner : batch) += label;
  }
  for (char label : b.labels)
    if (!a.has(label)) right += label;
  const keel_dim n = product_of(e, a, batch), k = product_of(e, a, inner);
  const Term x = ordered(a, batch + left + inner).reshape({n, product_of(e, a, left), k});
  const Term y = ordered(b, batch + inner + right).reshape({n, k, product_of(e, b, right)});
  Dims to;
  for (char label : batch + left) to.push_back(a.size(label));
  for (char label : right) to.push_back(b.size(label));
  return {x.op("matmul", y).reshape(to), batch + left + right};
}

struct Equation {
  std::vector<std::string> terms;
  std::string result;
  bool has_result = false;
};
Equation parsed(const std::string& text) {
  Equation q;
  std::string now;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == ' ') continue;
    if (text[i] == ',' && !q.has_result) {
      q.terms.push_back(now), now.clear();
    } else if (text.compare(i, 2, "->") == 0 && !q.has_result) {
      q.terms.push_back(now), now.clear();
      q.has_result = true, i++;
    } else {
      now += text[i];
    }
  }
  if (q.has_result)
    q.result = now;
  else
    q.terms.push_back(now);
  return q;
}

// Without "->": the ellipsis, then the labels that occur once, in alphabetical order.
std::string implied_result(const std::vector<Factor>& factors, size_t dots) {
  std::string all, once;
  for (size_t k = dots; k-- > 0;) once += static_cast<char>(kEllipsis + static_cast<char>(k));
  for (const Factor& f : factors) all += f.labels;
  std::sort(all.begin(), all.end());
  for (char label : all)
    if (is_label(label) && std::count(all.begin(), all.end(), label) == 1) once += label;
  return once;
}

EinsumOrder order_of(const std::vector<Factor>& factors, const std::string& result) {
  std::vector<std::string> terms;
  for (const Factor& f : factors) terms.push_back(f.labels);
  return EinsumOrder(terms, result, [&](char label) {
    constexpr double kUnknown = 128;  // for a size that is known at run time only
    const auto f =
        std::find_if(factors.begin(), factors.end(), [=](const Factor& x) { return x.has(label); });
    return KEEL_DIM_IS_HANDLE(f->size(label)) ? kUnknown : static_cast<double>(f->size(label));
  });
}

// Whether a product of a and b reads a without a transpose.
bool ends_shared(const Factor& a, const Factor& b) { return !a.labels.empty() && b.has(a.labels.back()); }

Factor product(Call& c, const Factor& a, const Factor& b, const std::string& kept) {
  const bool turned = ends_shared(b, a) && !ends_shared(a, b);
  return turned ? contracted(c, b, a, kept) : contracted(c, a, b, kept);
}

void join_first_two(Call& c, std::vector<Factor>& factors, const std::string& result) {
  std::string later = result;
  for (size_t i = 2; i < factors.size(); i++) later += factors[i].labels;
  Factor &a = factors[0], &b = factors[1];
  sum_unused(a, later + b.labels);
  sum_unused(b, later + a.labels);
  a = product(c, a, b, later);
  factors.erase(factors.begin() + 1);
}

Factor joined(Call& c, const std::vector<Factor>& factors, const EinsumOrder& order) {
  const std::function<Factor(uint64_t)> join = [&](uint64_t set) {
    if (std::has_single_bit(set)) {
      Factor f = factors[static_cast<size_t>(std::countr_zero(set))];
      sum_unused(f, order.kept(set));
      return f;
    }
    const uint64_t part = order.first_part(set);
    return product(c, join(part), join(set ^ part), order.kept(set));
  };
  return join(order.all());
}

void einsum(Call& c) {
  const Equation q = parsed(c.s("equation", ""));
  if (q.terms.size() != c.n_in())
    c.invalid(cat("equation '", c.s("equation", ""), "' has ", q.terms.size(), " terms for ", c.n_in(),
                  " operands"));
  std::vector<Factor> factors;
  size_t most = 0;
  for (size_t i = 0; i < c.n_in(); i++) {
    const size_t rank = c.dims(i).size(), named = letters(q.terms[i]);
    const bool dotted = q.terms[i].find("...") != std::string::npos;
    if (named > rank || (named < rank && !dotted))
      c.invalid(cat("term '", q.terms[i], "' of the equation names ", named, " dims of operand ", i,
                    ", which has ", rank));
    factors.push_back({Term(c, i), spelled(c, q.terms[i], dotted ? rank - named : 0)});
    if (dotted) most = std::max(most, rank - named);
  }
  const std::string result = q.has_result ? spelled(c, q.result, most) : implied_result(factors, most);
  for (Factor& f : factors) take_diagonals(c, f);
  for (Factor& f : factors) drop_broadcast(f, factors);
  for (size_t i = 0; i < result.size(); i++)
    if (result.find(result[i], i + 1) != std::string::npos ||
        std::none_of(factors.begin(), factors.end(), [&](const Factor& f) { return f.has(result[i]); }))
      c.invalid(cat("label '", result.substr(i, 1), "' of the result must occur once there, and in a term"));
  while (factors.size() > EinsumOrder::kMost) join_first_two(c, factors, result);
  c.set(0, ordered(joined(c, factors, order_of(factors, result)), result).v);
}

constexpr Rule kRules[] = {{"Einsum", 12, einsum, "equation"}};

}  // namespace

Rules einsum_rules() { return kRules; }

}  // namespace onnx_import
