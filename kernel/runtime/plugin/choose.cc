// choose.cc: selects a device's impl for a node.
#include "kernel/runtime/plugin/host.h"

namespace keel {

absl::StatusOr<const Impl*> ChooseImpl(Device& device, const OpDef& op, const Inferred& inferred,
                                       const NodeView& view, const Impl* after) {
  auto rows = device.plugin().impls.find(std::string(OpName(op)));
  if (rows == device.plugin().impls.end()) return nullptr;
  std::optional<keel_node> node;
  for (const Impl& impl : rows->second) {
    if (after) {
      if (after == &impl) after = nullptr;
      continue;
    }
    if (!Supports(impl, op, inferred.types)) continue;
    if (!impl.table.match) return &impl;
    if (!node) {
      ASSIGN_OR_RETURN(node, view());
    }
    ASSIGN_OR_RETURN(keel_dev dev, device.Open());
    if (impl.table.match(dev, &HostTable(), &*node)) return &impl;
  }
  return nullptr;
}

const char* WhyLacking(const Device& device, const OpDef& op,
                       std::span<const std::pair<std::string, DType>> types) {
  const auto lacks = device.plugin().device.lacks;
  const char* why = nullptr;
  for (const auto& [variable, dtype] : types)
    if (lacks && !why) why = lacks(device.index(), OpName(op).data(), Info(dtype).code);  // a std::string's
  return why;
}

}  // namespace keel
