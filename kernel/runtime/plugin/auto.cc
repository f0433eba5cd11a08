// auto.cc: the devices that "auto" may mean, in the order in which they are tried.
#include <algorithm>

#include "absl/strings/str_join.h"

#include "kernel/runtime/plugin/registry.h"

namespace keel {
namespace {

constexpr std::string_view kOrder[] = {"cuda", "vulkan", "cpu"};

// Why only a user who names the device gets it, or "".
std::string WhyNamedOnly(const Device& device) {
  keel_device_info info;
  if (!device.Describe(&info)) return "";
  if (info.flags & KEEL_DEVICE_SOFTWARE) return "is a software device";
  return info.flags & KEEL_DEVICE_INTEGRATED ? "is a part of the processor" : "";
}

}  // namespace

absl::Status AutoDevices::Error(std::string_view task) const {
  return Annotate(NotFound("device \"auto\": no device for ", task, ": ", absl::StrJoin(passed_over, "; ")),
                  kErrorHint, "name a device; `keel devices` lists them");
}

AutoDevices Registry::Auto() {
  std::lock_guard lock(mutex_);
  AutoDevices found;
  for (std::string_view name : kOrder) {
    const auto loaded =
        std::ranges::find_if(plugins_, [&](const Loaded& each) { return each.plugin->name == name; });
    if (loaded == plugins_.end()) {
      found.passed_over.push_back(absl::StrCat(name, ": there is no such plugin"));
      continue;
    }
    const auto& devices = Count(*loaded);
    if (devices.empty()) found.passed_over.push_back(absl::StrCat(name, ": ", loaded->why));
    for (const auto& device : devices) {
      const std::string why = WhyNamedOnly(*device);
      if (why.empty())
        found.devices.push_back(device.get());
      else
        found.passed_over.push_back(absl::StrCat(device->name(), " ", why));
    }
  }
  return found;
}

absl::StatusOr<Device*> Registry::FirstThatOpens() {
  AutoDevices found = Auto();
  for (Device* device : found.devices) {
    const absl::Status opened = device->Open().status();
    if (opened.ok()) return device;
    found.passed_over.push_back(absl::StrCat(device->name(), ": ", opened.message()));
  }
  return found.Error("this program");
}

}  // namespace keel
