// trace.cc: traces (keel.h).
#include "kernel/program/trace/trace.h"

#include "kernel/api/handles.h"
#include "kernel/runtime/plugin/host.h"

using namespace keel;

namespace {

absl::Status NeedTrace(const keel_trace* t, const char* caller) {
  if (t->tracing.trace) return absl::OkStatus();
  return Annotate(
      Error(absl::StatusCode::kFailedPrecondition, caller, "() is not compatible with eager execution."),
      kErrorHint, "the program runs eagerly and writes no graph: its arrays have values");
}

// Guard, for a trace that writes a graph.
keel_rc GuardTrace(keel_trace* t, keel_error** err, Needs needs, Given given,
                   absl::FunctionRef<absl::Status(Trace&)> body,
                   const char* function = __builtin_FUNCTION()) noexcept {
  return Guard(
      err, needs, given,
      [&]() -> absl::Status {
        RETURN_IF_ERROR(NeedTrace(t, function));
        return body(*t->tracing.trace);
      },
      function);
}

}  // namespace

keel_rc keel_trace_new(keel_context* c, const char* name, const char* device, keel_trace** out,
                       keel_error** err) {
  return Guard(err, "context name device out", {c, name, device, out}, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(Device * home, c->state->registry.FindDevice(device));
    auto module = std::make_shared<Module>(c->state->catalogue);
    ASSIGN_OR_RETURN(Graph * graph, module->AddGraph(name));
    RETURN_IF_ERROR(module->AddEntry(name, graph));
    auto trace = std::make_shared<Trace>(std::move(module), graph, home->name());
    *out = new keel_trace{{c->state, std::move(trace), {}}};
    return absl::OkStatus();
  });
}

keel_rc keel_trace_dim(keel_trace* t, const char* expression, int32_t known_only, keel_dim* out,
                       keel_error** err) {
  return GuardTrace(t, err, "trace expression out", {t, expression, out}, [&](Trace& trace) {
    return Give(trace.module()->dims.Parse(expression, known_only != 0), out);
  });
}

keel_rc keel_trace_dim_text(keel_trace* t, const char* expression, keel_text** out, keel_error** err) {
  return GuardTrace(t, err, "trace expression out", {t, expression, out},
                    [&](Trace& trace) { return Give(trace.SizeText(expression), out); });
}

keel_rc keel_trace_dim_number(keel_trace* t, const char* expression, int64_t* out, keel_error** err) {
  return GuardTrace(t, err, "trace expression out", {t, expression, out},
                    [&](Trace& trace) { return Give(trace.SizeNumber(expression), out); });
}

keel_rc keel_trace_dim_holds(keel_trace* t, const char* rule, int32_t* out, keel_error** err) {
  return GuardTrace(t, err, "trace rule out", {t, rule, out},
                    [&](Trace& trace) { return Give(trace.SizeRuleHolds(rule), out); });
}

keel_rc keel_array_dim(const keel_array* a, int64_t axis, keel_text** out, keel_error** err) {
  return Guard(err, "array out", {a, out}, [&]() -> absl::Status {
    int64_t rank = a->view.ndim;
    if (axis < -rank || axis >= rank)
      return Error(absl::StatusCode::kOutOfRange, "axis ", axis, " of an array of rank ", rank);
    auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    const Trace* trace = Trace::Of(a);
    if (!trace) return Give(absl::StrCat(a->dims[at]), out);
    return Give(trace->module()->dims.Print(trace->graph()->values[Trace::ValueOf(a)].type.dims[at]), out);
  });
}

keel_rc keel_trace_param(keel_trace* t, const char* name, keel_dt code, const keel_dim* dims, int32_t ndim,
                         keel_array** out, keel_error** err) {
  return GuardTrace(t, err, "trace dims(ndim) out", {t, dims, ndim, out}, [&](Trace& trace) -> absl::Status {
    ASSIGN_OR_RETURN(TensorType type, ParamType(name ? name : "", code, dims, ndim));
    return Give(trace.Param(name ? name : "", std::move(type)), out);
  });
}

keel_rc keel_trace_result(keel_trace* t, const char* name, keel_array* array, keel_error** err) {
  return Guard(err, "trace array", {t, array}, [&]() -> absl::Status {
    t->tracing.results.emplace_back(name ? name : "", ArrayRef::Share(array));
    return absl::OkStatus();
  });
}

keel_rc keel_trace_end(keel_trace* t, keel_module** out, keel_error** err) {
  return Guard(err, "trace out", {t, out}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(RefuseLent(t, caller, "trace"));
    RETURN_IF_ERROR(NeedTrace(t, caller));
    Trace& trace = *t->tracing.trace;
    if (trace.parent()) return Invalid("the trace is a body: end it with keel_body_end");
    for (const auto& [name, array] : t->tracing.results) RETURN_IF_ERROR(trace.Result(name, array.get()));
    RETURN_IF_ERROR(trace.End());
    *out = HandleOf(t->tracing.context, trace.module());
    return absl::OkStatus();
  });
}

void keel_trace_info(const keel_trace* t, keel_tape** tape, int32_t* writes) {
  if (tape) *tape = t ? static_cast<keel_tape*>(t->tracing.tape) : nullptr;
  if (writes) *writes = t && t->tracing.trace ? 1 : 0;
}

keel_rc keel_trace_names(keel_trace* t, const char* scope, keel_error** err) {
  return GuardTrace(t, err, "trace scope", {t, scope}, [&](Trace& trace) {
    trace.NameAll(scope);
    return absl::OkStatus();
  });
}

void keel_trace_source(keel_trace* t, const char* file, uint32_t line) {
  if (t && t->tracing.trace) t->tracing.trace->At(file, line);
}

keel_rc keel_trace_constant(keel_trace* t, const char* name, keel_array* array, keel_array** out,
                            keel_error** err) {
  return GuardTrace(t, err, "trace array out", {t, array, out},
                    [&](Trace& trace) { return Give(trace.Constant(name ? name : "", array), out); });
}

keel_rc keel_trace_rename(keel_trace* t, keel_array* array, const char* name, int32_t unique,
                          keel_error** err) {
  return GuardTrace(t, err, "trace array name", {t, array, name},
                    [&](Trace& trace) { return trace.Rename(array, name, unique != 0); });
}

keel_rc keel_trace_value(keel_trace* t, keel_array* array, keel_value* out, keel_error** err) {
  return GuardTrace(t, err, "trace array out", {t, array, out}, [&](Trace& trace) -> absl::Status {
    if (Trace::Of(array) != &trace)
      return Invalid("the array does not belong to the trace of \"", trace.graph()->name, "\"");
    *out = Trace::ValueOf(array);
    return absl::OkStatus();
  });
}

keel_rc keel_trace_array(keel_trace* t, keel_value value, keel_array** out, keel_error** err) {
  return GuardTrace(t, err, "trace out", {t, out}, [&](Trace& trace) -> absl::Status {
    if (value >= trace.graph()->values.size()) return NotFound("the graph has no value ", value);
    return Give(trace.ArrayFor(value), out);
  });
}

keel_rc keel_trace_module(keel_trace* t, keel_module** out, keel_error** err) {
  return GuardTrace(t, err, "trace out", {t, out}, [&](Trace& trace) {
    *out = HandleOf(t->tracing.context, trace.module());
    return absl::OkStatus();
  });
}

void keel_trace_free(keel_trace* t) {
  if (t && t->lent)
    t->freed = true;
  else
    delete t;
}

int32_t keel_array_symbolic(const keel_array* a) { return a && a->symbolic() ? 1 : 0; }
