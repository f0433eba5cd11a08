// function.cc: Python code as a keel_function. keel/function.py has the parts that are not time-critical.
//
// How to read it: Program is one call in progress: it runs the code when libkeel calls back, and records the
// structure of the results. Function::call flattens the arguments, calls, and rebuilds the results. A call
// that hits an existing trace does not run the code: then the structure is looked up in Templates.
//
// The GIL: libkeel holds a lock of the function while the code runs, so no thread may wait for that lock with
// the GIL. A call keeps the GIL (brief.h) only if no other call of the function has released it or is running
// its code, where Python may switch threads.
#include "trace/function.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/line.h"
#include "keel/function.hpp"
#include "run/brief.h"
#include "run/context.h"
#include "run/session.h"
#include "trace/structure.h"
#include "trace/templates.h"

namespace keel_python {

namespace {

using keel::detail::FunctionState;

nb::object rebuild(nb::handle like, const std::vector<keel::Array>& arrays) {
  size_t next = 0;
  return map_leaves(like, [&](nb::handle leaf, const std::string&) {
    return leaf.is_none() ? nb::none() : object_of(keel::Tensor(arrays.at(next++)));
  });
}

class Function {
 public:
  Function(std::string name, nb::object parameters, keel::FunctionOptions options, bool has_signature)
      : name_(std::move(name)),
        signed_(has_signature),
        parameters_(std::move(parameters)),
        options_(std::move(options)) {}

  PyObject* call(nb::handle self, nb::handle args, PyObject* keywords);
  nb::tuple concrete(nb::handle self, nb::args args, nb::kwargs keywords);
  keel::Module trace(uint32_t number) {
    keel_module* out = nullptr;
    keel::call(keel_function_trace, state().handle.get(), number, &out);
    return keel::Module::take(out);
  }
  std::string report(const char* what) {
    keel_text* out = nullptr;
    keel::call(keel_function_report, state().handle.get(), what, &out);
    return keel::take_text(out);
  }
  void run_eagerly(bool on) {
    eagerly_ = on;
    keel_run_eagerly(nullptr, state().handle.get(), on);
  }
  // Called by libkeel for a trace, or for an eager call.
  nb::object run(nb::handle self, nb::handle args) const {
    return call_python(nb::object(self.attr(eagerly_ ? "_run" : "_trace")), args);
  }
  /// For the garbage collector: code often refers to its function.
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(parameters_.ptr());
    for (const auto& [key, held] : objects_) Py_VISIT(held.ptr());
    return templates.traverse(visit, arg);
  }
  void clear() {
    nb::object parameters = std::exchange(parameters_, {});
    Templates shapes = std::exchange(templates, {});
    auto objects = std::exchange(objects_, {});
  }
  bool cleared() const { return !parameters_.is_valid(); }

  FunctionState& state() {  // created at the first call, so that an import opens no device
    if (!state_) state_ = std::make_unique<FunctionState>(name_, options_);
    return *state_;
  }
  Templates templates;
  Brief brief;
  int aside = 0;         // calls in progress without the GIL, or in the code
  uint64_t written = 0;  // number of traces of the code

 private:
  // One value per parameter, so that f(x, n=3) and f(x, 3) share a trace.
  nb::object canonical(nb::handle self, nb::handle args, PyObject* keywords) const {
    bool whole = !parameters_.is_none() && (!keywords || !PyDict_GET_SIZE(keywords)) &&
                 PyTuple_GET_SIZE(args.ptr()) == PyTuple_GET_SIZE(parameters_.ptr());
    if (whole) return nb::borrow(args);
    nb::object named = keywords ? nb::borrow(keywords) : nb::object(nb::dict());
    return call_python(nb::object(self.attr("_canonical")), args, named);
  }
  Flat prepared(nb::handle self, nb::handle args, PyObject* keywords);
  const std::vector<std::string>& names_of(nb::handle self, const Flat& flat, nb::handle values);
  template <class F>
  void call_libkeel(const Flat& flat, const F& once);

  std::string name_;
  bool eagerly_ = false;
  bool signed_ = false;    // has a signature, which converts numbers to tensors
  nb::object parameters_;  // their names; None if they include *args or **keywords
  keel::FunctionOptions options_;
  std::unique_ptr<FunctionState> state_;
  using Names = std::pair<const std::string, std::vector<std::string>>;
  std::unordered_map<std::string, std::vector<std::string>> names_;  // names of leaves, by structure
  const Names* last_names_ = nullptr;                                // entry of the last call
  std::map<PyObject*, nb::object> objects_;  // keeps arguments compared by identity alive
  std::vector<keel_leaf> spare_;             // memory for the next call's leaves
};

/// A call in progress on this thread.
struct Program : keel::detail::Invocation {
  Function& f;
  nb::handle self;
  const Flat& flat;
  nb::object like;       // the structure of the results, after the code has run
  bool counted = false;  // included in f.aside
  std::optional<WithoutGil> without;

