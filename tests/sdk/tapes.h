// tapes.h: the fixture of the tests of keel::Tape, and a check of a program eagerly and traced.
#pragma once

#include "devices.h"

namespace sdk_test {

using keel::Tape;
using keel::Tensor;
using keel::Variable;
using Tensors = std::vector<Tensor>;

class Tapes : public OnEachDevice {
 protected:
  Tensor three_ = {3.f};
};
inline std::string Text(const Tensor& t) { return t.empty() ? "none" : to_string(t); }

// The program eagerly, and as one graph: each result must have the expected text.
template <class Program>
void Both(const Program& program, const std::vector<std::string>& wanted, const Tensor& x = {3.f}) {
  auto check = [&](const Tensors& got, const char* how) {
    ASSERT_EQ(got.size(), wanted.size()) << how;
    for (size_t k = 0; k < got.size(); k++) EXPECT_EQ(Text(got[k]), wanted[k]) << how << ", result " << k;
  };
  check(program(x), "eagerly");
  check(keel::function("program", program)(x), "traced");
}

}  // namespace sdk_test
