// fold.cc: see fold.h.
#include "kernel/runtime/plan/fold.h"

#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/element.h"
#include "kernel/runtime/plan/step.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {
namespace {

uint32_t AddConstant(Lowered& lowered, const std::string& name, ArrayRef array) {
  lowered.constants.push_back(ConstantOf(name, std::move(array)));
  return static_cast<uint32_t>(lowered.constants.size() - 1);
}

}  // namespace

bool MentionsSymbols(const Lowered& lowered, const Step& step) {
  for (const auto* side : {&step.in, &step.out})
    for (uint32_t v : *side)
      if (v != kNoValue && MentionsSymbols(lowered.values[v].type.dims)) return true;
  return MentionsSymbols(step.attrs) || (step.body && MentionsSymbols(*step.body));
}

bool CanFold(const Lowered& lowered, const Step& step, uint64_t* folded_bytes) {
  if (HasEffect(*step.op) || MentionsSymbols(lowered, step)) return false;
  for (uint32_t v : step.in)
    if (v != kNoValue && lowered.values[lowered.Root(v)].where != Where::kConstant) return false;
  uint64_t bytes = *folded_bytes;
  for (uint32_t v : step.out) {
    const TensorType& type = lowered.values[v].type;
    absl::StatusOr<int64_t> count = CountOf({type.dims.data(), type.dims.size()}, type.dtype);
    if (!count.ok()) return false;
    bytes += BytesOf(type.dtype, *count);
    if (bytes > kMaxFoldedBytes) return false;
  }
  *folded_bytes = bytes;
  return true;
}

absl::Status Fold(Lowered& lowered, const Step& step, Device& device, uint32_t threads) {
  std::vector<keel_tensor> views;
  views.reserve(step.in.size());
  std::vector<const keel_tensor*> in;
  for (uint32_t v : step.in) {
    in.push_back(nullptr);
    if (v == kNoValue) continue;
    const Constant& root = lowered.constants[lowered.values[lowered.Root(v)].index];
    views.push_back(ViewOf(root, lowered.values[v].type));  // an alias has another type than its root
    in.back() = &views.back();
  }
  std::vector<ArrayRef> arrays;
  for (uint32_t v : step.out) {
    const TensorType& type = lowered.values[v].type;
    ASSIGN_OR_RETURN(ArrayRef array, NewArray(type.dtype, {type.dims.data(), type.dims.size()}, false));
    arrays.push_back(std::move(array));
  }
  std::vector<keel_tensor*> out;
  for (ArrayRef& array : arrays) out.push_back(&array->view);
  RETURN_IF_ERROR(RunOnce(lowered, step, device, threads, in, out));
  DropPages(lowered, step);
  for (size_t i = 0; i < arrays.size(); i++) {
    PlanValue& value = lowered.values[step.out[i]];
    value.where = Where::kConstant;
    value.index = AddConstant(lowered, value.name, std::move(arrays[i]));
  }
  lowered.folded.push_back(step.name);
  return absl::OkStatus();
}

bool FoldOnHost(Lowered& lowered, Step* step, const Inferred& inferred, std::span<const std::string> names,
                const PlanOptions& options, uint64_t* folded_bytes) {
  if ((options.observe && !options.probe) || !options.host) return false;
  const size_t before = lowered.values.size();
  Step folded = *step;
  for (size_t i = 0; i < inferred.results.size(); i++) {
    folded.out.push_back(static_cast<uint32_t>(lowered.values.size()));
    lowered.values.push_back({inferred.results[i], i < names.size() ? names[i] : "", Where::kComputed, 0});
  }
  uint64_t bytes = *folded_bytes;
  if (CanFold(lowered, folded, &bytes)) {
    auto impl = ChooseImpl(*options.host, *step->op, inferred, [&] { return ViewStep(lowered, folded, {}); });
    folded.impl = impl.ok() ? *impl : nullptr;
    if (folded.impl && Fold(lowered, folded, *options.host, options.threads).ok()) {
      *folded_bytes = bytes;
      *step = std::move(folded);
      return true;
    }
  }
  lowered.values.resize(before);
  return false;
}

std::vector<bool> NeededConstants(const Lowered& lowered) {
  std::vector<bool> needed(lowered.constants.size());
  auto need = [&](uint32_t v) {
    if (v == kNoValue) return;
    const PlanValue& root = lowered.values[lowered.Root(v)];
    if (root.where == Where::kConstant) needed[root.index] = true;
  };
  for (const Step& step : lowered.steps)
    for (uint32_t v : step.in) need(v);
  for (uint32_t v : lowered.fetches) need(v);
  return needed;
}

absl::StatusOr<uint32_t> AddLiteral(Lowered& lowered, DType dtype, double value) {
  ASSIGN_OR_RETURN(ArrayRef array, NewArray(dtype, {}, true));
  RETURN_IF_ERROR(ElementFromDouble(dtype, value, array->data()));
  uint32_t index = AddConstant(lowered, "", std::move(array));
  lowered.values.push_back({{dtype, {}}, "", Where::kConstant, index});
  return static_cast<uint32_t>(lowered.values.size() - 1);
}

}  // namespace keel
