// variable.cc: variables and checkpoints (keel.h); the hook of `print`.
#include <algorithm>

#include "kernel/api/handles.h"
#include "kernel/api/options.h"
#include "kernel/language/graph/checkpoint.h"
#include "kernel/language/graph/names.h"

using namespace keel;

namespace {

// A row-major array for a variable of this type. Arrays in device memory never change, so they are shared.
absl::StatusOr<ArrayRef> Fitting(const Variable* variable, keel_array* array, bool copy) {
  if (array->symbolic()) return NeedHostMemory("a variable's value", array);
  if (variable &&
      (array->dtype != variable->dtype() || !std::ranges::equal(array->shape(), variable->shape()))) {
    std::span<const int64_t> want = variable->shape(), got = array->shape();
    DimTable none;
    return Annotate(Invalid("the variable is ", Print({variable->dtype(), {want.begin(), want.end()}}, none),
                            ", got ", Print({array->dtype, {got.begin(), got.end()}}, none)),
                    kErrorHint, "a variable keeps its dtype and shape: convert the array, or make a new one");
  }
  if (array->device_block() || (!copy && array->contiguous)) return ArrayRef::Share(array);
  return CopyArray(array->view);
}

absl::StatusOr<std::vector<NamedVariable>> Named(const char* const* names, keel_variable* const* variables,
                                                 uint32_t n) {
  std::vector<NamedVariable> out;
  for (uint32_t i = 0; i < n; i++) {
    out.push_back({names[i], variables[i]->storage});
  }
  return out;
}

using Transfer = absl::Status (*)(std::span<const NamedVariable>, const std::string&,
                                  std::shared_ptr<Catalogue>);
absl::Status Move(Transfer transfer, keel_context* c, const char* path, const char* const* names,
                  keel_variable* const* variables, uint32_t n) {
  ASSIGN_OR_RETURN(std::vector<NamedVariable> named, Named(names, variables, n));
  return transfer(named, path, c->state->catalogue);
}

// The current trace of the program, else of a symbolic array; null: the program runs eagerly.
Trace* TraceOf(keel_trace* within, const keel_array* array) {
  Trace* trace = Trace::Of(array);
  if (Trace* program = keel::TraceOf(within)) return program;
  return trace ? trace->Current() : nullptr;
}

enum class Write { kAssign, kAdd, kSubtract };

absl::StatusOr<Write> FindWrite(std::string_view how) {
  if (how == "assign") return Write::kAssign;
  if (how == "assign_add") return Write::kAdd;
  if (how == "assign_sub") return Write::kSubtract;
  return UnknownChoice("keel_variable_write", "how", how, "assign, assign_add, assign_sub");
}

// Outside of traces.
absl::Status WriteNow(const keel_variable& to, Write how, keel_array* value) {
  Variable& variable = *to.storage;
  if (how != Write::kAssign && (variable.dtype() == DType::kBool || IsStorage(variable.dtype())))
    return Invalid("assign_add and assign_sub do not support ", Name(variable.dtype()), " variables");
  ASSIGN_OR_RETURN(ArrayRef fitting, Fitting(&variable, value, how == Write::kAssign));
  PendingRuns pending;
  if (fitting->device_block()) pending.Add(fitting->device_block()->outcome);
  if (how == Write::kAssign) return variable.Assign(std::move(fitting), pending);
  auto find = [&](const keel_array* array) -> Device* {
    return array->device_block() ? to.context->registry.FindDevice(DeviceOf(array)).value_or(nullptr)
                                 : nullptr;
  };
  return AddToVariable(variable, fitting.get(), how == Write::kSubtract, find, to.context->sums, &pending);
}

// An array in host memory cannot carry the error of a run, so its runs are awaited. Those of an array in
// device memory are if they are known to have failed.
absl::StatusOr<ArrayRef> ReadNow(const Variable& variable) {
  PendingRuns pending;
  ArrayRef value = variable.Read(&pending);
  if (!value->device_block() || pending.First(PendingRun::State::kFailed)) RETURN_IF_ERROR(pending.Get());
  return value;
}

}  // namespace

keel_rc keel_checkpoint_save(keel_context* c, const char* path, const char* const* names,
                             keel_variable* const* variables, uint32_t n, keel_error** err) {
  return Guard(err, "context path names[n]* variables[n]*", {c, path, names, n, variables, n},
               [&] { return Move(SaveCheckpoint, c, path, names, variables, n); });
}

keel_rc keel_checkpoint_load(keel_context* c, const char* path, const char* const* names,
                             keel_variable* const* variables, uint32_t n, keel_error** err) {
  return Guard(err, "context path names[n]* variables[n]*", {c, path, names, n, variables, n},
               [&] { return Move(LoadCheckpoint, c, path, names, variables, n); });
}

