// device_observe.cc: errors of launches, and observed runs. Normal runs are in
// device_runner.cc.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "kernel/language/opset/def.h"
#include "kernel/runtime/plan/calls.h"
#include "kernel/runtime/plan/device_runner.h"
#include "kernel/runtime/plan/step.h"

namespace keel {

namespace {

// The catalogue's text for a launch whose fault has no bound; without one, or with several in a body, a
// general one.
void FindFailures(const OpDef& op, DType first, const Body* body, std::set<std::string_view>* texts) {
  for (const opset::FailDef& f : op.fails)
    if (!f.dtypes || f.dtypes & opset::Bit(first)) texts->insert(f.text);
  for (size_t i = 0; body && i < body->nodes.size(); i++) {
    const Body::Node& n = body->nodes[i];
    const bool typed = !n.in.empty() && n.in[0] != kNoValue;
    FindFailures(*n.op, typed ? body->values[n.in[0]].dtype : DType::kNone, n.body.get(), texts);
  }
}
std::string WithoutBound(const Fault& fault, const Step& step) {
  std::set<std::string_view> texts;
  FindFailures(*step.op, step.in_dtypes.empty() ? DType::kNone : step.in_dtypes[0], step.body.get(), &texts);
  if (texts.size() != 1 || absl::StrContains(*texts.begin(), '{'))  // of an index that is not known
    return "an index out of range or a division by zero";
  // A device that stores no index leaves 0.
  return fault.index ? absl::StrCat(*texts.begin(), " at element ", fault.index)
                     : std::string(*texts.begin());
}

}  // namespace

absl::Status FaultStatus(const Fault& fault, const Step& step, const std::string& device) {
  auto code = static_cast<absl::StatusCode>(fault.word & 0xff);
  if (code == absl::StatusCode::kOk || !IsCode(static_cast<keel_rc>(code)))
    code = absl::StatusCode::kInternal;
  absl::Status status =
      Error(code,
            code != absl::StatusCode::kOutOfRange ? absl::StrCat("bad data (code ", fault.word & 0xff, ")")
            : fault.bound ? absl::StrCat("index ", fault.index, " is not in [0, ", fault.bound, ")")
                          : WithoutBound(fault, step),
            ", found by device ", device, " during the launch");
  return Annotate(StepError(status, step), kErrorPlugin, step.impl->plugin->name);
}

// Shows launches by timestamps of the device, without values.
absl::Status DeviceRunner::ShowTimes(const int64_t* at) {
  const size_t n = lowered_.steps.size();
  const int64_t shift = Now() - at[n];  // to the host's clock
  std::vector<keel_tensor> views = MakeViews(lowered_, binding_, {1, 0});
  std::vector<keel_tensor*> operands;
  const std::vector<keel_call> calls = MakeCalls(lowered_, binding_, views, &state_.env, &operands);
  for (size_t s = 0; s < n; s++) {
    const Moment when{0, at[s] + shift, at[s + 1] + shift};
    RETURN_IF_ERROR(state_.Show(lowered_, s, calls[s], &when));
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::EncodeTimed() {
  struct Times {  // freed when all work is done that writes it
    Accelerator& device;
    keel_segment segment;
    bool done = false;
    ~Times() {
      if (!done) device.FinishWork(device.Encoded());
      device.FreeSegment(segment);
    }
  };
  const uint64_t bytes = (lowered_.steps.size() + 1) * sizeof(uint64_t);
  ASSIGN_OR_RETURN(keel_segment segment, device_.NewSegment(KEEL_SEGMENT_READBACK, bytes));
  Times times{device_, segment};
  times_ = &times.segment;
  absl::Status status = Encode();
  times_ = nullptr;
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_COMPUTE, batch_));
  times.done = true;
  RETURN_IF_ERROR(ReadFault());
  return ShowTimes(static_cast<const int64_t*>(segment.host));
}

// Without timestamps each launch is submitted separately, so that the host can read its values before the
// next one. Other runs may encode in between, so launches have no numbers.
absl::Status DeviceRunner::EncodeObserved() {
  if (!options_.observe && device_.HasTimestamps() && !binding_.order.empty()) return EncodeTimed();
  for (keel_call& call : frame_->calls()) call.number = 1, call.depends = 0;
  RETURN_IF_ERROR(Encode());
  for (size_t s = 0; s < binding_.order.size(); s++) {
    frame_->calls()[s].number = binding_.order[s].number;
    frame_->calls()[s].depends = binding_.order[s].depends;
  }
  return absl::OkStatus();
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
  RETURN_IF_ERROR(device_.stager().Download(parts, {{batch_}}));
  keel_call call = device_call;
  call.in = operands.data();
  call.out = operands.data() + device_call.n_in;
  return state_.Show(lowered, s, call);
}

}  // namespace keel
