// device_constants.cc: see device_constants.h.
#include "kernel/runtime/plan/device_constants.h"

#include "kernel/runtime/plan/fold.h"

namespace keel {

DeviceConstants::~DeviceConstants() {
  for (size_t i = before ? before->pieces.size() : 0; i < pieces.size(); i++)
    device->pool().Free(pieces[i], used);
}

absl::Status UploadConstants(Lowered* lowered) {
  std::vector<bool> needed = NeededConstants(*lowered);
  auto all = std::make_shared<DeviceConstants>();
  all->device = lowered->accelerator;
  all->before = lowered->before ? lowered->before->uploaded : nullptr;
  if (all->before) all->pieces = all->before->pieces;
  if (all->before) all->used = all->before->used;
  const size_t first = all->pieces.size();
  all->pieces.resize(needed.size());
  std::vector<Stager::UploadPart> parts;
  for (size_t i = first; i < needed.size(); i++) {
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

}  // namespace keel