  Program(Function& f, nb::handle self, const Flat& flat)
      : keel::detail::Invocation{start}, f(f), self(self), flat(flat) {}
  static void start(keel::detail::Invocation& erased, std::span<const keel_leaf> leaves, keel_trace* trace) {
    auto& mine = static_cast<Program&>(erased);
    mine.take_gil();
    struct GiveBack {
      Program& program;
      uint64_t before = endless_written;
      ~GiveBack() {
        if (endless_written != before) program.f.brief.never();
        program.give_gil();  // planning the trace takes long
      }
    } after{mine};
    try {
      mine.run(leaves, trace);
    } catch (nb::python_error& e) {
      mine.code = e.matches(PyExc_Exception) ? KEEL_INVALID : KEEL_CANCELLED;
      mine.why = nb::cast<std::string>(nb::str(e.type().attr("__name__"))) + ": " +
                 nb::cast<std::string>(nb::str(e.value()));
      throw;
    }
  }
  void run(std::span<const keel_leaf> leaves, keel_trace* trace) {
    count();
    f.written++;
    keel::detail::BodyScope body(f.state().home, trace,
                                 keel::detail::is_taped(trace) ? keel::detail::this_tape : nullptr);
    give(f.run(self, arguments(leaves)), trace);
  }

  void count() {
    if (!std::exchange(counted, true)) f.aside++;
  }
  void give_gil() {
    count();
    without.emplace();
  }
  void take_gil() { without.reset(); }

  nb::object arguments(std::span<const keel_leaf> leaves) const {
    size_t next = 0;
    return map_leaves(flat.value, [&](nb::handle leaf, const std::string&) {
      keel_array* array = leaves[next++].array;
      return array ? nb::steal(wrap(keel_array_retain(array))) : nb::borrow(leaf);
    });
  }
  void give(nb::object result, keel_trace* trace) {
    std::string shape;
    auto each = [&](nb::handle leaf, const std::string& place) -> nb::object {
      shape += leaf.is_none() ? 'n' : 'T';
      if (leaf.is_none()) return nb::none();
      bool named = place.size() > 1 && place[0] == '.';
      keel::Tensor t = result_tensor(leaf, place);
      keel::call(keel_trace_result, trace, named ? place.c_str() + 1 : nullptr, t.get());
      return nb::borrow(Py_Ellipsis);
    };
    like = map_leaves(result, each, &shape);
    f.templates.add(flat.leaves, like, shape);
  }
};

/// Calls libkeel; exceptions of the code pass unchanged. keep: keeps the GIL, unless the code has to run.
template <class F>
void perform(Program& program, bool keep, const F& what) {
  keel_error* error = nullptr;
  if (!keep) program.give_gil();
  keel::detail::Invocation* before = std::exchange(keel::detail::this_call, &program);
  keel_rc rc = what(&error);
  keel::detail::this_call = before;
  program.take_gil();
  if (program.counted) program.f.aside--;
  if (rc == KEEL_OK) return;
  keel::Error failure = keel::Error::take(rc, error);
  if (std::exception_ptr thrown = keel::detail::find_thrown(program, failure)) {
    program.thrown.clear();
    std::rethrow_exception(thrown);
  }
  throw failure;
}

const std::vector<std::string>& Function::names_of(nb::handle self, const Flat& flat, nb::handle values) {
  const std::string& structure = flat.leaves.structure;
  if (last_names_ && last_names_->first == structure) return last_names_->second;
  auto known = names_.find(structure);
  if (known == names_.end()) {
    std::vector<std::string> all;  // completed before publication: Python may switch threads here
    nb::object names = self.attr("_names");
    for (const std::string& place : flatten(values, true).places) {  // "[1].w" of the tuple of arguments
      size_t end = place.find(']');
      all.push_back(nb::cast<std::string>(nb::object(names[std::stoul(place.substr(1))])) +
                    place.substr(end + 1));
    }
    known = names_.try_emplace(structure, std::move(all)).first;
  }
  last_names_ = &*known;
  return known->second;
}

Flat Function::prepared(nb::handle self, nb::handle args, PyObject* keywords) {
  nb::object values = canonical(self, args, keywords);
  Flat flat = flatten(values, false, std::exchange(spare_, {}));
  auto is_number = [](const keel_leaf& leaf) {
    return leaf.kind == KEEL_LEAF_BOOL || leaf.kind == KEEL_LEAF_I64 || leaf.kind == KEEL_LEAF_F64;
  };
  if (signed_ && std::ranges::any_of(flat.leaves.list, is_number)) {
    values = call_python(nb::object(self.attr("_typed")), values);
    flat = flatten(values, false);
  }
  const std::vector<std::string>& names = names_of(self, flat, values);
  for (size_t k = 0; k < names.size(); k++) flat.leaves.list[k].name = names[k].c_str();
  for (const nb::object& object : flat.objects) objects_.emplace(object.ptr(), object);
  return flat;
}

/// Chooses whether to keep the GIL. Sizes predict the time of a call if there is one trace, or no other
/// arguments.
template <class F>
void Function::call_libkeel(const Flat& flat, const F& once) {
  bool sizes_tell = !keel::detail::this_trace && !keel::detail::tape_handle();
  int64_t elements = 0;
  for (const keel_leaf& leaf : flat.leaves.list)
    if (leaf.array)
      elements += elements_of(leaf.array);
    else if (written > 1)
      sizes_tell = false;
  if (!sizes_tell) note_line();
  if (!sizes_tell || !brief.possible()) return once(false);
  if (!aside && brief.expected(elements)) return once(true);
  brief.measured(elements, [&] { once(false); });
}

PyObject* Function::call(nb::handle self, nb::handle args, PyObject* keywords) {
  if (keel::detail::eager_scopes > 0 || keel::detail::eager_process.load(std::memory_order_relaxed)) {
    Flat flat = flatten(canonical(self, args, keywords), false);
    keel::detail::BodyScope body(state().home, keel::detail::this_trace, keel::detail::this_tape);
    nb::object made = self.attr("_run")(flat.value);
    return map_leaves(made,
                      [](nb::handle leaf, const std::string& place) {
                        return leaf.is_none() ? nb::none() : object_of(result_tensor(leaf, place));
                      })
        .release()
        .ptr();
  }
  Flat flat = prepared(self, args, keywords);
  FunctionState& s = state();
  Program program(*this, self, flat);
  std::array<keel_array*, 256> out;
  uint32_t n = 0;
  call_libkeel(flat, [&](bool keep_gil) {
    perform(program, keep_gil, [&](keel_error** error) {
      return keel::detail::call_function(s.handle.get(), flat.leaves, out.data(), out.size(), &n, error);
    });
  });
  nb::object like = program.like.is_valid() ? program.like : templates.find(flat.leaves);
  flat.leaves.list.clear();
  spare_ = std::move(flat.leaves.list);
  if (like.ptr() == Py_Ellipsis && n == 1) return wrap(out[0]);
  std::vector<keel::Array> arrays = keel::take_arrays({out.begin(), out.begin() + n});
  return rebuild(like, arrays).release().ptr();
}

/// A tuple of the module and the structure of its results.
nb::tuple Function::concrete(nb::handle self, nb::args args, nb::kwargs keywords) {
  Flat flat = prepared(self, args, keywords.ptr());
  FunctionState& s = state();
  Program program(*this, self, flat);
  keel_module* out = nullptr;
  perform(program, false, [&](keel_error** error) {
    return keel_function_module(s.handle.get(), flat.leaves.structure.c_str(), flat.leaves.list.data(),
                                static_cast<uint32_t>(flat.leaves.list.size()), &out, nullptr, error);
  });
  nb::object like = program.like.is_valid() ? program.like : templates.find(flat.leaves);
  return nb::make_tuple(keel::Module::take(out), like);
}

PyObject* call_slot(PyObject* self, PyObject* args, PyObject* keywords) {
  return guarded([&] {
    if (!nb::inst_ready(self) || nb::inst_ptr<Function>(self)->cleared())
      throw keel::Error(KEEL_PRECONDITION, "functions are made by keel.function()");
    return nb::inst_ptr<Function>(self)->call(self, args, keywords);
  });
}
int traverse_slot(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Function>(self)->traverse(visit, arg) : 0;
}
int clear_slot(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Function>(self)->clear();
  return 0;
}

struct EagerScope {
  void enter() { keel::detail::eager_scopes++; }
  void leave() { keel::detail::eager_scopes -= keel::detail::eager_scopes > 0; }
};

}  // namespace

