// device_observe.cc: errors of launches, and observed runs. Normal runs are in
// device_runner.cc.
#include <algorithm>

#include "kernel/plan/device_runner.h"
#include "kernel/plan/step.h"

namespace keel {

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
