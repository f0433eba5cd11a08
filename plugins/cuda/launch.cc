// launch.cc: see launch.h. Launches are encoded, or recorded.
#include "launch.h"

#include "sdk/plugin/guard.h"

namespace keel_cuda {
namespace {

uint64_t AddressOf(const keel_tensor* t) { return t ? reinterpret_cast<uint64_t>(keel_ptr(t)) : 0; }

// Addresses of a launch by number, in the order of keel_call.slots: of a run.
struct OfRun {
  const keel_call& call;

  uint64_t table() const { return 0; }
  uint32_t fault() const { return call.fault; }
  uint32_t scratch_number() const { return uint32_t{call.n_in} + call.n_out; }
  uint64_t Address(uint32_t number) const {
    if (number < call.n_in) return AddressOf(call.in[number]);
    if (number < scratch_number()) return AddressOf(call.out[number - call.n_in]);
    return number == scratch_number() ? reinterpret_cast<uint64_t>(call.scratch) : call.env->fault;
  }
  Place At(uint32_t number) const { return {Address(number), kNoSlot}; }
  // The memory of a graph for an operand of a product, if it has one; with a copy of an operand that is read.
  static keel_rc Relay(keel_queue, size_t, uint64_t*) { return KEEL_OK; }
  static keel_rc CopyBack(keel_queue) { return KEEL_OK; }
};

// The same, of a recorded launch.
struct OfRecording {
  const RecordedLaunch& launch;
  const Entries& entries;

  uint64_t table() const { return entries.memory; }
  uint32_t fault() const { return launch.fault; }
  uint32_t scratch_number() const { return static_cast<uint32_t>(launch.places.size()) - 2; }
  uint64_t Address(uint32_t number) const {
    const Place& place = launch.places[number];
    return place.slot == kNoSlot ? place.address : place.address + entries.table[place.slot];
  }
  Place At(uint32_t number) const {
    const Place& place = launch.places[number];
    const bool kept = !entries.memory || std::ranges::binary_search(entries.kept, place.slot);
    return kept ? Place{Address(number), kNoSlot} : place;
  }
  keel_rc Relay(keel_queue q, size_t use, uint64_t* address) const {
    if (!entries.memory || !launch.relays[use].address) return KEEL_OK;
    *address = launch.relays[use].address;
    return use == LibraryCall::kResult ? KEEL_OK : Move(q, use, 0);
  }
  keel_rc CopyBack(keel_queue q) const { return entries.memory ? Move(q, LibraryCall::kResult, 1) : KEEL_OK; }
  // A copy between the place of an operand, which is operand `side` of the kernel, and its relay.
  keel_rc Move(keel_queue q, size_t use, int side) const {
    const RecordedLaunch::Relay& relay = launch.relays[use];
    if (!relay.copy) return KEEL_OK;
    const Place place = At(launch.work->steps[0].uses[use]);
    KeelArgs args = {};
    args.table = reinterpret_cast<const unsigned long long*>(entries.memory);
    args.address[side] = place.address, args.slot[side] = place.slot;
    args.address[1 - side] = relay.address, args.slot[1 - side] = kNoSlot;
    args.numbers[0] = static_cast<int64_t>(launch.work->product->bytes[use]);
    return Launch(q, relay.copy, Blocks(CeilDiv(args.numbers[0], 16)), args);
  }
};

template <class From>
void FillArgs(const From& from, const Step& step, KeelArgs* args) {
  for (size_t i = 0; i < step.uses.size(); i++) {
    const Place place = from.At(step.uses[i]);
    args->address[i] = place.address;
    args->slot[i] = place.slot;
  }
  const Place fault = from.At(from.scratch_number() + 1);
  args->fault = fault.address;
  args->fault_slot = fault.slot;
  args->fault_code = from.fault() | KEEL_RANGE;
  args->table = reinterpret_cast<const unsigned long long*>(from.table());
  std::copy(step.numbers.begin(), step.numbers.end(), args->numbers);
}

template <class From>
keel_rc LaunchSteps(keel_queue q, const std::vector<Step>& steps, const From& from) {
  for (const Step& step : steps) {
    KeelArgs args = {};
    FillArgs(from, step, &args);
    if (keel_rc rc = Launch(q, step.kernel, step.blocks, args, step.threads)) return rc;
  }
  return KEEL_OK;
}

// By a library; *done: whether its operands are aligned.
template <class From>
keel_rc TryProduct(keel_queue q, const Work& work, const From& from, bool* done) {
  const std::vector<uint32_t>& uses = work.steps[0].uses;
  LibraryCall::Addresses at{};
  for (size_t i = 0; i < uses.size(); i++) at[i] = from.Address(uses[i]);
  *done = std::ranges::none_of(at, [](uint64_t address) { return address % LibraryCall::kAlignment; });
  if (!*done) return work.steps[0].kernel ? KEEL_OK : KEEL_UNIMPLEMENTED;
  for (size_t i = 0; i < uses.size(); i++)
    if (keel_rc rc = from.Relay(q, i, &at[i])) return rc;
  if (keel_rc rc = work.product->Encode(q, at)) return rc;
  if (keel_rc rc = from.CopyBack(q)) return rc;
  return LaunchSteps(q, work.mends, from);
}

template <class From>
keel_rc EncodeWork(keel_queue q, const Work& work, const From& from) {
  if (bool done = false; work.product)
    if (keel_rc rc = TryProduct(q, work, from, &done); rc || done) return rc;
  return LaunchSteps(q, work.steps, from);
}

RecordedLaunch Recorded(const keel_call& call, const Work& work, const std::vector<uint64_t>& table) {
  const OfRun from{call};
  RecordedLaunch made = {&work, call.fault, call.n_in, {}, {}};
  for (uint32_t number = 0; number < from.scratch_number() + 2; number++) {
    const uint64_t address = from.Address(number);
    const uint16_t slot = call.slots && address ? call.slots[number] : kNoSlot;
    made.places.push_back({slot == kNoSlot ? address : address - table[slot], slot});
  }
  return made;
}

keel_rc Run(const keel_call* call) {
  const Work& work = *static_cast<const Work*>(call->state);
  keel_queue q = call->env->queue;
  if (!work.fails.empty()) return q->device->host->fail(KEEL_RANGE, work.fails.c_str());
  if (work.copies && AddressOf(call->in[0]) == AddressOf(call->out[0])) return KEEL_OK;
  if (RecordedLaunches* to = q->recording)
    return to->launches.push_back(Recorded(*call, work, to->table)), KEEL_OK;
  if (keel_rc rc = q->device->Enter()) return rc;
  return EncodeWork(q, work, OfRun{*call});
}

void Release(keel_dev, void* state) { delete static_cast<Work*>(state); }

}  // namespace

keel_rc Encode(keel_queue q, const RecordedLaunch& launch, const Entries& entries) {
  return EncodeWork(q, *launch.work, OfRecording{launch, entries});
}

keel_rc Finish(Work&& work, keel_launch* launch) {
  launch->scratch_bytes = work.scratch_bytes;
  launch->state = new Work(std::move(work));
  launch->release = Release;
  launch->run = keel::plugin::Guarded<Run>;
  return KEEL_OK;
}

}  // namespace keel_cuda
