// device.cc: opening a device, once, on first use.
#include "kernel/plugin/host.h"

namespace keel {

OpenedDevice::~OpenedDevice() {
  if (plugin->device.close) plugin->device.close(handle);
}

Device::Device(std::shared_ptr<const Plugin> plugin, uint32_t index)
    : plugin_(std::move(plugin)), index_(index), name_(absl::StrCat(plugin_->name, ":", index)) {}

Device::~Device() = default;

absl::StatusOr<keel_dev> Device::Open() {
  std::lock_guard lock(mutex_);
  if (opened_) return opened_->handle;
  keel_dev handle = nullptr;
  if (plugin_->device.open) {
    HostCall call;
    keel_rc rc = plugin_->device.open(&HostTable(), index_, nullptr, 0, &handle);
    RETURN_IF_ERROR(Annotate(call.Finish(rc, *plugin_, "opened the device"), kErrorHint,
                             absl::StrCat("device ", name_, " cannot be used here; name another")));
  }
  auto opened = std::make_shared<OpenedDevice>();
  opened->plugin = plugin_;
  opened->name = name_;
  opened->index = index_;
  opened->handle = handle;
  opened_ = std::move(opened);
  return handle;
}

absl::StatusOr<std::shared_ptr<Accelerator>> Device::Accelerate(MakeAccelerator make) {
  RETURN_IF_ERROR(Open().status());
  std::lock_guard lock(mutex_);
  if (!accelerator_) {
    ASSIGN_OR_RETURN(accelerator_, make(opened_));
  }
  return accelerator_;
}

}  // namespace keel
