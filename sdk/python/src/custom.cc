// custom.cc: one call of a function that brings its gradient; keel/custom.py makes keel.custom_gradient of
// it.
#include "custom.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "keel/custom.hpp"

namespace keel_python {

namespace {

using Tensors = std::vector<keel::Tensor>;

std::vector<keel_array*> raw(const Tensors& all) {
  std::vector<keel_array*> out;
  for (const keel::Tensor& t : all) out.push_back(t.get());
  return out;
}

/// libkeel runs the backward code within the call, in a trace.
struct Backward {
  nb::handle code;  // gets a list: xs, ys, and what arrives at the ys that are floats; gives a list
  keel::detail::Home& home = keel::detail::here();
  std::exception_ptr thrown = nullptr;

  static keel_rc run(void* self, keel_trace* trace, const keel_leaf* leaves, uint32_t n, keel_error**) {
    nb::gil_scoped_acquire gil;
    auto& mine = *static_cast<Backward*>(self);
    try {
      keel::detail::Within body(mine.home, trace, nullptr);
      nb::list given;
      for (uint32_t i = 0; i < n; i++)
        given.append(object_of(keel::Tensor(keel::Array(keel_array_retain(leaves[i].array)))));
      for (const keel::Tensor& dx : nb::cast<Tensors>(nb::object(mine.code(given))))
        keel::call(keel_trace_result, trace, static_cast<const char*>(nullptr), dx.get());
    } catch (...) {
      mine.thrown = std::current_exception();
      return KEEL_INVALID;
    }
    return KEEL_OK;
  }
};

/// The ys again, of which tapes know only that gradient.
Tensors custom(const std::string& name, const Tensors& xs, const Tensors& ys, nb::handle code) {
  Backward backward{code};
  std::vector<keel_array*> in = raw(xs), given = raw(ys), out(ys.size());
  keel_error* error = nullptr;
  keel_rc rc = without_gil([&] {
    keel_rc made =
        keel_trace_custom(keel::detail::this_trace, keel::detail::tape_handle(), name.c_str(), in.data(),
                          static_cast<uint32_t>(in.size()), given.data(), static_cast<uint32_t>(given.size()),
                          Backward::run, &backward, out.data(), &error);
    return made == KEEL_OK ? keel::detail::cut(out, &error) : made;
  });
  if (rc != KEEL_OK) {
    keel::Error failure = keel::Error::take(rc, error);
    if (backward.thrown) std::rethrow_exception(backward.thrown);
    throw failure;
  }
  Tensors made;
  for (keel::Array& a : keel::take_arrays(out)) made.emplace_back(std::move(a));
  return made;
}

}  // namespace

void install_custom(nb::module_& m) { m.def("custom", custom); }

}  // namespace keel_python
