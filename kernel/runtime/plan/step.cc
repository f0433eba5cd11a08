// step.cc: views of steps for plugins, preparation, errors and runs of single steps.
#include "kernel/runtime/plan/step.h"

#include <cstdlib>

#include "kernel/base/align.h"
#include "kernel/runtime/device/accelerator.h"

#include "kernel/language/values/blocks.h"
#include "kernel/runtime/plugin/body.h"

namespace keel {
namespace {

absl::StatusOr<int64_t> Number(const Lowered& lowered, Dim d, std::span<const int64_t> symbols) {
  if (!IsSymbolic(d)) return d;
  if (symbols.empty()) return -1;
  return lowered.dims.Evaluate(d, symbols);
}

absl::StatusOr<keel_node::Side> ViewOperand(const Lowered& lowered, uint32_t v,
                                            std::span<const int64_t> symbols) {
  keel_node::Side side;
  if (v == kNoValue) return side;
  const PlanValue& value = lowered.values[v];
  side.dtype = value.type.dtype;
  for (Dim d : value.type.dims) {
    ASSIGN_OR_RETURN(int64_t n, Number(lowered, d, symbols));
    side.dims.push_back(n);
  }
  const PlanValue& root = lowered.values[lowered.Root(v)];
  if (root.where == Where::kConstant) side.data = lowered.constants[root.index].data;
  return side;
}

int64_t Count(const keel_tensor& t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t.ndim; d++) n *= t.shape[d];
  return n;
}

}  // namespace

Launch::~Launch() {
  if (launch.release && !(accelerator && accelerator->given_up())) launch.release(dev, launch.state);
}

absl::StatusOr<keel_node> ViewStep(const Lowered& lowered, const Step& step,
                                   std::span<const int64_t> symbols) {
  keel_node node;
  node.op = step.op;
  node.name = step.name;
  node.exact_convolution = lowered.exact_convolution;
  node.memory = lowered.accelerator.get();
  for (uint32_t v : step.in) {
    ASSIGN_OR_RETURN(keel_node::Side side, ViewOperand(lowered, v, symbols));
    node.in.push_back(std::move(side));
  }
  for (uint32_t v : step.out) {
    ASSIGN_OR_RETURN(keel_node::Side side, ViewOperand(lowered, v, symbols));
    node.out.push_back(std::move(side));
  }
  node.attrs = step.attrs;
  DimMap number = [&](Dim d) { return Number(lowered, d, symbols); };
  RETURN_IF_ERROR(MapDims(number, &node.attrs));
  if (step.body) {
    ASSIGN_OR_RETURN(node.body, ViewBody(*step.body, number, number));
  }
  for (const auto& graph : step.graphs) {
    ASSIGN_OR_RETURN(node.graphs.emplace_back(), ViewBody(*graph, number, number));
  }
  return node;
}

absl::StatusOr<std::shared_ptr<Launch>> Prepare(const Lowered& lowered, const Step& step, Device& device,
                                                const keel_node& node) {
  auto launch = std::make_shared<Launch>();
  ASSIGN_OR_RETURN(launch->dev, device.Open());
  launch->accelerator = lowered.accelerator;
  if (launch->accelerator)
    RETURN_IF_ERROR(launch->accelerator->CheckUsable());  // a driver may hang after fork
  const keel_impl& impl = step.impl->table;
  if (impl.prepare) {
    keel_launch made{};
    made.struct_size = sizeof made;
    HostCall call;
    keel_rc rc = impl.prepare(launch->dev, &HostTable(), &node, &made);
    if (rc != KEEL_OK) return NameDevice(lowered, RunError(call, rc, step));
    launch->launch = made;
  }
  if (!launch->launch.run) launch->launch.run = impl.run;
  if (!launch->launch.run)
    return Annotate(Internal("impl \"", impl.name ? impl.name : "", "\" of ", OpName(*node.op),
                             " prepared a launch without a run function"),
                    kErrorPlugin, device.plugin().name);
  DropPages(lowered, step);
  return launch;
}

void DropPages(const Lowered& lowered, const Step& step) {
  for (uint32_t v : step.in) {
    if (v == kNoValue) continue;
    const PlanValue& root = lowered.values[lowered.Root(v)];
    if (root.where == Where::kConstant) DropPages(lowered.constants[root.index]);
  }
}

void SetShapeFlags(keel_call* call) {
  constexpr uint32_t kMaxFlat = 16;
  call->flags = 0;
  call->count = call->n_out ? Count(*call->out[0]) : 0;
  if (call->n_out != 1 || call->n_in > kMaxFlat) return;
  uint32_t flags = KEEL_CALL_FLAT;
  for (uint32_t i = 0; i < call->n_in; i++) {
    int64_t n = call->in[i] ? Count(*call->in[i]) : 1;
    if (n == 1 && call->count != 1) flags |= KEEL_CALL_ONE(i);
    if (n != 1 && n != call->count) return;
  }
  call->flags = flags;
}

