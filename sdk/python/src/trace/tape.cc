// tape.cc: tapes that record between __enter__ and __exit__; gradients may be taken at any time. keel/tape.py
// walks the structures of targets and sources.
#include "trace/tape.h"

#include <nanobind/stl/vector.h>

#include "values/variable.h"

namespace keel_python {

namespace {

using keel::detail::Recorder;
using keel::detail::this_tape;

/// A recorder of this extension, with its tape, which inner recorders keep alive.
struct Recording : Recorder {
  std::shared_ptr<keel_tape> around;  // must outlive this one
  std::shared_ptr<keel_tape> owner;
};

/// Removes a recorder from this thread's stack, at any position.
void unlink(const Recorder& mine) {
  for (Recorder** at = &this_tape; *at; at = &(*at)->outer)
    if (*at == &mine) {
      *at = mine.outer;
      return;
    }
}

/// No tape of this thread records while it is entered.
class NoRecord {
 public:
  NoRecord() = default;
  NoRecord(const NoRecord&) = delete;
  ~NoRecord() { leave(); }
  void enter() {
    mine_.outer = this_tape;
    this_tape = &mine_;
  }
  void leave() { unlink(mine_); }

 private:
  Recording mine_{};
};

/// Sources of gradients: tensors, or variables.
struct Sources {
  std::vector<keel_array*> arrays;
  std::vector<keel_variable*> variables;
  explicit Sources(const nb::list& list) {
    for (nb::handle x : list) {
      bool variable = nb::isinstance<keel::Variable>(x);
      if (!variable && !is_tensor(x.ptr())) {
        PyErr_Format(PyExc_TypeError, "a source of a gradient must be a tensor or a variable, not %s",
                     Py_TYPE(x.ptr())->tp_name);
        throw nb::python_error();
      }
      arrays.push_back(variable ? nullptr : array_of(x.ptr()));
      variables.push_back(variable ? nb::cast<const keel::Variable&>(x).get() : nullptr);
    }
  }
  uint32_t size() const { return static_cast<uint32_t>(arrays.size()); }
};

std::vector<keel::Tensor> tensors_of(const std::vector<keel_array*>& made) {
  std::vector<keel::Tensor> out;
  for (keel::Array& a : keel::take_arrays(made)) out.emplace_back(std::move(a));
  return out;
}
std::vector<keel_array*> raw_handles(const std::vector<keel::Tensor>& all) {
  std::vector<keel_array*> out;
  for (const keel::Tensor& t : all) out.push_back(t.get());
  return out;
}

class Tape {
 public:
  Tape(bool persistent, bool watch_accessed_variables) {
    keel_kv kv[] = {{"persistent", persistent ? "1" : "0"},
                    {"watch_variables", watch_accessed_variables ? "1" : "0"}};
    keel::detail::Home& home = keel::detail::here();
    keel::call(keel_tape_new, home.context(), home.device().c_str(), kv, 2u, keel::detail::tape_handle(),
               &mine_.handle);
    mine_.owner.reset(mine_.handle, keel_tape_free);
    if (this_tape) mine_.around = static_cast<Recording*>(this_tape)->owner;
  }
  Tape(const Tape&) = delete;
  ~Tape() { unlink(mine_); }
  void enter() {
    unlink(mine_);
    mine_.outer = this_tape;
    this_tape = &mine_;
  }
  void leave() { unlink(mine_); }

  void watch(nb::handle x) {
    nb::list one;
    one.append(x);
    Sources source(one);
    if (source.arrays[0])
      keel::call(keel_tape_watch, mine_.handle, source.arrays[0], nullptr);
    else
      keel::call(keel_tape_watch, mine_.handle, nullptr, source.variables[0]);
  }
  void reset() { keel_tape_reset(mine_.handle); }

  // Tapes around a traced call do not record inside it: stopping one there hides ops from all, as no_record()
  // does.
  void stop() {
    const Recorder* at = this_tape;
    while (at && at != &mine_) at = at->outer;
    keel_tape_pause(mine_.handle, 1);
    outside_.push_back(keel::detail::this_trace && !at);
    if (outside_.back()) hidden_.emplace_back(std::make_unique<NoRecord>())->enter();
  }
  void go_on() {
    if (outside_.empty()) throw keel::Error(KEEL_PRECONDITION, "the tape was not stopped");
    keel_tape_pause(mine_.handle, 0);
    if (outside_.back()) hidden_.pop_back();
    outside_.pop_back();
  }

  std::vector<keel::Tensor> gradient(const std::vector<keel::Tensor>& targets, const nb::list& sources,
                                     const std::vector<keel::Tensor>& seeds, bool zeros) {
    Sources xs(sources);
    std::vector<keel_array*> ys = raw_handles(targets), weights = raw_handles(seeds), out(xs.size());
    without_gil([&] {
      keel::call(keel_tape_gradient, mine_.handle, ys.data(), static_cast<uint32_t>(ys.size()),
                 weights.empty() ? nullptr : weights.data(), xs.arrays.data(), xs.variables.data(), xs.size(),
                 zeros ? KEEL_GRADIENT_ZEROS : 0, out.data());
    });
    return tensors_of(out);
  }
  std::vector<keel::Tensor> jacobian(const keel::Tensor& target, const nb::list& sources, bool zeros) {
    Sources xs(sources);
    std::vector<keel_array*> out(xs.size());
    without_gil([&] {
      keel_array* y = target.get();
      keel::call(keel_tape_gradient, mine_.handle, &y, 1u, nullptr, xs.arrays.data(), xs.variables.data(),
                 xs.size(), KEEL_GRADIENT_JACOBIAN | (zeros ? KEEL_GRADIENT_ZEROS : 0), out.data());
    });
    return tensors_of(out);
  }

 private:
  Recording mine_{};
  std::vector<bool> outside_;  // for each stop: whether the tape is outside of the trace in progress
  std::vector<std::unique_ptr<NoRecord>> hidden_;
};

}  // namespace

void install_tape(nb::module_& m) {
  nb::class_<Tape>(m, "Tape")
      .def(nb::init<bool, bool>(), nb::arg("persistent") = false, nb::arg("watch_accessed_variables") = true)
      .def("_enter", &Tape::enter)
      .def("_leave", &Tape::leave)
      .def("_stop", &Tape::stop)
      .def("_go_on", &Tape::go_on)
      .def("watch", &Tape::watch, nb::arg("x"),
           "Records ops on a tensor or reads of a variable from now on, as a source of gradients.")
      .def("reset", &Tape::reset, "Drops all records and watches; the tape can then be used again.")
      .def("_gradient", &Tape::gradient)
      .def("_jacobian", &Tape::jacobian);
  m.def("recording", [] { return keel::detail::tape_handle() != nullptr; });
  nb::class_<NoRecord>(m, "no_record",
                       "with keel.no_record(): no tape of this thread records, and in a traced function no\n"
                       "gradient passes through ops in the block.")
      .def(nb::init<>())
      .def("__enter__", &NoRecord::enter)
      .def("__exit__", [](NoRecord& scope, nb::args) { scope.leave(); });
}

}  // namespace keel_python
