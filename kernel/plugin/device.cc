// device.cc: opening a device, once, on first use.
#include "kernel/plugin/host.h"

namespace keel {

Device::Device(const Plugin* plugin, uint32_t index)
    : plugin_(plugin), index_(index), name_(absl::StrCat(plugin->name, ":", index)) {}

Device::~Device() {
  if (opened_ && plugin_->device.close) plugin_->device.close(handle_);
}

absl::StatusOr<keel_dev> Device::Open() {
  std::lock_guard lock(mutex_);
  if (!opened_ && plugin_->device.open) {
    HostCall call;
    keel_rc rc = plugin_->device.open(&HostTable(), index_, nullptr, 0, &handle_);
    RETURN_IF_ERROR(Annotate(call.Finish(rc, *plugin_, "opened the device"), kErrorHint,
                             absl::StrCat("device ", name_, " cannot be used here; name another")));
  }
  opened_ = true;
  return handle_;
}

}  // namespace keel
