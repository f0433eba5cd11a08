// fuzz_catalogue.cc: any text as the op catalogue of a plugin is accepted or rejected; accepted ops parse or
// return an error, and their facts can be read.
#include <cstdint>
#include <cstdlib>

#include "kernel/language/opset/opset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  keel::Catalogue ops;
  absl::Status s = ops.AddText({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!s.ok()) return s.message().empty() ? (abort(), 0) : 0;
  for (const std::string& name : ops.Names()) {
    if (name.find('.') == std::string::npos) continue;  // the core catalogue
    auto op = ops.Find(name, 0);
    if (!op.ok()) continue;
    keel::Inferred inferred;
    keel::DimTable dims;
    keel::Operand scalar;
    scalar.type.dtype = keel::DType::kF32;
    std::vector<keel::Operand> operands(keel::OpOperands(**op).size(), scalar);
    (void)keel::OpAttrs(**op);
    (void)keel::OpResults(**op);
    (void)keel::Infer(**op, operands, {}, dims, &inferred);
  }
  return 0;
}
