// custom.cc: a call of a function with a user-defined gradient, for keel/custom.py.
#include "trace/custom.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "base/line.h"
#include "keel/custom.hpp"

namespace keel_python {

namespace {

using Tensors = std::vector<keel::Tensor>;

/// libkeel runs the backward code in this call, in a trace. The GIL is released except for that time.
struct Backward {
  nb::handle code;  // from a list (xs, ys, gradients of the floating-point ys) to a list of gradients
  keel::detail::Home& home = keel::detail::here();
  std::exception_ptr thrown = nullptr;
  std::optional<WithoutGil> others = {};

  static keel_rc run(void* self, keel_trace* trace, const keel_leaf* leaves, uint32_t n, keel_error**) {
    auto& mine = *static_cast<Backward*>(self);
    mine.others.reset();
    keel_rc rc = mine.write(trace, {leaves, n});
    mine.others.emplace();
    return rc;
  }
  keel_rc write(keel_trace* trace, std::span<const keel_leaf> leaves) try {
    keel::detail::BodyScope body(home, trace, nullptr);
    nb::list given;
    for (const keel_leaf& leaf : leaves) given.append(nb::steal(wrap(keel_array_retain(leaf.array))));
    for (const keel::Tensor& dx : nb::cast<Tensors>(call_python(code, given)))
      keel::call(keel_trace_result, trace, static_cast<const char*>(nullptr), dx.get());
    return KEEL_OK;
  } catch (...) {
    thrown = std::current_exception();
    return KEEL_INVALID;
  }
};

/// The ys again, with that gradient for tapes.
Tensors custom(const std::string& name, const Tensors& xs, const Tensors& ys, nb::handle code) {
  Backward backward{code};
  note_line();
  std::vector<keel_array*> in = raw(xs), given = raw(ys), out(ys.size());
  keel_error* error = nullptr;
  backward.others.emplace();
  keel_rc rc =
      keel_trace_custom(keel::detail::this_trace, keel::detail::tape_handle(), name.c_str(), in.data(),
                        static_cast<uint32_t>(in.size()), given.data(), static_cast<uint32_t>(given.size()),
                        Backward::run, &backward, out.data(), &error);
  if (rc == KEEL_OK) rc = keel::detail::cut(out, &error);
  backward.others.reset();
  if (rc != KEEL_OK) {
    keel::Error failure = keel::Error::take(rc, error);
    if (backward.thrown) std::rethrow_exception(backward.thrown);
    throw failure;
  }
  return tensors(keel::take_arrays(out));
}

}  // namespace

void install_custom(nb::module_& m) { m.def("custom", custom); }

}  // namespace keel_python
