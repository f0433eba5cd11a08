// scenarios.h: sequences of API calls, each from creating a context to releasing everything, stopping at the
// first error. They run with injected failures, so RAII handles hold all objects.
#pragma once

#include <vector>

#include "abi/keel.h"
#include "tests/faults/outcome.h"

namespace keel::test {

struct Scenario {
  const char* name;
  Outcome (*run)(keel_context* context);  // allocates nothing of its own
};
const std::vector<Scenario>& Scenarios();

// devices.cc, dlpack.cc
Outcome OnDevice(keel_context*);
Outcome PlacedOnDevices(keel_context*);
Outcome Dlpack(keel_context*);

// A context with the plugins reference, cpu, onnx and passes.
keel_context* NewContext();
// Whether the context still loads, runs and gives the right answer.
bool Works(keel_context* context);
// Writes the files that the scenarios read; called once, before arming.
void MakeFiles();

}  // namespace keel::test
