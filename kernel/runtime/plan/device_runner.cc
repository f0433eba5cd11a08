// device_runner.cc: construction and normal runs of a DeviceRunner. Observed runs are in
// device_observe.cc.
#include "kernel/runtime/plan/device_runner.h"

#include <algorithm>

#include "kernel/base/align.h"
#include "kernel/runtime/plan/order.h"
#include "kernel/runtime/plan/step.h"

namespace keel {
namespace {

void* AsPointer(uint64_t address) { return reinterpret_cast<void*>(address); }

bool BodyMayFail(const Body& body) {
  return std::ranges::any_of(body.nodes, [&](const Body::Node& node) {
    DType first = node.in.empty() || node.in[0] == kNoValue ? DType::kNone : body.values[node.in[0]].dtype;
    return MayFail(*node.op, first) || (node.body && BodyMayFail(*node.body));
  });
}

// Whether a launch of the plan or of a body may store a fault.
bool AnyMayFail(const Lowered& lowered) {
  return std::ranges::any_of(lowered.steps, [](const Step& step) {
    return MayFail(*step.op, step.in_dtypes.empty() ? DType::kNone : step.in_dtypes[0]) ||
           (step.body && BodyMayFail(*step.body)) ||
           std::ranges::any_of(step.graphs, [](const auto& body) { return BodyMayFail(*body); }) ||
           std::ranges::any_of(step.bodies, [](const auto& body) { return AnyMayFail(*body); });
  });
}

absl::Status FaultError(const Lowered& lowered, const Fault& fault) {
  const std::string& device = lowered.accelerator->name();
  if (const Step* at = FindStep(lowered, (fault.word >> 8) - 1)) return FaultStatus(fault, *at, device);
  return Internal("device ", device, ": the fault word ", fault.word,
                  " does not refer to a launch of the plan");
}

absl::Status Explain(const void* plan, const Fault& fault) {
  return FaultError(*static_cast<const Lowered*>(plan), fault);
}

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
                   0};
  ASSIGN_OR_RETURN(r->unread_fault_, r->device_.fault_slots().AddressOf(FaultSlots::kUnread));
  r->may_fail_ = AnyMayFail(lowered);
  r->FindConstants(lowered);
  auto* memory = static_cast<char*>(AsPointer(r->memory_.address()));
  r->frame_ = std::make_unique<Frame>(lowered, binding, r->state_, memory, memory + r->scratch_at_);
  r->FindUses();
  return r;
}

DeviceRunner::~DeviceRunner() {
  device_.params().Free(params_, {{batch_, 0}});
  device_.pool().Free(memory_, {{batch_, failed_copies_}});
}

// Allocates one block: arena, scratch.
absl::Status DeviceRunner::TakeMemory() {
  scratch_at_ = RoundUp(binding_.arena_bytes, device_.alignment());
  ASSIGN_OR_RETURN(memory_,
                   device_.pool().Allocate(scratch_at_ + binding_.scratch_bytes, KEEL_QUEUE_COMPUTE));
  staged_.resize(lowered_.feeds.size());
  feed_places_.resize(staged_.size());
  result_places_.resize(lowered_.fetches.size());
  return absl::OkStatus();
}

void DeviceRunner::FindConstants(const Lowered& lowered) {
  if (lowered.uploaded) {
    constants_ = std::max(constants_, lowered.uploaded->used.of[KEEL_QUEUE_TRANSFER]);
    for (const Allocation& piece : lowered.uploaded->pieces)
      if (piece.segment) segments_.push_back(piece.segment);
  }
  for (const Step& step : lowered.steps)
    for (const auto& body : step.bodies) FindConstants(*body);
}

// Finds the feeds that a step or a fetch reads.
void DeviceRunner::FindUses() {
  feed_used_.assign(lowered_.feeds.size(), false);
  auto use = [&](uint32_t v) {
    const Storage& at = binding_.storage[v];
    if (at.kind == Storage::kFeed) feed_used_[at.place] = true;
  };
  for (const Step& step : lowered_.steps)
    for (uint32_t v : step.in)
      if (v != kNoValue) use(v);
  for (uint32_t v : lowered_.fetches) use(lowered_.Root(v));
}

