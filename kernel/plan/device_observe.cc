// device_observe.cc: single operations on a device: uploads of constants, launches for constant folding, and
// observed runs. Normal runs are in device_runner.cc.
#include <algorithm>

#include "kernel/plan/device_runner.h"
#include "kernel/plan/fold.h"
#include "kernel/plan/step.h"

namespace keel {
namespace {

// Allocations for one launch, freed for use after everything encoded by then.
class LaunchMemory {
 public:
  explicit LaunchMemory(Accelerator& device) : device_(device) {}
  ~LaunchMemory() {
    for (const Allocation& piece : pieces_) device_.pool().Free(piece, used.of[0] ? used : device_.Encoded());
  }
  absl::StatusOr<Allocation> Take(uint64_t bytes, int queue) {
    pieces_.emplace_back();  // may throw, so it precedes the allocation
    ASSIGN_OR_RETURN(pieces_.back(), device_.pool().Allocate(bytes, queue));
    return pieces_.back();
  }
  Batches used;  // of the launch; 0: it failed

 private:
  Accelerator& device_;
  std::vector<Allocation> pieces_;
};

// A single launch on the device with operands and results in host memory.
class SingleLaunch {
 public:
  SingleLaunch(const Lowered& lowered, const Step& step, const Launch& launch, uint32_t threads)
      : lowered_(lowered), device_(*lowered.accelerator), step_(step), launch_(launch), pieces_(device_) {
    env_ = {sizeof(keel_env), threads, &HostTable(), device_.handle(), device_.queue(KEEL_QUEUE_COMPUTE),
            &cancelled_,      0};
  }

  // After a failure the launch may still be in the queue, but its state is freed next.
  ~SingleLaunch() {
    if (!pieces_.used.of[0]) device_.FinishWork(device_.Encoded()).IgnoreError();
    device_.fault_slots().GiveBack(slot_, pieces_.used.of[0] ? pieces_.used.of[0] : device_.Encoded().of[0]);
  }

  absl::Status Run(std::span<const keel_tensor* const> in, std::span<keel_tensor* const> out) {
    ASSIGN_OR_RETURN(slot_, device_.fault_slots().Take());
    RETURN_IF_ERROR(PlaceOperands(in, out));
    ASSIGN_OR_RETURN(Allocation scratch, pieces_.Take(launch_.launch.scratch_bytes, KEEL_QUEUE_COMPUTE));
    ASSIGN_OR_RETURN(env_.fault, device_.fault_slots().AddressOf(slot_));
    uint64_t batch = 0;
    RETURN_IF_ERROR(Encode(scratch, &batch));
    std::vector<Stager::DownloadPart> parts;
    for (size_t i = 0; i < out.size(); i++)
      parts.push_back({AddressOf(results_[i]), out[i]->data, BytesOf(*out[i])});
    RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_COMPUTE, batch));
    RETURN_IF_ERROR(device_.stager().Download(parts, batch));
    pieces_.used = {{batch, uploaded_}};
    Fault found = device_.fault_slots().Read(slot_);
    return found.word ? FaultStatus(found, step_, device_.name()) : absl::OkStatus();
  }

 private:
  absl::Status PlaceOperands(std::span<const keel_tensor* const> in, std::span<keel_tensor* const> out) {
    views_.reserve(in.size() + out.size());
    std::vector<Stager::UploadPart> parts;
    for (const keel_tensor* t : in) {
      operands_.push_back(nullptr);
      if (!t) continue;
      ASSIGN_OR_RETURN(Allocation piece, pieces_.Take(BytesOf(*t), KEEL_QUEUE_TRANSFER));
      parts.push_back({keel_ptr(t), AddressOf(piece), BytesOf(*t)});
      AddView(*t, piece);
    }
    RETURN_IF_ERROR(device_.stager().Upload(parts, &uploaded_));
    for (const keel_tensor* t : out) {
      operands_.push_back(nullptr);
      ASSIGN_OR_RETURN(Allocation piece, pieces_.Take(BytesOf(*t), KEEL_QUEUE_COMPUTE));
      results_.push_back(piece);
      AddView(*t, piece);
    }
    return absl::OkStatus();
  }

  void AddView(const keel_tensor& t, const Allocation& piece) {
    views_.push_back(t);
    views_.back().device = device_.id();
    views_.back().data = reinterpret_cast<void*>(piece.address());
    views_.back().byte_offset = 0;
    operands_.back() = &views_.back();
  }

  absl::Status Encode(const Allocation& scratch, uint64_t* batch) {
    size_t n_out = results_.size(), n_in = operands_.size() - n_out;
    keel_call call{};
    call.struct_size = sizeof call;
    call.n_in = static_cast<uint16_t>(n_in);
    call.n_out = static_cast<uint16_t>(n_out);
    call.fault = 1 << 8;
    call.in = operands_.data();
    call.out = operands_.data() + n_in;
    call.state = launch_.launch.state;
    call.scratch = reinterpret_cast<void*>(scratch.address());
    call.env = &env_;
    SetShapeFlags(&call);
    Encoder encoder(device_, KEEL_QUEUE_COMPUTE);
    RETURN_IF_ERROR(device_.fault_slots().Clear(encoder, slot_));
    RETURN_IF_ERROR(encoder.Wait(KEEL_QUEUE_TRANSFER, uploaded_));
    HostCall host;
    keel_rc rc = call.count || call.n_out != 1 ? launch_.launch.run(&call) : KEEL_OK;
    if (rc != KEEL_OK) return NameDevice(lowered_, RunError(host, rc, step_));
    RETURN_IF_ERROR(device_.fault_slots().Save(encoder, slot_));
    ASSIGN_OR_RETURN(*batch, encoder.Submit());
    return absl::OkStatus();
  }

