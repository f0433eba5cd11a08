// op.cc: eager ops. An op handle keeps a plan for each recent signature of operands, so eager and planned
// execution share their code. The quick table (eager.h) contains the launches of these plans and serves most
// calls.
#include "kernel/api/eager.h"
#include "kernel/api/eager_device.h"
#include "kernel/api/handles.h"
#include "kernel/base/recent.h"
#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/op_facts.h"
#include "kernel/program/trace/trace.h"
#include "kernel/runtime/plan/make_plan.h"
#include "kernel/runtime/plan/op_graph.h"
#include "kernel/runtime/plugin/host.h"

using namespace keel;

struct keel_op {
  std::shared_ptr<Context> context;
  Device* device;
  const OpDef* op;
  Attrs attrs;
  struct Entry {
    Signature signature;
    std::shared_ptr<Plan> plan;
  };
  QuickTable quick;
  std::unique_ptr<DeviceQuickTable> quick_there;  // instead of quick, for a device with its own memory
  std::shared_ptr<const Taped> taped;             // once tape_ready
  std::atomic<bool> tape_ready{false};
  Mutex mutex;
  Recent<std::shared_ptr<Entry>, 32> entries;
};

namespace {

// Keeps cold code out of the hot functions.
#define KEEL_COLD [[gnu::cold, gnu::noinline]]
KEEL_COLD absl::StatusOr<std::shared_ptr<keel_op::Entry>> MakeEntry(keel_op& op, keel_array* const* in,
                                                                    uint32_t n, Signature signature) {
  auto entry = std::make_shared<keel_op::Entry>();
  entry->signature = std::move(signature);
  std::vector<TensorType> operands(n);
  for (uint32_t i = 0; i < n; i++)
    if (in[i]) operands[i] = TypeOf(in[i]);
  PlanOptions options = op.context->Options();
  options.results_on_device = options.eager = true;
  Module module(op.context->catalogue);
  ASSIGN_OR_RETURN(OpGraph alone, BuildOp(module, *op.op, op.attrs, operands));
  ASSIGN_OR_RETURN(entry->plan, MakePlan(alone.On(op.device), options));
  if (op.quick_there)
    op.quick_there->Learn(in, n, entry->plan);
  else
    op.quick.Learn(in, n, entry->plan, options);
  return entry;
}

KEEL_COLD absl::StatusOr<std::shared_ptr<keel_op::Entry>> FindEntry(keel_op& op, keel_array* const* in,
                                                                    uint32_t n) {
  Signature signature = SignatureOf(in, n);
  std::shared_ptr<keel_op::Entry> evicted;  // destroyed after the lock is released: it may wait for a device
  std::lock_guard lock(op.mutex);
  if (auto* known = op.entries.Find([&](const auto& entry) { return entry->signature == signature; }))
    return *known;
  ASSIGN_OR_RETURN(auto made, MakeEntry(op, in, n, std::move(signature)));
  evicted = op.entries.Add(made);
  return made;
}

KEEL_COLD absl::Status Apply(keel_op& op, keel_array* const* in, uint32_t n_in, keel_array** out,
                             uint32_t n_out) {
  ASSIGN_OR_RETURN(Trace * trace, Trace::OfAll({in, n_in}));
  if (trace) return trace->Apply(*op.op, op.attrs, op.device->name(), {in, n_in}, {out, n_out});
  ASSIGN_OR_RETURN(std::shared_ptr<keel_op::Entry> entry, FindEntry(op, in, n_in));
  if (entry->plan->outputs() != n_out) return NoRoom(OpName(*op.op), entry->plan->outputs(), n_out);
  std::vector<keel_array*> feeds;
  for (uint32_t i = 0; i < n_in; i++)
    if (in[i]) feeds.push_back(in[i]);
  std::vector<ArrayRef> results(n_out);
  RETURN_IF_ERROR(entry->plan->Run(feeds, results));
  for (uint32_t i = 0; i < n_out; i++) out[i] = results[i].Detach();
  return absl::OkStatus();
}

// After a miss of the quick table: reports the error, or runs a plan.
KEEL_COLD absl::Status ApplyRest(keel_op* op, keel_array* const* in, uint32_t n_in, keel_array** out,
                                 uint32_t n_out) {
  RETURN_IF_ERROR(CheckGiven("keel_apply", "op in[n_in] out[n_out]", {op, in, n_in, out, n_out}));
  return Annotate(Apply(*op, in, n_in, out, n_out), kErrorOp, OpName(*op->op));
}

}  // namespace

