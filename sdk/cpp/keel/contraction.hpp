// contraction.hpp: sums of products by an equation, as the op einsum of two operands at a time. For
// einsum.hpp, and for importers: it does not need libkeel.
//
// How to read it: run() has the steps. They are in terms of `Ops`, which has the types Value and Size and
//   std::vector<Size> shape(Value); std::optional<int64_t> number(Size), empty where a run decides it;
//   Value transpose(Value, perm), reshape(Value, sizes), sum(Value, axes);
//   Value einsum(Value, Value, x, y, to), the op: sums of products of two, by labels;
//   Value diagonal(Value x, sizes, i, j), x where its indices along i and j are equal, else 0.
#ifndef KEEL_CONTRACTION_HPP
#define KEEL_CONTRACTION_HPP
#include <map>
#include <optional>

#include "equation.hpp"

namespace keel::detail {

template <class Ops>
class Contraction {
 public:
  using Value = typename Ops::Value;
  using Size = typename Ops::Size;

  /// Throws an EquationError.
  static Value run(const Ops& ops, const std::string& equation, const std::vector<Value>& operands) {
    return Contraction(ops, equation).result(operands);
  }

 private:
  struct Factor {
    Value x;
    std::string labels;  // of its dims
    std::vector<Size> shape;
    bool has(char label) const { return labels.find(label) != std::string::npos; }
  };
  struct Seen {
    Size size;
    size_t operand;
  };

  Contraction(const Ops& ops, const std::string& equation) : ops_(ops), equation_(equation) {}

  Value result(const std::vector<Value>& operands) {
    std::vector<std::vector<Size>> shapes;
    std::vector<size_t> ranks;
    for (const Value& x : operands) ranks.push_back(shapes.emplace_back(ops_.shape(x)).size());
    const Equation q = read_equation(equation_, ranks);
    std::vector<Factor> factors;
    for (size_t i = 0; i < operands.size(); i++) {
      factors.push_back({operands[i], q.terms[i], std::move(shapes[i])});
      take_diagonals(factors[i], i);
      note_sizes(factors[i], i);
    }
    for (Factor& f : factors) drop_broadcast(f);
    while (factors.size() > ProductOrder::kMost) {  // too many to compare all orders
      LabelSet later = set_of(q.result);
      for (size_t i = 2; i < factors.size(); i++) later |= set_of(factors[i].labels);
      factors[0] = product({factors[0], factors[1]}, later);
      factors.erase(factors.begin() + 1);
    }
    return in_order(product(factors, set_of(q.result)), q.result);
  }

  // Sizes. After drop_broadcast() the dims of a label have its size.

  void note_sizes(const Factor& f, size_t operand) {
    for (size_t k = 0; k < f.labels.size(); k++) {
      const Seen now{f.shape[k], operand};
      const auto [at, fresh] = sizes_.try_emplace(f.labels[k], now);
      if (is_one(at->second.size))
        at->second = now;
      else if (!fresh && !is_one(now.size))
        check_equal(f.labels[k], at->second, now);
    }
  }
  void check_equal(char label, const Seen& a, const Seen& b) const {
    const auto before = ops_.number(a.size), now = ops_.number(b.size);
    if (!before || !now || *before == *now) return;
    throw EquationError(
        (is_letter(label) ? "label " + quoted({label}) : "a dim of '...'") + " of equation " +
            quoted(equation_) + " has sizes " + std::to_string(*before) + " and " + std::to_string(*now) +
            ", in operand " + std::to_string(a.operand) +
            (a.operand == b.operand ? "" : " and operand " + std::to_string(b.operand)),
        "a label has one size, or 1 in another operand; dims of other sizes need other labels",
        EquationError::kSizes);
  }
  bool is_one(const Size& size) const { return ops_.number(size) == 1; }
  std::vector<Size> sizes_of(const std::string& labels) const {
    std::vector<Size> out;
    for (const char label : labels) out.push_back(sizes_.at(label).size);
    return out;
  }

