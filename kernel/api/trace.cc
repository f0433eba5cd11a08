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
  return Guard(err, "trace expression out", {t, expression, out}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(NeedTrace(t, caller));
    ASSIGN_OR_RETURN(*out, t->tracing.trace->module()->dims.Parse(expression, known_only != 0));
    return absl::OkStatus();
  });
}

keel_rc keel_trace_dim_text(keel_trace* t, const char* expression, keel_text** out, keel_error** err) {
  return Guard(err, "trace expression out", {t, expression, out}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(NeedTrace(t, caller));
    ASSIGN_OR_RETURN(std::string text, t->tracing.trace->SizeText(expression));
    return GiveText(std::move(text), out);
  });
}

keel_rc keel_trace_dim_number(keel_trace* t, const char* expression, int64_t* out, keel_error** err) {
  return Guard(err, "trace expression out", {t, expression, out}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(NeedTrace(t, caller));
    ASSIGN_OR_RETURN(*out, t->tracing.trace->SizeNumber(expression));
    return absl::OkStatus();
  });
}

keel_rc keel_trace_dim_holds(keel_trace* t, const char* rule, int32_t* out, keel_error** err) {
  return Guard(err, "trace rule out", {t, rule, out}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(NeedTrace(t, caller));
    ASSIGN_OR_RETURN(*out, t->tracing.trace->SizeRuleHolds(rule));
    return absl::OkStatus();
  });
}

keel_rc keel_array_dim(const keel_array* a, int64_t axis, keel_text** out, keel_error** err) {
  return Guard(err, "array out", {a, out}, [&]() -> absl::Status {
    int64_t rank = a->view.ndim;
    if (axis < -rank || axis >= rank)
      return Error(absl::StatusCode::kOutOfRange, "axis ", axis, " of an array of rank ", rank);
    auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    const Trace* trace = Trace::Of(a);
    if (!trace) return GiveText(absl::StrCat(a->dims[at]), out);
    return GiveText(trace->module()->dims.Print(trace->graph()->values[Trace::ValueOf(a)].type.dims[at]),
                    out);
  });
}

keel_rc keel_trace_param(keel_trace* t, const char* name, keel_dt code, const keel_dim* dims, int32_t ndim,
                         keel_array** out, keel_error** err) {
  return Guard(err, "trace dims(ndim) out", {t, dims, ndim, out}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(NeedTrace(t, caller));
    ASSIGN_OR_RETURN(TensorType type, ParamType(name ? name : "", code, dims, ndim));
    ASSIGN_OR_RETURN(ArrayRef made, t->tracing.trace->Param(name ? name : "", std::move(type)));
    *out = made.Detach();
    return absl::OkStatus();
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
  return Guard(err, "trace scope", {t, scope}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(NeedTrace(t, caller));
    t->tracing.trace->NameAll(scope);
    return absl::OkStatus();
  });
}

void keel_trace_source(keel_trace* t, const char* file, uint32_t line) {
  if (t && t->tracing.trace) t->tracing.trace->At(file, line);
}

keel_rc keel_trace_constant(keel_trace* t, const char* name, keel_array* array, keel_array** out,
                            keel_error** err) {
  return Guard(err, "trace array out", {t, array, out}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(NeedTrace(t, caller));
    ASSIGN_OR_RETURN(ArrayRef made, t->tracing.trace->Constant(name ? name : "", array));
    *out = made.Detach();
    return absl::OkStatus();
  });
}

keel_rc keel_trace_rename(keel_trace* t, keel_array* array, const char* name, int32_t unique,
                          keel_error** err) {
  return Guard(err, "trace array name", {t, array, name}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(NeedTrace(t, caller));
    return t->tracing.trace->Rename(array, name, unique != 0);
  });
}

keel_rc keel_trace_value(keel_trace* t, keel_array* array, keel_value* out, keel_error** err) {
  return Guard(err, "trace array out", {t, array, out}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(NeedTrace(t, caller));
    Trace& trace = *t->tracing.trace;
    if (Trace::Of(array) != &trace)
      return Invalid("the array does not belong to the trace of \"", trace.graph()->name, "\"");
    *out = Trace::ValueOf(array);
    return absl::OkStatus();
  });
}

keel_rc keel_trace_array(keel_trace* t, keel_value value, keel_array** out, keel_error** err) {
  return Guard(err, "trace out", {t, out}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(NeedTrace(t, caller));
    if (value >= t->tracing.trace->graph()->values.size()) return NotFound("the graph has no value ", value);
    ASSIGN_OR_RETURN(ArrayRef made, t->tracing.trace->ArrayFor(value));
    *out = made.Detach();
    return absl::OkStatus();
  });
}

keel_rc keel_trace_module(keel_trace* t, keel_module** out, keel_error** err) {
  return Guard(err, "trace out", {t, out}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(NeedTrace(t, caller));
    *out = HandleOf(t->tracing.context, t->tracing.trace->module());
    return absl::OkStatus();
  });
}

void keel_trace_free(keel_trace* t) {
  if (t && t->lent) {
    t->freed = true;
    return;
  }
  if (t && t->tracing.owns_body) t->tracing.trace->Leave();
  delete t;
}

int32_t keel_array_symbolic(const keel_array* a) { return a && a->symbolic() ? 1 : 0; }