keel_rc keel_op_new(keel_context* c, const char* device, const char* name, uint32_t version,
                    const char* const* attr_names, const keel_attr* attrs, uint32_t n_attrs, keel_op** out,
                    keel_error** err) {
  return Guard(err, "context device op attr_names[n_attrs]* attrs[n_attrs] out",
               {c, device, name, attr_names, n_attrs, attrs, n_attrs, out}, [&]() -> absl::Status {
                 auto op = std::make_unique<keel_op>();
                 op->context = c->state;
                 ASSIGN_OR_RETURN(op->device, c->state->registry.FindDevice(device));
                 ASSIGN_OR_RETURN(op->op, c->state->catalogue->Find(name, version));
                 ASSIGN_OR_RETURN(op->attrs, OwnAttrs(attr_names, attrs, n_attrs));
                 RETURN_IF_ERROR(Annotate(CheckAttrs(*op->op, op->attrs), kErrorOp, name));
                 if (!op->device->host_memory()) op->quick_there = std::make_unique<DeviceQuickTable>();
                 *out = op.release();
                 return absl::OkStatus();
               });
}

void keel_op_free(keel_op* op) { delete op; }

namespace {

[[gnu::always_inline]] inline keel_rc ApplyNow(keel_op* op, keel_array* const* in, uint32_t n_in,
                                               keel_array** out, uint32_t n_out, keel_error** err) {
  return GuardInline(
      err,
      [&]() -> absl::Status {
        absl::Status error;
        QuickTable::Outcome outcome = QuickTable::kUnknown;
        if (n_out == 1 && !NeedsCheck(0, op, in, out)) [[likely]] {
          if (op->quick_there) [[unlikely]]
            outcome = op->quick_there->Apply(in, n_in, out, &error);
          else
            outcome = op->quick.Apply(in, n_in, out, &error);
        }
        if (outcome == QuickTable::kDone) return absl::OkStatus();
        // A launch may decline these dims: the plan replaces it.
        if (outcome == QuickTable::kFailed && !absl::IsUnimplemented(error)) [[unlikely]]
          return Annotate(std::move(error), kErrorOp, OpName(*op->op));
        return ApplyRest(op, in, n_in, out, n_out);
      },
      "keel_apply");
}

KEEL_COLD void Show(const keel_op& op, keel_array* const* out, uint32_t n_out, int64_t begin) {
  if (!n_out || !out[0]->symbolic())
    Timeline::Add(op.device->name(), {OpName(*op.op), "eager", begin, Now()});
}

}  // namespace

keel_rc keel_apply(keel_op* op, keel_array* const* in, uint32_t n_in, keel_array** out, uint32_t n_out,
                   keel_error** err) {
  const int64_t begin = Timeline::ShowsRuns() ? Now() : 0;
  const keel_rc rc = ApplyNow(op, in, n_in, out, n_out, err);
  if (begin && rc == KEEL_OK) [[unlikely]]
    Show(*op, out, n_out, begin);
  return rc;
}

namespace {

// The record of the op for tapes, made at first use.
const std::shared_ptr<const Taped>& TapedOf(keel_op& op) {
  if (op.tape_ready.load(std::memory_order_acquire)) [[likely]]
    return op.taped;
  std::lock_guard lock(op.mutex);
  if (!op.taped) op.taped = Taped::Of(*op.op, op.attrs);
  op.tape_ready.store(true, std::memory_order_release);
  return op.taped;
}

// Applies the op, and records it if there is a tape.
[[gnu::always_inline]] inline keel_rc ApplyTaped(Tape* tape, keel_op* op, keel_array* const* in,
                                                 uint32_t n_in, keel_array** out, uint32_t n_out,
                                                 keel_error** err) {
  keel_rc rc = keel_apply(op, in, n_in, out, n_out, err);
  if (rc != KEEL_OK || !tape || (n_out && out[0]->symbolic())) return rc;
  return GuardInline(err, [&] {
    tape->Record(TapedOf(*op), op->device, {in, n_in}, {out, n_out});
    return absl::OkStatus();
  });
}

}  // namespace

KEEL_COLD static keel_rc CheckApply(keel_op* op, keel_array* const* in, uint32_t n_in, keel_array** out,
                                    uint32_t n_out, keel_error** err) {
  return Guard(
      err, "op in[n_in] out[n_out]", {op, in, n_in, out, n_out}, [] { return absl::OkStatus(); },
      "keel_trace_apply");
}

keel_rc keel_trace_apply(keel_trace* within, keel_tape* tape, keel_op* op, keel_array* const* in,
                         uint32_t n_in, keel_array** out, uint32_t n_out, keel_error** err) {
  if (NeedsCheck(n_in | n_out, op, in, out)) [[unlikely]]
    if (keel_rc rc = CheckApply(op, in, n_in, out, n_out, err); rc != KEEL_OK) return rc;
  if (!within || !within->tracing.trace) {
    return ApplyTaped(TapeOf(tape, within), op, in, n_in, out, n_out, err);
  }
  return Guard(err, [&] {
    return Annotate(TraceOf(within)->Apply(*op->op, op->attrs, op->device->name(), {in, n_in}, {out, n_out}),
                    kErrorOp, OpName(*op->op));
  });
}