void install_function(nb::module_& m) {
  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_slot)},
                                {Py_tp_traverse, reinterpret_cast<void*>(traverse_slot)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_slot)},
                                {0, nullptr}};
  nb::class_<Function>(m, "Function", nb::type_slots(slots))  // attributes are in the Python subclass
      .def(
          "__init__",
          [](Function* self, const std::string& name, nb::object parameters, nb::dict options) {
            keel::FunctionOptions o;
            o.more = options_of(options);
            new (self) Function(name, std::move(parameters), std::move(o), options.contains("signature"));
          },
          nb::arg(), nb::arg().none(), nb::arg())
      .def("_concrete", [](nb::handle self, nb::args args,
                           nb::kwargs kw) { return nb::cast<Function&>(self).concrete(self, args, kw); })
      .def("_trace_module", &Function::trace)
      .def("_report", [](Function& f) { return f.report("report"); })
      .def(
          "signatures", [](Function& f) { return f.report("signatures"); },
          "For people: a block per trace with its arguments and results.")
      .def("run_eagerly", &Function::run_eagerly, nb::arg("on") = true,
           "Calls of this function run its code on numbers, without a trace.");
  nb::class_<EagerScope>(m, "Eagerly",
                         "with keel.Eagerly(): functions of this thread run their code on numbers.")
      .def(nb::init<>())
      .def("__enter__", [](EagerScope& s) { s.enter(); })
      .def("__exit__", [](EagerScope& s, nb::args) { s.leave(); });
  m.def(
      "run_eagerly", [](bool on) { keel::detail::eager_process = on; }, nb::arg("on") = true,
      "All functions of the process run their code on numbers at each call, for a debugger.");
  m.def(
      "executing_eagerly", [] { return !keel::detail::this_trace; },
      "Whether ops of this thread run immediately. False while a function is traced.");
}

}  // namespace keel_python
