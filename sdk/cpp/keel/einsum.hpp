// einsum.hpp: einsum(), sums of products by an equation.
//
//   keel::Tensor y = keel::einsum("ij,jk->ik", {a, b});      // a matrix product
//   keel::einsum("...ij->...ji", {x});                       // a transpose of the last two dims
//   keel::einsum("bhqd,bhkd->bhqk", {queries, keys});
//
// How to read it: TensorOps are the ops of contraction.hpp, which has the steps.
#ifndef KEEL_EINSUM_HPP
#define KEEL_EINSUM_HPP
#include "contraction.hpp"
#include "keel/ops.hpp"

namespace keel {
namespace detail {

class TensorOps {
 public:
  using Value = Tensor;
  using Size = Dim;
  explicit TensorOps(const Place& where) : where_(where) {}

  std::vector<Dim> shape(const Tensor& x) const {
    const std::span<const int64_t> known = x.shape();
    std::vector<Dim> out;
    for (size_t i = 0; i < known.size(); i++)
      out.push_back(known[i] < 0 ? x.dim(static_cast<int64_t>(i)) : Dim(known[i]));
    return out;
  }
  std::optional<int64_t> number(const Dim& size) const {
    return size.symbolic() ? std::nullopt : std::optional(size.number());
  }
  Tensor transpose(const Tensor& x, const std::vector<int64_t>& perm) const {
    return keel::transpose(at(x), {.perm = perm});
  }
  Tensor reshape(const Tensor& x, const std::vector<Dim>& to) const { return keel::reshape(at(x), to); }
  Tensor sum(const Tensor& x, const std::vector<int64_t>& axes) const {
    return keel::reduce_sum(at(x), {.axes = axes});
  }
  Tensor einsum(const Tensor& a, const Tensor& b, const std::vector<int64_t>& x,
                const std::vector<int64_t>& y, const std::vector<int64_t>& to) const {
    return keel::einsum(at(a), b, x, y, to);
  }
  Tensor diagonal(const Tensor& x, const std::vector<Dim>& sizes, size_t i, size_t j) const {
    const auto along = [&](size_t axis) {
      return keel::iota(sizes, {.axis = static_cast<int64_t>(axis)}, where_);
    };
    return keel::select(Operand(along(i), where_) == along(j), x, tensor(0, x.dtype()));
  }

 private:
  Operand at(const Tensor& x) const { return {x, where_}; }
  Place where_;
};

/// einsum() that throws an EquationError.
template <class Ops = TensorOps>
Tensor contracted(const std::string& equation, const std::vector<Tensor>& operands, const Place& where) {
  for (size_t i = 1; i < operands.size(); i++)
    if (operands[i].dtype() != operands[0].dtype())
      throw EquationError("operand " + std::to_string(i) + " of equation " + quoted(equation) + " is " +
                              operands[i].type() + " and operand 0 is " + operands[0].type() +
                              "; expected one dtype",
                          "cast one of them", EquationError::kDtypes);
  return Contraction<Ops>::run(Ops(where), equation, operands);
}

}  // namespace detail

/// Sums of products, as numpy.einsum(). A label is a letter and names a dim of one size, or of 1, which
/// broadcasts; twice in a term it takes the diagonal; "..." stands for the dims that have none. Labels that
/// the result lacks are summed over. Without "->" the result has the dims of "...", then the labels that
/// occur once, in alphabetical order. The operands have one dtype; up to 10 are multiplied in the order with
/// the fewest multiplications. Error KEEL_INVALID for an equation that is wrong or does not fit the operands.
template <class Ops = detail::TensorOps>
Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands,
              const Place& where = Place::current()) {
  try {
    return detail::contracted<Ops>(equation, operands, where);
  } catch (const detail::EquationError& e) {
    throw Error(KEEL_INVALID, e.what(), e.hint).within("einsum", where);
  }
}

}  // namespace keel
#endif
