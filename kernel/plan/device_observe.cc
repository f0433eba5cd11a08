// device_observe.cc: single operations on a device: uploads of constants, launches for constant folding, and
// observed runs. Normal runs are in device_runner.cc.
#include <algorithm>

#include "kernel/plan/device_runner.h"
#include "kernel/plan/fold.h"
#include "kernel/plan/step.h"

namespace keel {
namespace {

// Allocations for one launch. The destructor frees them; unless `done`, the launch may still use them.
class LaunchMemory {
 public:
  explicit LaunchMemory(Accelerator& device) : device_(device) {}
  ~LaunchMemory() {
    bool settled = done || device_.pool().TrySettle();
    for (const Allocation& piece : pieces_)
      settled ? device_.pool().Free(piece, {}) : device_.pool().FreeUnsettled(piece);
  }
  absl::StatusOr<Allocation> Take(uint64_t bytes, int queue) {
    pieces_.emplace_back();  // may throw, so it precedes the allocation
    ASSIGN_OR_RETURN(pieces_.back(), device_.pool().Allocate(bytes, queue));
    return pieces_.back();
  }
  bool done = false;

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

  absl::Status Run(std::span<const keel_tensor* const> in, std::span<keel_tensor* const> out) {
    RETURN_IF_ERROR(PlaceOperands(in, out));
    ASSIGN_OR_RETURN(Allocation fault, pieces_.Take(sizeof(Fault), KEEL_QUEUE_COMPUTE));
    ASSIGN_OR_RETURN(Allocation scratch, pieces_.Take(launch_.launch.scratch_bytes, KEEL_QUEUE_COMPUTE));
    env_.fault = fault.address();
    uint64_t ticket = 0;
    RETURN_IF_ERROR(Encode(fault, scratch, &ticket));
    Fault found;
    std::vector<Stager::Part> parts{{AddressOf(fault), &found, sizeof found, ticket}};
    for (size_t i = 0; i < out.size(); i++)
      parts.push_back({AddressOf(results_[i]), out[i]->data, BytesOf(*out[i]), ticket});
    RETURN_IF_ERROR(device_.stager().Download(parts));
    pieces_.done = true;
    return found.word ? FaultStatus(found, step_, device_.name()) : absl::OkStatus();
  }

 private:
  absl::Status PlaceOperands(std::span<const keel_tensor* const> in, std::span<keel_tensor* const> out) {
    views_.reserve(in.size() + out.size());
    for (const keel_tensor* t : in) {
      operands_.push_back(nullptr);
      if (!t) continue;
      ASSIGN_OR_RETURN(Allocation piece, pieces_.Take(BytesOf(*t), KEEL_QUEUE_TRANSFER));
      RETURN_IF_ERROR(device_.stager().Upload(keel_ptr(t), AddressOf(piece), BytesOf(*t), &uploaded_));
      AddView(*t, piece);
    }
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

  absl::Status Encode(const Allocation& fault, const Allocation& scratch, uint64_t* ticket) {
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
    RETURN_IF_ERROR(encoder.Fill(AddressOf(fault), sizeof(Fault), 0));
    RETURN_IF_ERROR(encoder.Wait(KEEL_QUEUE_TRANSFER, uploaded_));
    HostCall host;
    keel_rc rc = call.count || call.n_out != 1 ? launch_.launch.run(&call) : KEEL_OK;
    if (rc != KEEL_OK) return NameDevice(lowered_, RunError(host, rc, step_));
    ASSIGN_OR_RETURN(*ticket, encoder.Submit());
    return absl::OkStatus();
  }

  const Lowered& lowered_;
  Accelerator& device_;
  const Step& step_;
  const Launch& launch_;
  LaunchMemory pieces_;
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
  absl::Status status =
      Error(code,
            code != absl::StatusCode::kOutOfRange ? absl::StrCat("bad data (code ", fault.word & 0xff, ")")
            : fault.bound ? absl::StrCat("index ", fault.index, " is not in [0, ", fault.bound, ")")
                          : "an index out of range or a division by zero",
            ", found by device ", device, " during the launch");
  return Annotate(StepError(status, step), kErrorPlugin, step.impl->plugin->name);
}

DeviceConstants::~DeviceConstants() {
  settled = settled || device->pool().TrySettle();
  for (const Allocation& piece : pieces)
    settled ? device->pool().Free(piece, {}) : device->pool().FreeUnsettled(piece);
}

absl::Status UploadConstants(Lowered* lowered) {
  std::vector<bool> needed = NeededConstants(*lowered);
  auto all = std::make_shared<DeviceConstants>();
  all->device = lowered->accelerator;
  all->pieces.resize(needed.size());
  uint64_t ticket = 0;
  absl::Status status;
  for (size_t i = 0; i < needed.size() && status.ok(); i++) {
    if (!needed[i]) continue;
    absl::StatusOr<Allocation> piece =
        all->device->pool().Allocate(lowered->constants[i].bytes, KEEL_QUEUE_TRANSFER);
    status = piece.status();
    if (!status.ok()) break;
    all->pieces[i] = *piece;
    status = all->device->stager().Upload(lowered->constants[i].data, AddressOf(*piece),
                                          lowered->constants[i].bytes, &ticket);
  }
  if (status.ok()) status = all->device->HostWait(KEEL_QUEUE_TRANSFER, ticket);
  if (status.ok()) all->settled = true;
  if (status.ok()) lowered->uploaded = std::move(all);
  return status;
}

// Submits each launch separately, so that the host can read its values before the next launch.
absl::Status DeviceRunner::EncodeObserved(std::span<ArrayRef> out) {
  for (size_t s = 0; s < calls_.size(); s++) {
    {
      Encoding encoding(*this);
      Encoder& encoder = *encoder_;
      if (s == 0)
        RETURN_IF_ERROR(encoder.Fill({memory_.segment, memory_.offset + fault_at_}, sizeof(Fault), 0));
      at_ = s;
      RETURN_IF_ERROR(EncodeResults(encoder, s, out));
      RETURN_IF_ERROR(EncodeStep(encoder, s));
      ASSIGN_OR_RETURN(last_ticket_, encoder.Submit());
    }
    RETURN_IF_ERROR(ShowStep(lowered_, s, calls_[s]));
    RETURN_IF_ERROR(CheckStop(s));
  }
  Encoder encoder(device_, KEEL_QUEUE_COMPUTE);
  if (calls_.empty())
    RETURN_IF_ERROR(encoder.Fill({memory_.segment, memory_.offset + fault_at_}, sizeof(Fault), 0));
  return EncodeLast(encoder, out);
}

// Shows a step of the plan or of a body to the observer. Requires that last_ticket_ covers its launch.
absl::Status DeviceRunner::ShowStep(const Lowered& lowered, size_t s, const keel_call& device_call) {
  std::vector<Block> blocks;
  std::vector<keel_tensor> views;
  std::vector<keel_tensor*> operands;
  std::vector<Stager::Part> parts{
      {{memory_.segment, memory_.offset + fault_at_}, &fault_, sizeof fault_, last_ticket_}};
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
    parts.push_back({place, views.back().data, bytes, last_ticket_});
  }
  RETURN_IF_ERROR(device_.stager().Download(parts));
  if (fault_.word) return FaultError(fault_);
  keel_call call = device_call;
  call.in = operands.data();
  call.out = operands.data() + device_call.n_in;
  return state_.Show(lowered, s, call);
}

}  // namespace keel
