// control.cc: bodies of branches and loops under construction, and print and assert. keel/control.py builds
// cond, switch, while_loop and scan on them.
#include "trace/control.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "base/line.h"
#include "keel/control.hpp"
#include "run/brief.h"
#include "values/dim.h"
#include "values/literal.h"

namespace keel_python {

namespace {

/// All ops between enter() and leave() are added to it; an exception discards it. (Unlike the C++ SDK's Body,
/// it can outlive its block, in the traceback of an exception.)
class Body {
 public:
  Body(std::string label, std::vector<keel::Tensor> like, size_t entries_from, bool branch)
      : label_(std::move(label)), like_(std::move(like)), from_(entries_from), branch_(branch) {}
  std::vector<keel::Tensor> enter() {
    std::vector<keel_array*> like = raw(like_), params(like.size());
    keel_trace* out = nullptr;
    keel::call(keel_body_begin, keel::detail::this_trace, keel::detail::tape_handle(), label_.c_str(),
               like.data(), static_cast<uint32_t>(like.size()), static_cast<uint32_t>(from_),
               branch_ ? KEEL_BODY_BRANCH : 0, &out, params.data());
    trace_.reset(out);
    before_ = std::exchange(keel::detail::this_trace, out);
    return tensors(keel::take_arrays(params));
  }
  void leave(nb::handle exception, nb::handle, nb::handle) {
    keel::detail::this_trace = before_;
    if (exception.is_none())
      keel::call(keel_body_end, trace_.get());
    else
      trace_.reset();
  }
  void results(const std::vector<keel::Tensor>& all) {
    for (const keel::Tensor& t : all)
      keel::call(keel_trace_result, trace_.get(), static_cast<const char*>(nullptr), t.get());
  }
  keel_trace* trace() const { return trace_.get(); }

 private:
  std::string label_;
  std::vector<keel::Tensor> like_;
  size_t from_;
  bool branch_;
  keel_trace* before_ = nullptr;
  keel::Handle<keel_trace, keel_trace_free> trace_;
};

std::vector<keel::Tensor> run_bodies(const std::string& op, const std::vector<keel::Tensor>& before,
                                     const std::vector<keel::Tensor>& entries,
                                     const std::vector<const Body*>& bodies, size_t results,
                                     nb::handle length, bool reverse) {
  if (op == "while") endless_written++;
  note_line();
  std::vector<keel_trace*> traces;
  for (const Body* body : bodies) traces.push_back(body->trace());
  return tensors(keel::detail::run_bodies(op.c_str(), raw(before), raw(entries), traces, results,
                                          need_dim(length).handle(), reverse));
}

void effect(keel::OpId id, std::vector<keel::Operand> operands, const keel::detail::Attributes& at) {
  note_line();
  std::vector<const keel::Operand*> all;
  for (const keel::Operand& o : operands) all.push_back(&o);
  keel::detail::In in({});
  static_cast<std::span<const keel::Operand* const>&>(in) = all;
  without_gil([&] { keel::detail::apply(id, in, at, {}, kNowhere); });
}

void print(nb::args values, const std::string& stream, int64_t edge) {
  std::string format;
  std::vector<keel::Operand> operands;
  for (nb::handle v : values)
    if (operands.empty() && format.empty() && nb::isinstance<nb::str>(v))
      format = nb::cast<std::string>(v);
    else
      operands.push_back(need_operand(v, "print", "x"));
  endless_written++;
  keel::detail::Attributes at;
  if (!format.empty()) at.text("format", format.c_str());
  if (stream != "err") at.text("stream", stream.c_str());
  if (edge != 3) at.i64("edge", edge);
  effect(keel::OpId::print, std::move(operands), at);
}

void assert_that(nb::handle ok, const std::string& message, nb::args values) {
  std::vector<keel::Operand> operands;
  operands.push_back(need_operand(ok, "assert_", "ok"));
  for (nb::handle v : values) operands.push_back(need_operand(v, "assert_", "x"));
  keel::detail::Attributes at;
  if (!message.empty()) at.text("message", message.c_str());
  effect(keel::OpId::assert, std::move(operands), at);
}

}  // namespace

void install_control(nb::module_& m) {
  nb::class_<Body>(m, "Body")
      .def(nb::init<std::string, std::vector<keel::Tensor>, size_t, bool>())
      .def("__enter__", &Body::enter)
      .def("__exit__", &Body::leave, nb::arg().none(), nb::arg().none(), nb::arg().none())
      .def("results", &Body::results);
  m.def("run_bodies", run_bodies);
  m.def("writes", [] { return keel::detail::writes(); });
  m.def(
      "print", print, nb::arg("values"), nb::kw_only(), nb::arg("stream") = "err", nb::arg("edge") = 3,
      "print(format, *x): prints one line when the program reaches this point, traced or not, with each {}\n"
      "replaced by the next of x; or print(x). stream: 'err' or 'out'. edge: elements at both ends of each "
      "dim; -1: all.");
  m.def("assert_", assert_that, nb::arg("ok"), nb::arg("message") = "", nb::arg("values"),
        "If ok, a bool[], is False, the program fails with the message and the values, before any later "
        "effect.");
}

}  // namespace keel_python
