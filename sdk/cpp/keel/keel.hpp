// keel.hpp: Keel for C++20 programs, header-only over the C API. Failures are keel::Error exceptions.
//
//   keel::Tensor x = {{1.f, 2.f}, {3.f, 4.f}};
//   auto f = keel::function("f", [](const keel::Tensor& x) { return keel::softmax(x * 2); });
//   std::cout << f(x);                       // traced once per signature, then run as a graph
//
//   keel::Module module = keel::Module::load(keel::default_context(), "m.keel");
//   std::vector<keel::Array> y = keel::Session(module, "cpu").prepare().run(std::vector{x.array()});
//
// Handles are move-only; Arrays and Tensors share their data when copied. Thread rules are in keel.h.
#ifndef KEEL_KEEL_HPP
#define KEEL_KEEL_HPP
#include "array.hpp"     // IWYU pragma: export
#include "context.hpp"   // IWYU pragma: export
#include "control.hpp"   // IWYU pragma: export
#include "custom.hpp"    // IWYU pragma: export
#include "data.hpp"      // IWYU pragma: export
#include "dim.hpp"       // IWYU pragma: export
#include "dtype.hpp"     // IWYU pragma: export
#include "effect.hpp"    // IWYU pragma: export
#include "einsum.hpp"    // IWYU pragma: export
#include "entry.hpp"     // IWYU pragma: export
#include "error.hpp"     // IWYU pragma: export
#include "format.hpp"    // IWYU pragma: export
#include "function.hpp"  // IWYU pragma: export
#include "graph.hpp"     // IWYU pragma: export
#include "index.hpp"     // IWYU pragma: export
#include "keel/ops.hpp"  // IWYU pragma: export
#include "module.hpp"    // IWYU pragma: export
#include "random.hpp"    // IWYU pragma: export
#include "save.hpp"      // IWYU pragma: export
#include "session.hpp"   // IWYU pragma: export
#include "tape.hpp"      // IWYU pragma: export
#include "timeline.hpp"  // IWYU pragma: export
#include "variable.hpp"  // IWYU pragma: export
#endif
