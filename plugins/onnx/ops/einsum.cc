// einsum.cc: Einsum, by the steps of the C++ SDK's einsum.
#include "plugins/onnx/ops/term.h"
#include "sdk/cpp/keel/contraction.hpp"

namespace onnx_import {
namespace {

struct TermOps {
  using Value = Term;
  using Size = keel_dim;
  Edit& e;

  Dims shape(const Term& x) const { return x.dims(); }
  std::optional<int64_t> number(keel_dim size) const {
    return KEEL_DIM_IS_HANDLE(size) ? std::nullopt : std::optional(size);
  }
  Term transpose(const Term& x, const Ints& perm) const { return x.transpose(perm); }
  Term reshape(const Term& x, const Dims& to) const { return x.reshape(to); }
  Term sum(const Term& x, const Ints& axes) const { return x.sum(axes); }
  Term einsum(const Term& a, const Term& b, const Ints& x, const Ints& y, const Ints& to) const {
    return a.op("einsum", b, Attrs().ints("x", x).ints("y", y).ints("to", to));
  }
  Term diagonal(const Term& x, const Dims& sizes, size_t i, size_t j) const {
    const auto along = [&](size_t axis) {
      return counting_term(e, sizes, static_cast<int64_t>(axis), KEEL_I64);
    };
    return select(along(i) == along(j), x, 0);
  }
};

void einsum(Call& c) {
  std::vector<Term> operands;
  for (size_t i = 0; i < c.n_in(); i++) operands.emplace_back(c, i);
  try {
    c.set(0, keel::detail::Contraction<TermOps>::run({c.e}, c.s("equation", ""), operands).v);
  } catch (const keel::detail::EquationError& error) {
    c.invalid(cat(error.what(), "; ", error.hint));
  }
}

constexpr Rule kRules[] = {{"Einsum", 12, einsum, "equation"}};

}  // namespace

Rules einsum_rules() { return kRules; }

}  // namespace onnx_import
