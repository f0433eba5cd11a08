// launch.cc: see launch.h. Launches are encoded, or recorded.
#include "launch.h"

#include "recording.h"
#include "sdk/plugin/guard.h"

namespace keel_cuda {
namespace {

uint64_t AddressOf(const keel_tensor* t) { return t ? reinterpret_cast<uint64_t>(keel_ptr(t)) : 0; }

// By number, in the order of keel_call.slots.
uint64_t AddressOf(const keel_call* call, uint32_t number) {
  if (number < call->n_in) return AddressOf(call->in[number]);
  number -= call->n_in;
  return number < call->n_out ? AddressOf(call->out[number]) : reinterpret_cast<uint64_t>(call->scratch);
}

// The address for a kernel and its slot: relative to the table of a recording.
uint64_t Relative(const keel_call* call, uint32_t number, uint64_t address, unsigned short* slot) {
  keel_recording recording = call->env->queue->recording;
  *slot = recording && call->slots && address ? call->slots[number] : kNoSlot;
  return *slot == kNoSlot ? address : address - recording->table[*slot];
}

void FillArgs(const keel_call* call, const Step& step, KeelArgs* args) {
  for (size_t i = 0; i < step.uses.size(); i++)
    args->address[i] = Relative(call, step.uses[i], AddressOf(call, step.uses[i]), &args->slot[i]);
  const uint32_t fault = uint32_t{call->n_in} + call->n_out + 1;
  args->fault = Relative(call, fault, call->env->fault, &args->fault_slot);
  args->fault_code = call->fault | KEEL_RANGE;
  if (keel_recording recording = call->env->queue->recording)
    args->table = reinterpret_cast<const unsigned long long*>(recording->memory);
  std::copy(step.numbers.begin(), step.numbers.end(), args->numbers);
}

// By cuBLASLt; *done: whether its operands are aligned.
keel_rc TryProduct(const keel_call* call, const Work& work, bool* done) {
  const std::vector<uint32_t>& uses = work.steps[0].uses;
  const auto at = [&](size_t i) { return i < uses.size() ? AddressOf(call, uses[i]) : 0; };
  const BlasOperands operands = {at(0), at(1), at(2), at(3), reinterpret_cast<uint64_t>(call->scratch)};
  const uint64_t all = operands.a | operands.b | operands.c | operands.bias;
  *done = all % kBlasAlignment == 0;
  return *done ? RunProduct(call->env->queue, *work.product, operands) : KEEL_OK;
}

keel_rc Run(const keel_call* call) {
  const Work& work = *static_cast<const Work*>(call->state);
  keel_queue q = call->env->queue;
  if (!work.fails.empty()) return q->device->host->fail(KEEL_RANGE, work.fails.c_str());
  if (work.copies && AddressOf(call->in[0]) == AddressOf(call->out[0])) return KEEL_OK;
  if (keel_rc rc = q->device->Enter()) return rc;
  if (bool done = false; work.product)
    if (keel_rc rc = TryProduct(call, work, &done); rc || done) return rc;
  for (const Step& step : work.steps) {
    KeelArgs args = {};
    FillArgs(call, step, &args);
    if (keel_rc rc = Launch(q, step.kernel, step.blocks, args)) return rc;
  }
  return KEEL_OK;
}

void Release(keel_dev, void* state) { delete static_cast<Work*>(state); }

}  // namespace

keel_rc Finish(Work&& work, keel_launch* launch) {
  launch->scratch_bytes = work.scratch_bytes;
  launch->state = new Work(std::move(work));
  launch->release = Release;
  launch->run = keel::plugin::Guarded<Run>;
  return KEEL_OK;
}

}  // namespace keel_cuda