// The outcome of this run. Null if no launch can fail and all feeds are known to be good.
absl::Status DeviceRunner::MakeOutcome(std::span<keel_array* const> feeds,
                                       const std::shared_ptr<const Lowered>& shared) {
  std::vector<std::shared_ptr<RunOutcome>> of_feeds;
  for (size_t i = 0; i < feeds.size(); i++) {
    const DeviceBlock* block = feed_used_[i] ? feeds[i]->device_block() : nullptr;
    if (!block || !block->outcome || std::ranges::find(of_feeds, block->outcome) != of_feeds.end()) continue;
    if (block->outcome->KnownDone())
      RETURN_IF_ERROR(block->outcome->Get());
    else
      of_feeds.push_back(block->outcome);
  }
  if (may_fail_ || of_feeds.size() > 1) {
    RunOutcome::Options options{lowered_.accelerator, std::move(of_feeds), shared, Explain};
    outcome_ = own_outcome_ = std::make_shared<RunOutcome>(std::move(options));
    device_.AddUnsettled(own_outcome_);
  } else if (!of_feeds.empty()) {
    outcome_ = of_feeds[0];
  }
  state_.env.fault = unread_fault_;
  if (!may_fail_) return absl::OkStatus();
  ASSIGN_OR_RETURN(slot_, device_.fault_slots().Take());
  own_outcome_->SetSlot(slot_);
  ASSIGN_OR_RETURN(state_.env.fault, device_.fault_slots().AddressOf(slot_));
  return absl::OkStatus();
}

absl::Status DeviceRunner::MakeResults(std::span<ArrayRef> out) {
  for (size_t i = 0; i < out.size(); i++) {
    uint32_t v = lowered_.fetches[i];
    ASSIGN_OR_RETURN(out[i], NewDeviceArray(device_, lowered_.values[v].type.dtype, binding_.shapes[v],
                                            KEEL_QUEUE_COMPUTE));
    out[i]->device_block()->outcome = outcome_;
    result_places_[i] = out[i]->device_block()->place();
  }
  return absl::OkStatus();
}

// Uses feeds on the device in place and uploads host feeds.
absl::Status DeviceRunner::PlaceFeeds(std::span<keel_array* const> feeds) {
  uploaded_ = std::max(constants_, device_.state_uploads());
  std::vector<Stager::UploadPart> parts;
  for (size_t i = 0; i < feeds.size(); i++) {
    if (!feed_used_[i]) continue;
    if (DeviceBlock* block = feeds[i]->device_block()) {
      feed_places_[i] = block->place();
      uploaded_ = std::max(uploaded_, block->written.of[KEEL_QUEUE_TRANSFER]);
      continue;
    }
    ASSIGN_OR_RETURN(staged_[i], device_.pool().Allocate(feeds[i]->bytes(), KEEL_QUEUE_TRANSFER));
    feed_places_[i] = AddressOf(staged_[i]);
    parts.push_back({feeds[i]->data(), feed_places_[i], feeds[i]->bytes()});
  }
  return parts.empty() ? absl::OkStatus() : device_.stager().Upload(parts, &uploaded_);
}

// Sets the addresses of feeds and results, which change with each run.
void DeviceRunner::Connect() {
  for (size_t i = 0; i < feed_places_.size(); i++)
    if (feed_used_[i]) frame_->SetFeed(i, AsPointer(feed_places_[i].address()));
  for (size_t i = 0; i < result_places_.size(); i++)
    frame_->SetOutput(i, AsPointer(result_places_[i].address()));
}

absl::Status DeviceRunner::Outcome(keel_rc rc) {
  return rc == KEEL_OK ? absl::OkStatus() : std::exchange(state_.error, absl::OkStatus());
}

absl::Status DeviceRunner::Submit() {
  RETURN_IF_ERROR(device_.fault_slots().Save(*encoder_, slot_));
  ASSIGN_OR_RETURN(batch_, encoder_->Submit());
  return absl::OkStatus();
}

absl::Status DeviceRunner::BeginRun() {
  RETURN_IF_ERROR(device_.fault_slots().Clear(*encoder_, slot_));
  return encoder_->Wait(KEEL_QUEUE_TRANSFER, uploaded_);
}

