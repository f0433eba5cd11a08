// device_replay.cc: a plan of launches alone is recorded by the second run of a binding and replayed by later
// ones, with the addresses of that run (keel_device.h, record_begin). One recording serves all runners of the
// binding. Also parameters of launches.
#include <algorithm>

#include "kernel/base/align.h"
#include "kernel/runtime/plan/device_runner.h"
#include "kernel/runtime/plan/moves.h"
#include "kernel/runtime/plan/order.h"
#include "kernel/runtime/plan/step.h"

namespace keel {
namespace {

// Entries of the table: feeds and results follow.
enum : uint16_t { kBlock, kFaultBytes, kFirstFeed };
constexpr size_t kFewestLaunches = 4;  // a replay of fewer is no faster (docs/notes/calls.md)
constexpr uint64_t kParamChunk =
    8192;  // bytes: for several small runs, and bodies with any number of launches

}  // namespace

bool MayRecord(const Lowered& lowered, const Binding& b, const PlanOptions& options) {
  size_t launches = 0;
  for (const Step& step : lowered.steps) {
    if (IsMoves(step)) return false;
    launches += !IsEmpty(step, b);
  }
  return lowered.accelerator->Records() && !b.order.empty() && !options.eager &&
         launches >= kFewestLaunches &&
         kFirstFeed + lowered.feeds.size() + lowered.fetches.size() < KEEL_NO_SLOT;
}

void DeviceRunner::FillTable() {
  table_.assign({memory_.address(), state_.env.fault});
  for (size_t i = 0; i < feed_places_.size(); i++)
    table_.push_back(feed_used_[i] ? feed_places_[i].address() : 0);
  for (const DeviceAddress& place : result_places_) table_.push_back(place.address());
}

uint16_t DeviceRunner::SlotOf(uint32_t v) const {
  if (v == kNoValue) return KEEL_NO_SLOT;
  const Storage& at = binding_.storage[v];
  if (at.kind == Storage::kArena) return kBlock;
  if (at.kind == Storage::kFeed) return static_cast<uint16_t>(kFirstFeed + at.place);
  if (at.kind == Storage::kOutput) return static_cast<uint16_t>(kFirstFeed + feed_places_.size() + at.place);
  return KEEL_NO_SLOT;
}

absl::Status DeviceRunner::RecordLaunches() {
  std::vector<uint16_t> slots;
  for (const Step& step : lowered_.steps) {
    for (const auto* side : {&step.in, &step.out})
      for (uint32_t v : *side) slots.push_back(SlotOf(v));
    slots.insert(slots.end(), {kBlock, kFaultBytes});
  }
  const uint16_t* next = slots.data();
  for (keel_call& call : frame_->calls()) {
    call.slots = next;
    next += call.n_in + call.n_out + 2;
  }
  recording_ = true;
  const keel_rc rc = frame_->RunLaunches();
  recording_ = false;
  for (keel_call& call : frame_->calls()) call.slots = nullptr;
  return Outcome(rc);
}

absl::Status DeviceRunner::Record(keel_recording* out) {
  struct Ending {  // also when memory runs out
    Encoder& encoder;
    bool open = true;
    ~Ending() {
      if (open) encoder.EndRecording(nullptr).IgnoreError();
    }
  };
  RETURN_IF_ERROR(encoder_->BeginRecording(table_));
  Ending ending{*encoder_};
  RETURN_IF_ERROR(RecordLaunches());
  ending.open = false;
  return encoder_->EndRecording(out);
}

// The recording keeps the parameters of its launches.
absl::StatusOr<bool> DeviceRunner::Replay() {
  DevicePool& pool = *binding_.device;
  keel_recording recording = pool.recording.load();
  const bool records = pool.records && !recording && std::exchange(pool.ran, true);
  if (recording || records) FillTable();
  if (records) {
    const uint64_t params_before = params_used_;
    absl::Status status = Record(&recording);
    params_used_ = params_before;
    launched_ = 0;
    pool.records = !absl::IsUnimplemented(status);
    if (pool.records) RETURN_IF_ERROR(status);
    pool.recording = recording;
    if (recording) pool.params = std::exchange(params_, {});
  }
  if (!recording) return false;
  RETURN_IF_ERROR(encoder_->Replay(recording, table_));
  if (state_.Stopping()) return Stopped(lowered_.steps.back().name, options_);
  return true;
}

// Parameters of the launches of the plan itself; none if a recording has them. No allocation may wait for the
// device while this run holds the compute queue.
absl::Status DeviceRunner::ReserveParams() {
  const DevicePool& pool = *binding_.device;
  if (!pool.param_bytes || (pool.recording.load() && !state_.observe)) return absl::OkStatus();
  return params_used_ + pool.param_bytes <= params_.bytes ? absl::OkStatus() : NewParams(pool.param_bytes);
}

// The work that reads the old ones is in the batches up to batch_.
absl::Status DeviceRunner::NewParams(uint64_t bytes) {
  device_.params().Free(std::exchange(params_, {}), {{batch_, 0}});
  ASSIGN_OR_RETURN(params_, device_.params().Allocate(std::max(bytes, kParamChunk), kHostFirst));
  params_used_ = 0;
  return absl::OkStatus();
}

absl::Status DeviceRunner::TakeParams(uint64_t bytes, keel_call* call) {
  const uint64_t rounded = RoundUp(bytes, kParamAlign);
  if (params_used_ + rounded > params_.bytes) RETURN_IF_ERROR(Pause([&] { return NewParams(rounded); }));
  const uint64_t at = params_.offset + params_used_;
  params_used_ += rounded;
  call->params = static_cast<char*>(params_.segment->host) + at;
  call->param_address = params_.segment->address + at;
  return absl::OkStatus();
}

}  // namespace keel