keel_rc keel_variable_new(keel_context* c, keel_trace* within, keel_array* initial, const keel_kv* options,
                          uint32_t n, keel_variable** out, keel_error** err) {
  return Guard(
      err, "context initial options[n_options] out", {c, initial, options, n, out}, [&]() -> absl::Status {
        std::string name;
        bool trainable = true;
        auto set_name = [&](const std::string& value) { return CheckName("a variable", name = value); };
        RETURN_IF_ERROR(SetOptions({{"name", set_name}, Option::Flag("trainable", &trainable)}, options, n));
        Trace* trace = TraceOf(within, initial);
        ArrayRef value = ArrayRef::Share(initial);
        if (trace) RETURN_IF_ERROR(trace->MayMakeVariable());
        if (initial->symbolic()) {
          ASSIGN_OR_RETURN(Device * device, c->state->registry.FindDevice(trace->device()));
          ASSIGN_OR_RETURN(value, trace->Evaluate(initial, device, c->state->Options()));
        }
        ASSIGN_OR_RETURN(value, Fitting(nullptr, value.get(), true));
        *out = new keel_variable{c->state,
                                 std::make_shared<Variable>(std::move(value), std::move(name), trainable)};
        return absl::OkStatus();
      });
}

void keel_variable_info(const keel_variable* v, const char** name, int32_t* trainable, uint64_t* id) {
  if (name) *name = v ? v->storage->name().c_str() : "";
  if (trainable) *trainable = v && v->storage->trainable();
  if (id) *id = v ? v->storage->id() : 0;
}

keel_rc keel_variable_read(keel_variable* v, keel_trace* within, keel_tape* tape, keel_array** out,
                           keel_error** err) {
  return Guard(err, "variable out", {v, out}, [&]() -> absl::Status {
    ArrayRef value;
    if (Trace* trace = TraceOf(within)) {
      ASSIGN_OR_RETURN(value, trace->Read(v->storage));
    } else {
      ASSIGN_OR_RETURN(value, ReadNow(*v->storage));
    }
    if (Tape* records = TapeOf(tape, within)) records->RecordRead(v->storage, value.get());
    *out = value.Detach();
    return absl::OkStatus();
  });
}

keel_rc keel_variable_write(keel_variable* v, keel_trace* within, const char* how, keel_array* value,
                            keel_error** err) {
  return Guard(err, "variable how value", {v, how, value}, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(Write write, FindWrite(how));
    if (Trace* trace = TraceOf(within, value))
      return Annotate(trace->Write(how, v->storage, value), kErrorOp, how);
    return WriteNow(*v, write, value);
  });
}

keel_rc keel_variable_to(keel_variable* v, const char* device, keel_error** err) {
  return Guard(err, "variable", {v}, [&]() -> absl::Status {
    Context& c = *v->context;
    Device* to = nullptr;
    if (device) {
      ASSIGN_OR_RETURN(to, c.registry.FindDevice(device));
    }
    auto cancelled = [&] { return c.stopper.asked.load(std::memory_order_relaxed) != 0; };
    CancellableWaits waits(cancelled);
    for (bool moved = false; !moved;) {
      ArrayRef old = v->storage->Read();
      ASSIGN_OR_RETURN(ArrayRef value, MoveTo(old.get(), to));
      ASSIGN_OR_RETURN(moved, v->storage->Replace(old.get(), std::move(value), {}));
    }
    return absl::OkStatus();
  });
}

keel_variable* keel_variable_retain(keel_variable* v) {
  if (v) v->references.fetch_add(1, std::memory_order_relaxed);
  return v;
}

void keel_variable_free(keel_variable* v) {
  if (v && v->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete v;
}

keel_rc keel_module_variable(keel_module* m, const char* name, keel_variable* add, uint32_t* number,
                             keel_variable** out, keel_error** err) {
  return GuardModule(m, err, "module name", {m, name}, [&](Module& module) -> absl::Status {
    uint32_t found = 0;
    if (add) {
      ASSIGN_OR_RETURN(found, module.AddVariable(name, add->storage));
    } else {
      ASSIGN_OR_RETURN(found, module.FindVariable(name));
    }
    if (number) *number = found;
    if (out) *out = new keel_variable{m->state->context, module.variables[found].storage};
    return absl::OkStatus();
  });
}

void keel_print_hook(keel_context* c, keel_print_fn fn, void* arg) {
  if (c) c->state->core.printer.Set(fn, arg);
}