  const Lowered& lowered_;
  Accelerator& device_;
  const Step& step_;
  const Launch& launch_;
  LaunchMemory pieces_;
  FaultSlots::Slot slot_ = FaultSlots::kUnread;
  std::vector<Allocation> results_;
  std::vector<keel_tensor> views_;
  std::vector<keel_tensor*> operands_;
  uint64_t uploaded_ = 0;
  keel_env env_{};
  int32_t cancelled_ = 0;
};

}  // namespace

absl::Status RunOnceOnDevice(const Lowered& lowered, const Step& step, const Launch& launch,
                             std::span<const keel_tensor* const> in, std::span<keel_tensor* const> out,
                             uint32_t threads) {
  return SingleLaunch(lowered, step, launch, threads).Run(in, out);
}

absl::Status FaultStatus(const Fault& fault, const Step& step, const std::string& device) {
  auto code = static_cast<absl::StatusCode>(fault.word & 0xff);
  if (code == absl::StatusCode::kOk || !IsCode(static_cast<keel_rc>(code)))
    code = absl::StatusCode::kInternal;
  absl::Status status =
      Error(code,
            code != absl::StatusCode::kOutOfRange ? absl::StrCat("bad data (code ", fault.word & 0xff, ")")
            : fault.bound ? absl::StrCat("index ", fault.index, " is not in [0, ", fault.bound, ")")
                          : "an index out of range or a division by zero",
            ", found by device ", device, " during the launch");
  return Annotate(StepError(status, step), kErrorPlugin, step.impl->plugin->name);
}

DeviceConstants::~DeviceConstants() {
  for (const Allocation& piece : pieces) device->pool().Free(piece, used);
}

absl::Status UploadConstants(Lowered* lowered) {
  std::vector<bool> needed = NeededConstants(*lowered);
  auto all = std::make_shared<DeviceConstants>();
  all->device = lowered->accelerator;
  all->pieces.resize(needed.size());
  std::vector<Stager::UploadPart> parts;
  for (size_t i = 0; i < needed.size(); i++) {
    if (!needed[i]) continue;
    const Constant& constant = lowered->constants[i];
    ASSIGN_OR_RETURN(all->pieces[i], all->device->pool().Allocate(constant.bytes, KEEL_QUEUE_TRANSFER));
    parts.push_back({constant.data, AddressOf(all->pieces[i]), constant.bytes});
  }
  struct Uploading {  // also when memory runs out
    DeviceConstants& all;
    bool failed = true;
    ~Uploading() {
      if (failed) all.used = all.device->Encoded();
    }
  } uploading{*all};
  RETURN_IF_ERROR(all->device->stager().Upload(parts, &all->used.of[KEEL_QUEUE_TRANSFER]));
  uploading.failed = false;
  lowered->uploaded = std::move(all);
  return absl::OkStatus();
}

// Submits each launch separately, so that the host can read its values before the next launch.
absl::Status DeviceRunner::EncodeObserved() {
  for (size_t s = 0; s < calls_.size(); s++) {
    {
      Encoding encoding(*this);
      if (s == 0) RETURN_IF_ERROR(BeginRun());
      at_ = s;
      RETURN_IF_ERROR(EncodeStep(s));
      RETURN_IF_ERROR(Submit());
    }
    RETURN_IF_ERROR(ShowStep(lowered_, s, calls_[s]));
    RETURN_IF_ERROR(CheckStop(s));
  }
  Encoding encoding(*this);
  if (calls_.empty()) RETURN_IF_ERROR(BeginRun());
  return EndRun();
}

// Shows a step of the plan or of a body to the observer. Requires that batch_ contains its launch.
absl::Status DeviceRunner::ShowStep(const Lowered& lowered, size_t s, const keel_call& device_call) {
  std::vector<Block> blocks;
  std::vector<keel_tensor> views;
  std::vector<keel_tensor*> operands;
  std::vector<Stager::DownloadPart> parts;
  std::vector<const keel_tensor*> values(device_call.in, device_call.in + device_call.n_in);
  values.insert(values.end(), device_call.out, device_call.out + device_call.n_out);
  views.reserve(values.size());
  for (const keel_tensor* value : values) {
    operands.push_back(nullptr);
    if (!value) continue;
    uint64_t bytes = BytesOf(*value);
    blocks.push_back(NewBlock(bytes));
    if (!blocks.back()) return Exhausted("no memory for an observed value of ", bytes, " bytes");
    views.push_back(*value);
    views.back().data = blocks.back().get();
    views.back().device = {1, 0};
    operands.back() = &views.back();
    if (!bytes) continue;
    ASSIGN_OR_RETURN(DeviceAddress place, Locate(value->data));
    parts.push_back({place, views.back().data, bytes});
  }
  RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_COMPUTE, batch_));
  RETURN_IF_ERROR(ReadFault());
  RETURN_IF_ERROR(device_.stager().Download(parts, batch_));
  keel_call call = device_call;
  call.in = operands.data();
  call.out = operands.data() + device_call.n_in;
  return state_.Show(lowered, s, call);
}

}  // namespace keel
