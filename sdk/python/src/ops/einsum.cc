// einsum.cc: keel.einsum, by the C++ SDK's. Here: Python's arguments and the subclass of an error.
#include "keel/einsum.hpp"

#include "ops/op.h"

namespace keel_python {

namespace {

constexpr Fault kFaults[] = {Fault::kOther, Fault::kShape, Fault::kDtype};  // by EquationError::Fault

std::string equation_of(nb::handle equation) {
  if (PyUnicode_Check(equation.ptr())) return need_text(equation, "the equation");
  throw keel::Error(KEEL_INVALID, std::string("einsum: the equation is a ") +
                                      Py_TYPE(equation.ptr())->tp_name +
                                      ", expected a str such as 'ij,jk->ik'");
}

keel::Tensor einsum(nb::handle equation, const nb::args& operands) {
  const std::string text = equation_of(equation);
  std::vector<keel::Tensor> tensors;
  for (nb::handle each : operands) tensors.push_back(to_tensor(each));
  note_line();
  try {
    return without_gil([&] { return keel::detail::contracted(text, tensors, kNowhere); });
  } catch (const keel::detail::EquationError& e) {
    throw FaultyCall(keel::Error(KEEL_INVALID, std::string("einsum: ") + e.what(), e.hint), kFaults[e.fault]);
  } catch (const keel::Error& e) {  // of an op: the operands have one dtype
    if (e.code() != KEEL_INVALID) throw;
    const bool number = keel::find_dtype(tensors.at(0).dtype())->kind != 'b';
    throw FaultyCall(e, number ? Fault::kShape : Fault::kDtype);
  }
}

}  // namespace

void install_einsum(nb::module_& m) {
  m.def(
      "einsum", einsum, nb::arg("equation").none(), nb::arg("operands"),
      "Sums of products, as numpy.einsum(): einsum(\"ij,jk->ik\", a, b) is a matrix product, \"ii->i\" a\n"
      "diagonal, \"ii\" a trace, \"...ij->...ji\" a transpose of the last dims.\n\n"
      "A label is a letter and names a dim of one size, or of 1, which broadcasts; \"...\" stands for the "
      "dims\n"
      "that have none. Labels that the result lacks are summed over. Without \"->\" the result has the dims "
      "of\n"
      "\"...\", then the labels that occur once, in alphabetical order. Operands have one dtype; up to 10 "
      "are\n"
      "multiplied in the order with the fewest multiplications. Raises InvalidError for an equation that is\n"
      "wrong or does not fit the operands, ShapeError for a label with two sizes.");
}

}  // namespace keel_python
