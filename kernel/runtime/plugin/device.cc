// device.cc: opens a device on first use.
#include <cstring>

#include "kernel/runtime/plugin/host.h"

namespace keel {

OpenedDevice::~OpenedDevice() {
  if (plugin && plugin->device.close) plugin->device.close(handle);
}

Device::Device(std::shared_ptr<const Plugin> plugin, uint32_t index)
    : plugin_(std::move(plugin)), index_(index), name_(absl::StrCat(plugin_->name, ":", index)) {}

Device::~Device() = default;

absl::StatusOr<keel_dev> Device::Open() {
  std::lock_guard lock(mutex_);
  if (opened_) return opened_->handle;
  auto opened = std::make_shared<OpenedDevice>();  // allocate first: nothing can fail once the device is open
  opened->name = name_;
  opened->index = index_;
  if (plugin_->device.open) {
    HostCall call;
    keel_rc rc = plugin_->device.open(&HostTable(), index_, nullptr, 0, &opened->handle);
    if (rc != KEEL_OK)
      return Annotate(call.Finish(rc, *plugin_, "opened the device"), kErrorHint,
                      absl::StrCat("device ", name_, " is not available here; choose another"));
  }
  opened->plugin = plugin_;
  opened_ = std::move(opened);
  return opened_->handle;
}

bool Device::Describe(keel_device_info* out) const {
  *out = {};
  out->struct_size = sizeof *out;
  const auto info = plugin_->device.info;
  if (!info || info(&HostTable(), index_, out)) return false;
  out->description[sizeof out->description - 1] = 0;
  out->capabilities[sizeof out->capabilities - 1] = 0;
  return true;
}

bool Device::Has(const char* text) const {
  keel_device_info info;
  return Describe(&info) &&
         (strcasestr(info.description, text) || strcasestr(UuidText(info.uuid).c_str(), text));
}

std::string UuidText(const uint8_t (&uuid)[16]) {
  char text[37], *end = text;
  bool known = false;
  for (int i = 0; i < 16; i++) {
    constexpr const char* kDigits = "0123456789abcdef";
    if (i >= 4 && i <= 10 && i % 2 == 0) *end++ = '-';
    *end++ = kDigits[uuid[i] >> 4];
    *end++ = kDigits[uuid[i] & 15];
    known = known || uuid[i];
  }
  return {text, known ? end : text};
}

absl::StatusOr<std::shared_ptr<Accelerator>> Device::OpenAccelerator(MakeAccelerator make) {
  RETURN_IF_ERROR(Open().status());
  std::lock_guard lock(mutex_);
  if (!accelerator_) {
    ASSIGN_OR_RETURN(accelerator_, make(opened_));
  }
  return accelerator_;
}

}  // namespace keel
