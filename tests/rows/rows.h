// rows.h: shared by the C++ examples: each runs on each device and compares printed output.
#pragma once

#include <sstream>
#include <string>

#include "tests/sdk/devices.h"

class Rows : public sdk_test::OnEachDevice {};

template <class... A>
std::string Printed(const A&... a) {
  std::ostringstream out;
  (out << ... << a);
  return out.str();
}
