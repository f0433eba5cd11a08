// keel.hpp: Keel for C++20 programs, header-only over the C API. Failures are keel::Error exceptions.
//
//   keel::Context context;
//   context.scan_plugins();
//   keel::Module module = keel::Module::load(context, "m.keel");
//   keel::Plan plan = keel::Session(module, "cpu").prepare();
//   std::vector<keel::Array> y = plan.run(std::vector{x});
//
// Handles are move-only, Arrays share their data when copied. What holds for threads is in keel.h.
#ifndef KEEL_KEEL_HPP
#define KEEL_KEEL_HPP
#include "array.hpp"     // IWYU pragma: export
#include "context.hpp"   // IWYU pragma: export
#include "dtype.hpp"     // IWYU pragma: export
#include "error.hpp"     // IWYU pragma: export
#include "module.hpp"    // IWYU pragma: export
#include "session.hpp"   // IWYU pragma: export
#include "variable.hpp"  // IWYU pragma: export
#endif
