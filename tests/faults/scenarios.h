// scenarios.h: what a host does with libkeel, each from a context to clean hands, stopping at the first
// error. They are run with failures injected, so they hold what they own in RAII handles.
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
// Does the context still load, run and answer?
bool Works(keel_context* context);
// Writes the files that the scenarios read; once, before anything is armed.
void MakeFiles();

}  // namespace keel::test