uint64_t BytesOf(const keel_tensor& t) { return keel_bytes(keel_dt_of(&t), keel_count(&t)); }

std::string WithSource(const std::string* source, std::string message) {
  if (source) absl::StrAppend(&message, " (", *source, ")");
  return message;
}

absl::Status StepError(const absl::Status& status, const Step& step) {
  std::string op(OpName(*step.op));
  std::string named = absl::StrCat(op, " \"", step.name, "\": ", status.message());
  return Annotate(
      Annotate(absl::Status(status.code(), WithSource(step.source, std::move(named))), kErrorOp, op),
      kErrorNode, step.name);
}

absl::Status RunError(const HostCall& call, keel_rc rc, const Step& step) {
  return Annotate(StepError(call.Finish(rc, *step.impl->plugin, "ran"), step), kErrorPlugin,
                  step.impl->plugin->name);
}

absl::Status NameDevice(const Lowered& lowered, const absl::Status& status) {
  if (!lowered.accelerator) return status;
  absl::Status named =
      Reword(status, absl::StrCat("device ", lowered.device->name(), ": ", status.message()));
  if (!absl::IsUnimplemented(named)) return named;
  return Annotate(named, kErrorHint, "run on another device, or name one as fallback");
}

absl::Status CheckBranch(int64_t index, size_t branches) {
  if (index >= 0 && index < static_cast<int64_t>(branches)) return absl::OkStatus();
  return Error(absl::StatusCode::kOutOfRange, "index ", index, " is not in [0, ", branches, ")");
}

absl::Status CheckCount(int64_t count, int64_t most) {
  if (count >= 0 && count <= most) return absl::OkStatus();
  return Error(absl::StatusCode::kOutOfRange, "count ", count, " is not in [0, ", most, "]");
}

absl::Status Stopped(const std::string& after, uint32_t timeout_ms) {
  if (timeout_ms)
    return Annotate(Error(absl::StatusCode::kCancelled, "stopped after \"", after, "\": the time limit is ",
                          timeout_ms, " ms"),
                    kErrorHint, "raise the option \"timeout_ms\"");
  return Annotate(Error(absl::StatusCode::kCancelled, "stopped after \"", after, "\" by keel_context_cancel"),
                  kErrorHint, "keel_context_cancel(context, 0) lets this context run again");
}

absl::Status Stopped(const std::string& after, const PlanOptions& options) {
  bool asked = options.stopper && options.stopper->asked.load(std::memory_order_relaxed);
  return Stopped(after, asked ? 0 : options.timeout_ms);
}

Deadline EndOfRun(const PlanOptions& options, const Deadline* given) {
  return given ? *given : Stopper::Clock::now() + std::chrono::milliseconds(options.timeout_ms);
}

Block NewBlock(uint64_t bytes) {
  uint64_t rounded = RoundUp(bytes, kAlign);
  return Block(static_cast<char*>(AllocateLarge(kAlign, rounded ? rounded : kAlign)));
}

absl::Status RunOnce(const Lowered& lowered, const Step& step, Device& device, uint32_t threads,
                     std::span<const keel_tensor* const> in, std::span<keel_tensor* const> out) {
  ASSIGN_OR_RETURN(keel_node node, ViewStep(lowered, step, {}));
  ASSIGN_OR_RETURN(std::shared_ptr<Launch> launch, Prepare(lowered, step, device, node));
  Block scratch = NewBlock(launch->launch.scratch_bytes);
  if (!scratch) return Exhausted("no memory for ", launch->launch.scratch_bytes, " bytes of scratch");
  int32_t cancelled = 0;
  keel_env env{sizeof(keel_env), threads, &HostTable(), launch->dev, nullptr, &cancelled, 0};
  keel_call call{};
  call.struct_size = sizeof call;
  call.n_in = static_cast<uint16_t>(in.size());
  call.n_out = static_cast<uint16_t>(out.size());
  call.in = in.data();
  call.out = out.data();
  call.state = launch->launch.state;
  call.scratch = scratch.get();
  call.scratch_bytes = launch->launch.scratch_bytes;
  call.env = &env;
  SetShapeFlags(&call);
  HostCall host;
  keel_rc rc = call.count || call.n_out != 1 ? launch->launch.run(&call) : KEEL_OK;
  return rc == KEEL_OK ? absl::OkStatus() : RunError(host, rc, step);
}

}  // namespace keel
