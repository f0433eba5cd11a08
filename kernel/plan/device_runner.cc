// device_runner.cc: construction and normal runs of a DeviceRunner. Constants, observed runs and constant
// folding are in device_observe.cc.
#include "kernel/plan/device_runner.h"

#include <algorithm>

#include "kernel/base/align.h"
#include "kernel/plan/calls.h"
#include "kernel/plan/step.h"

namespace keel {
namespace {

void* AsPointer(uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceRunner>> DeviceRunner::Make(const Lowered& lowered,
                                                                 const Binding& binding,
                                                                 const PlanOptions& options) {
  std::unique_ptr<DeviceRunner> r(new DeviceRunner(lowered, binding, options));
  RETURN_IF_ERROR(r->TakeMemory());
  if (options.stopper && !options.timeout_ms) r->stop_ = &options.stopper->asked;
  r->state_.options = &r->options_;
  r->state_.stop = r->stop_;
  r->state_.machine = r.get();
  r->state_.env = {sizeof(keel_env),
                   options.threads,
                   &HostTable(),
                   r->device_.handle(),
                   r->device_.queue(KEEL_QUEUE_COMPUTE),
                   Exported(*r->stop_),
                   r->memory_.address() + r->fault_at_};
  r->FindSegments(lowered);
  r->BuildViews();
  r->BuildCalls();
  r->FindUses();
  return r;
}

DeviceRunner::~DeviceRunner() {
  auto release = [this](const Allocation& piece) {
    if (broken_ && !abandoned_)
      device_.pool().FreeUnsettled(piece);
    else  // a run that was not stopped has waited for its work
      device_.pool().Free(piece, abandoned_.value_or(Tickets{}));
  };
  release(memory_);
  for (const Allocation& piece : staged_) release(piece);
}

// Allocates one block: arena, scratch, downloaded results, fault word.
absl::Status DeviceRunner::TakeMemory() {
  uint64_t align = device_.alignment(), end = RoundUp(binding_.arena_bytes, align);
  scratch_at_ = end;
  end += RoundUp(binding_.scratch_bytes, align);
  for (uint32_t v : lowered_.fetches) {
    result_at_.push_back(end);
    if (!options_.results_on_device) end += RoundUp(BytesOf(lowered_, binding_, v), align);
  }
  fault_at_ = end;
  ASSIGN_OR_RETURN(memory_, device_.pool().Allocate(end + align, KEEL_QUEUE_COMPUTE));
  staged_.resize(lowered_.feeds.size());
  feed_places_.resize(staged_.size());
  feed_ticket_.resize(staged_.size());
  result_places_.resize(lowered_.fetches.size());
  result_ticket_.resize(lowered_.fetches.size());
  return absl::OkStatus();
}

void DeviceRunner::BuildViews() {
  views_ = MakeViews(lowered_, binding_, device_.id());
  for (uint32_t v = 0; v < views_.size(); v++) {
    const Storage& at = binding_.storage[v];
    keel_tensor& t = views_[v];
    if (at.kind == Storage::kFeed || at.kind == Storage::kOutput) outside_.push_back(v);
    if (at.kind == Storage::kArena) t.data = AsPointer(memory_.address() + at.place);
    if (at.kind == Storage::kConstant) t.data = AsPointer(lowered_.uploaded->pieces[at.place].address());
  }
}

void DeviceRunner::BuildCalls() {
  calls_ = MakeCalls(lowered_, binding_, views_, &state_.env, &operands_);
  controls_.resize(calls_.size());
  for (size_t s = 0; s < calls_.size(); s++) {
    keel_call& call = calls_[s];
    call.scratch = AsPointer(memory_.address() + scratch_at_);
    if (lowered_.steps[s].bodies.empty()) continue;
    controls_[s] = MakeControl(lowered_, binding_, s, state_, static_cast<char*>(call.scratch));
    call.state = controls_[s].get();
    call.count = 1;  // runs even if its results are empty
  }
}

// Finds the first step that uses each feed, and the step that completes each result.
void DeviceRunner::FindUses() {
  size_t steps = lowered_.steps.size();
  feeds_at_.resize(steps + 1);
  results_after_.resize(steps + 1);
  feed_used_.assign(lowered_.feeds.size(), false);
  std::vector<size_t> written(lowered_.values.size(), 0);  // by root: 1 + the last step that writes it
  auto use = [&](uint32_t v, size_t step) {
    const Storage& at = binding_.storage[v];
    if (at.kind != Storage::kFeed || feed_used_[at.place]) return;
    feed_used_[at.place] = true;
    feeds_at_[step].push_back(static_cast<uint32_t>(at.place));
  };
  for (size_t s = 0; s < steps; s++) {
    for (uint32_t v : lowered_.steps[s].in)
      if (v != kNoValue) use(v, s);
    for (uint32_t v : lowered_.steps[s].out) written[lowered_.Root(v)] = s + 1;
  }
  for (size_t i = 0; i < lowered_.fetches.size(); i++) {
    uint32_t root = lowered_.Root(lowered_.fetches[i]);
    use(root, steps);
    bool feed = binding_.storage[root].kind == Storage::kFeed;
    results_after_[feed ? steps : written[root]].push_back(static_cast<uint32_t>(i));
  }
}

DeviceAddress DeviceRunner::PlaceOfValue(uint32_t v) const {
  const Storage& at = binding_.storage[v];
  if (at.kind == Storage::kFeed) return feed_places_[at.place];
  if (at.kind == Storage::kConstant) return AddressOf(lowered_.uploaded->pieces[at.place]);
  if (at.kind == Storage::kOutput) return result_places_[at.place];
  return {memory_.segment, memory_.offset + at.place};
}

absl::Status DeviceRunner::MakeResults(std::span<ArrayRef> out) {
  for (size_t i = 0; i < out.size(); i++) {
    uint32_t v = lowered_.fetches[i];
    DType dtype = lowered_.values[v].type.dtype;
    if (options_.results_on_device) {
      ASSIGN_OR_RETURN(out[i], NewDeviceArray(device_, dtype, binding_.shapes[v], KEEL_QUEUE_COMPUTE));
      result_places_[i] = out[i]->device_block()->place();
    } else {
      ASSIGN_OR_RETURN(out[i], NewArray(dtype, binding_.shapes[v], false));
      result_places_[i] = {memory_.segment, memory_.offset + result_at_[i]};
    }
  }
  return absl::OkStatus();
}

// Uses feeds on the device in place and uploads host feeds.
absl::Status DeviceRunner::PlaceFeeds(std::span<keel_array* const> feeds) {
  for (size_t i = 0; i < feeds.size(); i++) {
    if (!feed_used_[i]) continue;
    if (DeviceBlock* block = feeds[i]->device_block()) {
      feed_places_[i] = block->place();
      feed_ticket_[i] = block->Last().of[KEEL_QUEUE_TRANSFER];
      continue;
    }
    if (!staged_[i].block) {
      ASSIGN_OR_RETURN(staged_[i], device_.pool().Allocate(feeds[i]->bytes(), KEEL_QUEUE_TRANSFER));
    }
    feed_places_[i] = AddressOf(staged_[i]);
    feed_ticket_[i] = 0;
    RETURN_IF_ERROR(
        device_.stager().Upload(feeds[i]->data(), feed_places_[i], feeds[i]->bytes(), &feed_ticket_[i]));
  }
  return absl::OkStatus();
}

void DeviceRunner::Connect() {
  for (uint32_t v : outside_) {
    const Storage& at = binding_.storage[v];
    if (at.kind == Storage::kFeed && !feed_used_[at.place]) continue;
    views_[v].data = AsPointer(PlaceOfValue(v).address());
  }
}

absl::Status DeviceRunner::EncodeStep(Encoder& encoder, size_t s) {
  for (uint32_t feed : feeds_at_[s]) RETURN_IF_ERROR(encoder.Wait(KEEL_QUEUE_TRANSFER, feed_ticket_[feed]));
  const keel_call& call = calls_[s];
  if (controls_[s]) return EncodeControl(s);
  if (!call.count && call.n_out == 1) return absl::OkStatus();  // nothing to compute
  HostCall host;
  keel_rc rc = binding_.launches[s]->launch.run(&call);
  return rc == KEEL_OK ? absl::OkStatus() : NameDevice(lowered_, RunError(host, rc, lowered_.steps[s]));
}

// Copies fetches of feeds, constants and other results, then submits: the ticket starts their downloads.
absl::Status DeviceRunner::EncodeResults(Encoder& encoder, size_t after_step, std::span<ArrayRef> out) {
  const std::vector<uint32_t>& ready = results_after_[after_step];
  bool last = after_step + 1 == results_after_.size();
  if (ready.empty() && !last) return absl::OkStatus();
  for (uint32_t i : ready)
    if (uint32_t source = binding_.output_source[i]; source != kNoValue)
      RETURN_IF_ERROR(encoder.Copy(result_places_[i], PlaceOfValue(source), out[i]->bytes()));
  ASSIGN_OR_RETURN(last_ticket_, encoder.Submit());
  for (uint32_t i : ready) {
    result_ticket_[i] = last_ticket_;
    if (out[i]->device_block()) out[i]->device_block()->Use(KEEL_QUEUE_COMPUTE, last_ticket_);
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::EncodeLast(Encoder& encoder, std::span<ArrayRef> out) {
  for (uint32_t feed : feeds_at_.back())
    RETURN_IF_ERROR(encoder.Wait(KEEL_QUEUE_TRANSFER, feed_ticket_[feed]));
  return EncodeResults(encoder, calls_.size(), out);
}

absl::Status DeviceRunner::CheckStop(size_t s) const {
  bool stopped = stop_->load(std::memory_order_relaxed) || (limit_ && limit_->Over());
  return stopped ? Stopped(lowered_.steps[s].name, options_) : absl::OkStatus();
}

absl::Status DeviceRunner::EncodeBatch(size_t from, size_t to, std::span<ArrayRef> out) {
  Encoding encoding(*this);
  Encoder& encoder = *encoder_;
  if (from == 0)
    RETURN_IF_ERROR(encoder.Fill({memory_.segment, memory_.offset + fault_at_}, sizeof(Fault), 0));
  for (size_t s = from; s < to; s++) {
    at_ = s;
    RETURN_IF_ERROR(EncodeResults(encoder, s, out));
    RETURN_IF_ERROR(EncodeStep(encoder, s));
    RETURN_IF_ERROR(CheckStop(s));
  }
  if (to == calls_.size()) return EncodeLast(encoder, out);
  ASSIGN_OR_RETURN(last_ticket_, encoder.Submit());
  return absl::OkStatus();
}

// The device executes one batch while the host encodes the next. Between batches other runs may encode.
absl::Status DeviceRunner::Encode(std::span<ArrayRef> out) {
  pace_.Begin();
  size_t from = 0;
  do {
    uint64_t before = last_ticket_;
    size_t to = std::min(from + pace_.batch(), calls_.size());
    RETURN_IF_ERROR(EncodeBatch(from, to, out));
    if (to < calls_.size()) RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_COMPUTE, before));
    pace_.Next();
    from = to;
  } while (from < calls_.size());
  return absl::OkStatus();
}

absl::Status DeviceRunner::Collect(std::span<ArrayRef> out) {
  std::vector<Stager::Part> parts;
  for (size_t i = 0; i < out.size() && !options_.results_on_device; i++)
    parts.push_back({result_places_[i], out[i]->data(), out[i]->bytes(), result_ticket_[i]});
  parts.push_back({{memory_.segment, memory_.offset + fault_at_}, &fault_, sizeof fault_, last_ticket_});
  return device_.stager().Download(parts);
}

absl::Status DeviceRunner::FaultError(const Fault& fault) const {
  size_t step = (fault.word >> 8) - 1;
  if (const Step* at = FindStep(lowered_, static_cast<uint32_t>(step)))
    return FaultStatus(fault, *at, device_.name());
  return Internal("device ", device_.name(), ": the fault word ", fault.word,
                  " does not refer to a launch of the plan");
}

absl::Status DeviceRunner::RunSteps(std::span<keel_array* const> feeds, std::span<ArrayRef> out,
                                    Observe observe) {
  RETURN_IF_ERROR(MakeResults(out));
  RETURN_IF_ERROR(PlaceFeeds(feeds));
  Connect();
  RETURN_IF_ERROR(observe ? EncodeObserved(out) : Encode(out));
  for (keel_array* feed : feeds)
    if (feed->device_block() && feed->device_block()->home.get() == &device_)
      feed->device_block()->Use(KEEL_QUEUE_COMPUTE, last_ticket_);
  RETURN_IF_ERROR(Collect(out));
  if (fault_.word) return FaultError(fault_);
  return calls_.empty() ? absl::OkStatus() : CheckStop(calls_.size() - 1);
}

absl::Status DeviceRunner::Run(std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe,
                               void* arg, const Deadline* end) {
  fault_ = {};
  at_ = 0;
  last_ticket_ = 0;
  if (options_.timeout_ms && options_.stopper)
    limit_.emplace(*options_.stopper, EndOfRun(options_, end), own_stop_);
  state_.limit = limit_ ? &*limit_ : nullptr;
  state_.observe = observe;
  state_.shown = observe ? Now() : 0;
  state_.arg = arg;
  absl::Status status;
  auto over = [this] { return stop_->load(std::memory_order_relaxed) || (limit_ && limit_->Over()); };
  try {
    CancellableWaits waits(over);
    status = RunSteps(feeds, out, observe);
    if (!status.ok() && !fault_.word && over()) {
      absl::Status left = Abandon(feeds, out);
      limit_.reset();
      if (!left.ok()) Settle(feeds, out);
      return Stopped(calls_.empty() ? "" : lowered_.steps[at_].name, options_);
    }
  } catch (const std::bad_alloc&) {
    limit_.reset();
    Settle(feeds, out);
    throw;
  }
  limit_.reset();
  if (!status.ok() && !fault_.word) Settle(feeds, out);
  return status;
}

absl::Status DeviceRunner::Abandon(std::span<keel_array* const> feeds, std::span<ArrayRef> out) {
  ASSIGN_OR_RETURN(Tickets last, device_.Fence());
  broken_ = true;
  abandoned_ = last;
  auto use = [&](keel_array* array) {
    if (!array || !array->device_block() || array->device_block()->home.get() != &device_) return;
    for (int q = 0; q < kQueues; q++) array->device_block()->Use(q, last.of[q]);
  };
  for (keel_array* feed : feeds) use(feed);
  for (ArrayRef& array : out) use(array.get());
  std::lock_guard lock(binding_.device->mutex);
  binding_.device->device = lowered_.accelerator;
  for (int q = 0; q < kQueues; q++)
    binding_.device->abandoned.of[q] = std::max(binding_.device->abandoned.of[q], last.of[q]);
  return absl::OkStatus();
}

DevicePool::~DevicePool() {
  idle.clear();
  if (device) device->HostWait(abandoned).IgnoreError();
}

void DeviceRunner::Settle(std::span<keel_array* const> feeds, std::span<ArrayRef> out) {
  broken_ = !device_.pool().TrySettle();
  if (!broken_) return;
  for (keel_array* feed : feeds)
    if (feed->device_block() && feed->device_block()->home.get() == &device_)
      feed->device_block()->unsettled = true;
  for (ArrayRef& array : out)
    if (array && array->device_block()) array->device_block()->unsettled = true;
}

absl::Status RunOnDevice(const Lowered& lowered, Binding& binding, const PlanOptions& options,
                         std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe,
                         void* arg, const Deadline* end) {
  RETURN_IF_ERROR(lowered.accelerator->CheckProcess());
  for (size_t i = 0; i < feeds.size(); i++)
    if (feeds[i]->device_block() && feeds[i]->device_block()->home != lowered.accelerator)
      return Annotate(Error(absl::StatusCode::kFailedPrecondition, "feed \"",
                            lowered.values[lowered.feeds[i]].name, "\" is in the memory of device ",
                            DeviceOf(feeds[i]), " but the plan runs on ", lowered.accelerator->name()),
                      kErrorHint, "copy it with keel_array_to");
  std::unique_ptr<DeviceRunner> runner;
  {
    std::lock_guard lock(binding.device->mutex);
    if (!binding.device->idle.empty()) {
      runner = std::move(binding.device->idle.back());
      binding.device->idle.pop_back();
    }
  }
  if (!runner) {
    ASSIGN_OR_RETURN(runner, DeviceRunner::Make(lowered, binding, options));
  }
  absl::Status status = runner->Run(feeds, out, observe, arg, end);
  std::lock_guard lock(binding.device->mutex);
  if (!runner->broken() && binding.device->idle.size() < DevicePool::kIdle)
    binding.device->idle.push_back(std::move(runner));
  return status;
}

}  // namespace keel
