// calls.cc: see calls.h.
#include "kernel/runtime/plan/calls.h"

#include "kernel/runtime/plan/step.h"

namespace keel {

std::vector<keel_tensor> MakeViews(const Lowered& lowered, const Binding& binding, keel_devid device) {
  std::vector<keel_tensor> views(lowered.values.size());
  for (size_t v = 0; v < views.size(); v++) {
    views[v].device = device;
    views[v].dtype = AbiDType(lowered.values[v].type.dtype);
    views[v].ndim = static_cast<int32_t>(binding.shapes[v].size());
    views[v].shape = const_cast<int64_t*>(binding.shapes[v].data());
  }
  return views;
}

std::vector<keel_call> MakeCalls(const Lowered& lowered, const Binding& binding,
                                 std::vector<keel_tensor>& views, const keel_env* env,
                                 std::vector<keel_tensor*>* operands) {
  size_t total = 0;
  for (const Step& step : lowered.steps) total += step.in.size() + step.out.size();
  operands->reserve(total);
  std::vector<keel_call> calls(lowered.steps.size());
  for (size_t s = 0; s < lowered.steps.size(); s++) {
    const Step& step = lowered.steps[s];
    keel_call& call = calls[s];
    call.struct_size = sizeof call;
    call.n_in = static_cast<uint16_t>(step.in.size());
    call.n_out = static_cast<uint16_t>(step.out.size());
    call.fault = (lowered.first_step + static_cast<uint32_t>(s) + 1) << 8;
    call.in = operands->data() + operands->size();
    for (uint32_t v : step.in) operands->push_back(v == kNoValue ? nullptr : &views[v]);
    call.out = operands->data() + operands->size();
    for (uint32_t v : step.out) operands->push_back(&views[v]);
    call.state = binding.launches[s]->launch.state;
    call.env = env;
    call.scratch_bytes = binding.launches[s]->launch.scratch_bytes;
    call.number = binding.order.empty() ? 1 : binding.order[s].number;
    call.depends = binding.order.empty() ? 0 : binding.order[s].depends;
    SetShapeFlags(&call);
  }
  return calls;
}

}  // namespace keel
