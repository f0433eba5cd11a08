// host_op_on_device.cc: see host_op_on_device.h.
#include "kernel/runtime/plan/host_op_on_device.h"

#include "kernel/runtime/plan/step.h"

namespace keel {

keel_rc HostOpOnDevice::Run(const keel_call& call) {
  absl::Status status = core_.core->reads ? absl::OkStatus() : Fetch(call);
  if (status.ok()) {
    std::vector<keel_tensor*> in;
    for (keel_tensor& t : operands_) in.push_back(&t);
    keel_call here = call;
    here.in = in.data();
    here.state = &core_;
    if (keel_rc rc = RunCore(here); rc != KEEL_OK) return rc;
    if (call.n_out) status = Store(call);
  }
  state_.error = status;
  return static_cast<keel_rc>(status.code());
}

// The value of a variable may be in device memory, and its copy to the host waits.
keel_rc HostOpOnDevice::RunCore(const keel_call& call) {
  const Core& core = *core_.core;
  if (!core.variable || core.takes_array) return core.run(&call);
  keel_rc rc = KEEL_OK;
  state_.error = state_.machine->Pause([&] {
    rc = core.run(&call);
    return absl::OkStatus();
  });
  return rc != KEEL_OK ? rc : static_cast<keel_rc>(state_.error.code());
}

absl::Status HostOpOnDevice::Fetch(const keel_call& call) {
  operands_.clear();
  bytes_.resize(call.n_in);
  if (!call.n_in) return state_.machine->Fetch(nullptr, nullptr, 0);
  for (uint32_t i = 0; i < call.n_in; i++) {
    keel_tensor& t = operands_.emplace_back(*call.in[i]);
    bytes_[i].resize(BytesOf(t));
    RETURN_IF_ERROR(state_.machine->Fetch(t.data, bytes_[i].data(), bytes_[i].size()));
    t.data = bytes_[i].data();
    t.byte_offset = 0;
  }
  return absl::OkStatus();
}

absl::Status HostOpOnDevice::Store(const keel_call& call) {
  const keel_array& value = *core_.array.get();
  return value.bytes() ? state_.machine->Store(call.out[0]->data, value.data(), value.bytes())
                       : absl::OkStatus();
}

}  // namespace keel