// An eager op leaves its batch open for others, unless the device is idle.
absl::Status DeviceRunner::EndRun() {
  constexpr size_t kEager = 32;                                           // launches of a batch
  if (options_.eager && lowered_.steps.empty()) encoder_->CountLaunch();  // it has copies
  if (!options_.eager || encoder_->launches() >= kEager || device_.IsDrained(KEEL_QUEUE_COMPUTE))
    return Submit();
  batch_ = encoder_->batch();
  return device_.fault_slots().Save(*encoder_, slot_);
}

absl::Status DeviceRunner::Encode() {
  Encoding encoding(*this);
  RETURN_IF_ERROR(BeginRun());
  if (times_) RETURN_IF_ERROR(encoder_->Timestamp(*times_, 0));
  bool replayed = false;
  if (!state_.observe) {
    ASSIGN_OR_RETURN(replayed, Replay());
  }
  RETURN_IF_ERROR(Outcome(replayed ? frame_->CopyOutputs() : frame_->Run()));
  return EndRun();
}

// Long plans are submitted in batches, so that the device begins early and the work in flight is bounded.
// Other runs may encode between two batches.
absl::Status DeviceRunner::Launched() {
  constexpr size_t kUnordered = 64;  // launches of a batch if these have no numbers
  encoder_->CountLaunch();
  launched_++;
  if (times_) return encoder_->Timestamp(*times_, launched_ * sizeof(uint64_t));
  if (recording_) return absl::OkStatus();
  const bool full = binding_.order.empty()
                        ? encoder_->launches() >= kUnordered
                        : launched_ % kLaunchesOfBatch == 0 && launched_ < lowered_.steps.size();
  return full ? Pause([&] { return device_.LimitRunsInFlight(); }) : absl::OkStatus();
}

absl::Status DeviceRunner::ReadFault() {
  if (own_outcome_)
    RETURN_IF_ERROR(own_outcome_->GetOfFeeds());
  else if (outcome_)
    RETURN_IF_ERROR(outcome_->Get());
  if (slot_ == FaultSlots::kUnread) return absl::OkStatus();
  Fault fault = device_.fault_slots().Read(slot_);
  return fault.word ? FaultError(lowered_, fault) : absl::OkStatus();
}

absl::Status DeviceRunner::EncodeRun(std::span<keel_array* const> feeds, std::span<ArrayRef> out,
                                     Observe observe, const std::shared_ptr<const Lowered>& shared) {
  struct Ending {  // also when memory runs out
    DeviceRunner& runner;
    std::span<keel_array* const> feeds;
    std::span<ArrayRef> out;
    bool failed = true;
    ~Ending() { runner.RecordUse(feeds, out, failed); }
  } ending{*this, feeds, out};
  RETURN_IF_ERROR(device_.LimitRunsInFlight());
  RETURN_IF_ERROR(MakeOutcome(feeds, shared));
  RETURN_IF_ERROR(MakeResults(out));
  RETURN_IF_ERROR(PlaceFeeds(feeds));
  Connect();
  RETURN_IF_ERROR(ReserveParams());
  RETURN_IF_ERROR(observe ? EncodeObserved() : Encode());
  ending.failed = false;
  return absl::OkStatus();
}

// Ties all memory of the run to the batches that contain its work; after a failure, to everything encoded.
void DeviceRunner::RecordUse(std::span<keel_array* const> feeds, std::span<ArrayRef> out, bool failed) {
  if (failed) batch_ = device_.Encoded().of[KEEL_QUEUE_COMPUTE];
  if (failed) uploaded_ = failed_copies_ = device_.Encoded().of[KEEL_QUEUE_TRANSFER];
  if (own_outcome_) own_outcome_->SetBatch(batch_);
  own_outcome_.reset();
  for (Allocation& piece : staged_) device_.pool().Free(std::exchange(piece, {}), {{batch_, uploaded_}});
  auto use = [&](keel_array* array) {
    if (!array || !array->device_block() || array->device_block()->home.get() != &device_) return;
    array->device_block()->Use(KEEL_QUEUE_COMPUTE, batch_);
    if (failed) array->device_block()->Use(KEEL_QUEUE_TRANSFER, failed_copies_);
  };
  for (keel_array* feed : feeds) use(feed);
  for (ArrayRef& array : out) {
    use(array.get());
    if (array) array->device_block()->written.of[KEEL_QUEUE_COMPUTE] = batch_;
  }
}

