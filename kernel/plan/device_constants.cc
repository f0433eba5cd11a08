// device_constants.cc: see device_constants.h.
#include "kernel/plan/device_constants.h"

#include "kernel/plan/fold.h"

namespace keel {

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

}  // namespace keel
