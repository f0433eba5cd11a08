// outcome.h: how a scenario ended.
#pragma once

#include "abi/keel.h"

namespace keel::test {

struct Outcome {
  keel_rc rc = KEEL_OK;
  char message[512] = "";  // of the error; empty: there was no error object
  bool right = true;       // the results are correct
};

}  // namespace keel::test