  // Of one factor.

  void take_diagonals(Factor& f, size_t operand) const {
    for (size_t i = 0; i < f.labels.size(); i++)
      for (size_t j; (j = f.labels.find(f.labels[i], i + 1)) != std::string::npos;) {
        check_equal(f.labels[i], {f.shape[i], operand}, {f.shape[j], operand});
        f.shape[j] = f.shape[i];  // diagonal() compares sizes that a run decides
        f.x = ops_.sum(ops_.diagonal(f.x, f.shape, i, j), {static_cast<int64_t>(j)});
        f.labels.erase(j, 1);
        f.shape.erase(f.shape.begin() + static_cast<ptrdiff_t>(j));
      }
  }
  void drop_broadcast(Factor& f) const {
    std::string labels;
    for (size_t k = 0; k < f.labels.size(); k++)
      if (!is_one(f.shape[k]) || is_one(sizes_.at(f.labels[k]).size)) labels += f.labels[k];
    if (labels.size() == f.labels.size()) return;
    f.labels = labels;
    f.x = ops_.reshape(f.x, sizes_of(labels));
  }
  Factor summed(Factor f, LabelSet kept) const {
    std::vector<int64_t> axes;
    std::string labels;
    for (size_t k = 0; k < f.labels.size(); k++)
      if (contains(kept, f.labels[k]))
        labels += f.labels[k];
      else
        axes.push_back(static_cast<int64_t>(k));
    if (!axes.empty()) f.x = ops_.sum(f.x, axes);
    f.labels = labels;
    return f;
  }
  Value in_order(const Factor& f, const std::string& labels) const {
    if (f.labels == labels) return f.x;
    std::vector<int64_t> perm;
    for (const char label : labels) perm.push_back(static_cast<int64_t>(f.labels.find(label)));
    return ops_.transpose(f.x, perm);
  }

  // Of several.

  /// The product of the factors, with the needed labels.
  Factor product(const std::vector<Factor>& factors, LabelSet needed) const {
    constexpr double kUnknown = 128;  // for a size that a run decides
    LabelSizes sizes{};
    for (const auto& [label, seen] : sizes_)
      sizes[number_of(label)] = static_cast<double>(ops_.number(seen.size).value_or(kUnknown));
    std::vector<LabelSet> terms;
    for (const Factor& f : factors) terms.push_back(set_of(f.labels));
    const ProductOrder order(terms, needed, sizes);
    return product(factors, order, order.all());
  }
  Factor product(const std::vector<Factor>& factors, const ProductOrder& order, size_t set) const {
    if (std::has_single_bit(set))
      return summed(factors[static_cast<size_t>(std::countr_zero(set))], order.kept(set));
    const size_t part = order.part(set);
    return product(product(factors, order, part), product(factors, order, set ^ part), order.kept(set));
  }
  /// The dims of the result: of both factors, of a only, of b only, without the labels that are summed over.
  Factor product(const Factor& a, const Factor& b, LabelSet kept) const {
    std::string both, left, right;
    for (const char label : a.labels)
      if (contains(kept, label)) (b.has(label) ? both : left) += label;
    for (const char label : b.labels)
      if (contains(kept, label) && !a.has(label)) right += label;
    const std::string labels = both + left + right, all = a.labels + b.labels;
    const auto numbers = [&](const std::string& some) {  // the same for equations that differ in letters
      std::vector<int64_t> out;
      for (const char label : some) out.push_back(static_cast<int64_t>(all.find(label)));
      return out;
    };
    return {ops_.einsum(a.x, b.x, numbers(a.labels), numbers(b.labels), numbers(labels)), labels, {}};
  }

  const Ops& ops_;
  const std::string& equation_;
  std::map<char, Seen> sizes_;
};

}  // namespace keel::detail
#endif
