// function.cc: functions (keel.h). Their calls are in call.cc.
#include "kernel/program/trace/function.h"

#include "kernel/api/handles.h"
#include "kernel/api/options.h"
#include "kernel/language/graph/names.h"
#include "kernel/language/graph/signature.h"
#include "kernel/runtime/plugin/host.h"

using namespace keel;

namespace {

absl::Status TakeError(keel_rc rc, const keel_error* error) {
  if (rc == KEEL_OK && !error) return absl::OkStatus();
  if (rc != KEEL_OK && !IsCode(rc))
    return Error(absl::StatusCode::kUnknown, "the program returned ", rc, ", which is not a Keel error code",
                 error ? ": " : "", error ? error->message : "");
  if (!error)
    return Error(static_cast<absl::StatusCode>(rc), "the program returned ", rc, " without an error");
  if (rc == KEEL_OK) return Invalid("the program returned KEEL_OK but stored an error: ", error->message);
  absl::Status status(static_cast<absl::StatusCode>(error->code), error->message);
  for (const auto& [fact, text] : std::span(kErrorParts).subspan(1))
    status = Annotate(status, fact, error->*text);
  return status;
}

}  // namespace

absl::Status keel::RefuseLent(const keel_trace* t, std::string_view function, std::string_view parameter) {
  if (!t->lent) return absl::OkStatus();
  return Invalid(function, ": '", parameter,
                 "' is borrowed: it ends when the program that received it returns");
}

absl::Status keel::CallBack(keel_trace& lent, absl::FunctionRef<keel_rc(keel_error**)> code) {
  lent.lent = true;
  struct Slot {
    keel_error* error = nullptr;
    ~Slot() { keel_error_free(error); }
  } slot;
  RETURN_IF_ERROR(CatchExceptions("the program", [&] {
    const keel_rc rc = code(&slot.error);
    return TakeError(rc, slot.error);
  }));
  return lent.freed ? Invalid("the program freed its trace, which is borrowed") : absl::OkStatus();
}

namespace {

absl::Status ReadOptions(const keel_kv* options, uint32_t n, FunctionOptions* to) {
  PlanOptions& plan = to->plan;
  auto any_after = [&](const std::string& value) {
    if (value != "never") return Option::Number("any_after", &to->any_after, 0, UINT32_MAX).set(value);
    to->any_after = UINT32_MAX;
    return absl::OkStatus();
  };
  return SetOptions({Option::Text("signature", &to->signature),
                     {"any_after", any_after},
                     Option::Number("max_traces", &to->max_traces, 1, 1 << 20),
                     Option::Flag("check_captures", &to->check_captures),
                     Option::Flag("exact_convolution", &plan.exact_convolution),
                     Option::Threads(&plan.threads),
                     Option::Memory(&plan.memory),
                     Option::Timeout(&plan.timeout_ms),
                     Option::Level(&to->passes),
                     Option::Passes(&to->passes)},
                    options, n);
}

TracedBody BodyOf(keel_program program, void* arg, std::shared_ptr<CallerObject> owner) {
  return [program, arg, owner = std::move(owner)](Tracing& tracing, std::span<const keel_leaf> leaves) {
    keel_trace handle{std::move(tracing)};
    absl::Status done = CallBack(handle, [&](keel_error** error) {
      return program(arg, &handle, leaves.data(), static_cast<uint32_t>(leaves.size()), error);
    });
    tracing = std::move(handle.tracing);
    return done;
  };
}

absl::StatusOr<Results> RunBackward(const TracedBody& body, Tracing tracing, const Results& in) {
  std::vector<keel_leaf> leaves;
  for (const ArrayRef& array : in)
    leaves.push_back({KEEL_LEAF_ARRAY, 0, nullptr, array.get(), 0, 0, nullptr});
  RETURN_IF_ERROR(body(tracing, leaves));
  return tracing.Take();
}

absl::Status GiveModule(const keel_function& f, const Concrete& concrete, keel_module** out) {
  std::shared_ptr<Module> module = CopyModule(*concrete.module, nullptr);  // the caller may add to it
  if (concrete.head.find('=') != std::string::npos)
    RETURN_IF_ERROR(module->SetMetadata(SignatureKey(concrete.graph->name), concrete.head));
  *out = HandleOf(f.function->context(), std::move(module));
  return absl::OkStatus();
}

}  // namespace