// Waits if the caller cannot look at the results later.
absl::Status DeviceRunner::Finish(std::span<ArrayRef> out, Observe observe) {
  if (!options_.results_on_device && !out.empty()) return DownloadAll(out);
  if (!limit_ && !observe && (!out.empty() || !outcome_)) return absl::OkStatus();
  RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_COMPUTE, batch_));
  return outcome_ ? outcome_->Get() : absl::OkStatus();
}

absl::Status DeviceRunner::Run(std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe,
                               void* arg, const Deadline* end, const std::shared_ptr<const Lowered>& shared) {
  HostCall host;
  state_.host = &host;
  launched_ = 0;
  slot_ = FaultSlots::kUnread;
  outcome_.reset();
  if (options_.timeout_ms && options_.stopper)
    limit_.emplace(*options_.stopper, EndOfRun(options_, end), own_stop_);
  state_.limit = limit_ ? &*limit_ : nullptr;
  state_.observe = observe;
  state_.shown = observe ? Now() : 0;
  state_.arg = arg;
  auto over = [this] { return stop_->load(std::memory_order_relaxed) || (limit_ && limit_->Over()); };
  CancellableWaits waits(over);
  absl::Status status = EncodeRun(feeds, out, observe, shared);
  const bool encoded = status.ok();
  const size_t at = encoded ? lowered_.steps.size() - 1 : frame_->failed_step();
  if (encoded) status = Finish(out, observe);
  if (absl::IsCancelled(status) && over()) {
    status = Stopped(lowered_.steps.empty() ? "" : lowered_.steps[at].name, options_);
    if (encoded)
      status = Reword(status, absl::StrCat(status.message(), ", before device ", device_.name(),
                                           " had finished the work"));
    if (encoded && limit_ && limit_->Over())
      status =
          Annotate(status, kErrorHint,
                   "raise the option \"timeout_ms\"; if the work never ends, the fault is in the device's "
                   "plugin or driver");
  }
  outcome_.reset();
  limit_.reset();
  return status;
}

DevicePool::~DevicePool() {
  idle.Clear();
  device->FinishWork({{batch.load(), 0}});
  device->FreeRecording(recording.load());
  device->params().Free(params, {});
}

void DevicePool::Use(uint64_t last) { RaiseTo(batch, last); }

absl::Status RunOnDevice(const std::shared_ptr<const Lowered>& shared, Binding& binding,
                         const PlanOptions& options, std::span<keel_array* const> feeds,
                         std::span<ArrayRef> out, Observe observe, void* arg, const Deadline* end) {
  const Lowered& lowered = *shared;
  RETURN_IF_ERROR(lowered.accelerator->CheckUsable());
  for (size_t i = 0; i < feeds.size(); i++)
    if (feeds[i]->device_block() && feeds[i]->device_block()->home != lowered.accelerator)
      return Annotate(Error(absl::StatusCode::kFailedPrecondition, "feed \"",
                            lowered.values[lowered.feeds[i]].name, "\" is in the memory of device ",
                            DeviceOf(feeds[i]), " but the plan runs on ", lowered.accelerator->name()),
                      kErrorHint, "copy it with keel_array_to");
  DevicePool& pool = *binding.device;
  std::unique_ptr<DeviceRunner> runner =
      pool.idle.Take([](const DeviceRunner&) { return true; }, [](std::unique_ptr<DeviceRunner>) {});
  if (!runner) {
    ASSIGN_OR_RETURN(runner, DeviceRunner::Make(lowered, binding, options));
  }
  struct Ending {  // also when memory runs out: ~DevicePool waits for these launches
    DevicePool& pool;
    DeviceRunner& runner;
    ~Ending() { pool.Use(runner.batch()); }
  };
  absl::Status status;
  {
    Ending ending{pool, *runner};
    status = runner->Run(feeds, out, observe, arg, end, shared);
  }
  if (status.ok()) pool.idle.Put(std::move(runner));
  return status;
}

}  // namespace keel