keel_rc keel_function_new(keel_context* c, const char* name, const char* device, const keel_kv* options,
                          uint32_t n, keel_program program, void* arg, void (*release)(void*),
                          keel_function** out, keel_error** err) {
  return Guard(err, "context name device options[n_options] program out",
               {c, name, device, options, n, program, out}, [&]() -> absl::Status {
                 auto taken = std::make_shared<CallerObject>(arg);
                 RETURN_IF_ERROR(CheckName("a function", name));
                 FunctionOptions wanted;
                 wanted.plan = c->state->Options();
                 wanted.plan.results_on_device = true;
                 RETURN_IF_ERROR(ReadOptions(options, n, &wanted));
                 ASSIGN_OR_RETURN(Device * on, c->state->registry.FindDevice(device));
                 auto function = std::make_unique<Function>(c->state, name, on, std::move(wanted),
                                                            BodyOf(program, arg, taken));
                 RETURN_IF_ERROR(function->CheckSignature());
                 *out = new keel_function{std::move(function)};
                 taken->release = release;
                 return absl::OkStatus();
               });
}

keel_rc keel_function_module(keel_function* f, const char* structure, const keel_leaf* leaves, uint32_t n,
                             keel_module** out, uint32_t* n_results, keel_error** err) {
  return Guard(err, "function leaves[n] out", {f, leaves, n, out}, [&]() -> absl::Status {
    Arguments arguments{structure ? structure : "", {leaves, n}};
    bool symbolic = false;
    RETURN_IF_ERROR(arguments.Check(&symbolic));
    if (symbolic)
      return Invalid("a symbolic array cannot select the module of a function; pass arrays with elements");
    ASSIGN_OR_RETURN(std::shared_ptr<Concrete> concrete, f->function->Find(arguments));
    RETURN_IF_ERROR(f->function->CheckDeclared(*concrete));
    RETURN_IF_ERROR(GiveModule(*f, *concrete, out));
    if (n_results) *n_results = static_cast<uint32_t>(concrete->graph->results.size());
    return absl::OkStatus();
  });
}

keel_rc keel_function_trace(keel_function* f, uint32_t number, keel_module** out, keel_error** err) {
  return Guard(err, "function out", {f, out}, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(std::shared_ptr<Concrete> concrete, f->function->At(number));
    return GiveModule(*f, *concrete, out);
  });
}

keel_rc keel_function_report(keel_function* f, const char* what, keel_text** out, keel_error** err) {
  return Guard(err, "function what out", {f, what, out}, [&, caller = __func__]() -> absl::Status {
    const std::string_view wanted = what;
    if (wanted == "report") return Give(f->function->Report(), out);
    if (wanted == "signatures") return Give(f->function->Signatures(), out);
    return UnknownChoice(caller, "what", wanted, "report, signatures");
  });
}

void keel_run_eagerly(keel_context* c, keel_function* f, int32_t on) {
  if (f)
    f->function->RunEagerly(on != 0);
  else if (c)
    c->state->eager = on != 0;
}

void keel_function_free(keel_function* f) {
  if (f && !f->function->FreedInside()) delete f;
}

keel_rc keel_trace_custom(keel_trace* within, keel_tape* tape, const char* name, keel_array* const* xs,
                          uint32_t n_xs, keel_array* const* ys, uint32_t n_ys, keel_program backward,
                          void* arg, keel_array** out, keel_error** err) {
  return Guard(err, "name xs[n_xs]* ys[n_ys]* backward out[n_ys]",
               {name, xs, n_xs, ys, n_ys, backward, out, n_ys}, [&]() -> absl::Status {
                 RETURN_IF_ERROR(CheckName("a custom gradient", name));
                 std::vector<keel_array*> all(xs, xs + n_xs);
                 all.insert(all.end(), ys, ys + n_ys);
                 ASSIGN_OR_RETURN(Trace * trace, Trace::OfAll(all));
                 if (!trace) trace = TraceOf(within);
                 Tape* on = TapeOf(tape, within);
                 TracedBody body = BodyOf(backward, arg, nullptr);
                 CustomGradientRequest wanted{
                     name, {xs, n_xs}, {ys, n_ys}, [&](std::shared_ptr<Trace> back, const Results& in) {
                       return RunBackward(body, {nullptr, std::move(back), {}}, in);
                     }};
                 const bool recorded =
                     on && std::any_of(xs, xs + n_xs, [&](keel_array* x) { return on->WatchesOrOuter(x); });
                 uint32_t n_out = 0;
                 return Give(trace      ? trace->Custom(wanted)
                             : recorded ? on->Custom(wanted)
                                        : Share(wanted.ys),
                             out, n_ys, &n_out);
               });
}
