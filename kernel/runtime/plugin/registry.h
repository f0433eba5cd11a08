// registry.h: the plugins, devices and importers of a context, and the log of load attempts. loader.cc loads;
// note.cc checks a file before it is loaded.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "abi/keel_plugin.h"
#include "kernel/base/hash.h"
#include "kernel/base/mutex.h"
#include "kernel/base/status.h"
#include "kernel/language/opset/opset.h"

namespace keel {

struct Plugin;
namespace rules {
struct RulePass;
}

struct Impl {
  keel_impl table;
  const Plugin* plugin;
  std::vector<std::pair<std::string, uint32_t>> types;  // type variable -> set of DTypes, one bit each
};

// Why the impl supports no types of the op at all, such as "versions 2 to 3", or "".
std::string Mistake(const Impl&, const OpDef& op);
// Whether the impl supports this version of its op with these types. Variables not listed in the impl may
// have any type.
bool Supports(const Impl&, const OpDef& op, std::span<const std::pair<std::string, DType>> types);

struct Pass {
  keel_pass table;
  const Plugin* plugin;
  const rules::RulePass* rules = nullptr;  // replaces table.run
  bool extends = false;                    // adds rules to the pass of this name, of any plugin
};

struct Plugin {
  std::string name, version, about, path;  // path "": registered by the program
  keel_plugin table{};                     // members missing in the plugin's table are zero
  keel_device device{};
  std::vector<keel_importer> importers;
  std::vector<Pass> passes;
  std::vector<std::shared_ptr<const rules::RulePass>> rules;  // of a rule file
  HashMap<std::string, std::vector<Impl>> impls;              // by op, best first
};

class Device;
// Why the device lacks the op for one of the types, as its plugin reports it; null: unknown.
const char* WhyLacking(const Device& device, const OpDef& op,
                       std::span<const std::pair<std::string, DType>> types);

// "" if it is not known.
std::string UuidText(const uint8_t (&uuid)[16]);

// An open device; closed by its last user.
struct OpenedDevice {
  std::shared_ptr<const Plugin> plugin;
  std::string name;
  uint32_t index = 0;
  keel_dev handle = nullptr;
  ~OpenedDevice();
};
class Accelerator;  // kernel/runtime/device: the memory and queues of a device with its own memory

// One device, such as "cpu:0". Opened on first use.
class Device {
 public:
  Device(std::shared_ptr<const Plugin> plugin, uint32_t index);
  ~Device();
  const std::string& name() const { return name_; }
  const Plugin& plugin() const { return *plugin_; }
  uint32_t index() const { return index_; }
  bool host_memory() const { return plugin_->device.flags & KEEL_DEVICE_HOST_MEMORY; }
  absl::StatusOr<keel_dev> Open();
  // False: the plugin describes no devices.
  bool Describe(keel_device_info* out) const;
  // Whether the text is part of its description or UUID, in upper or lower case.
  bool Has(const char* text) const;
  // The accelerator of kernel/runtime/device; created by the first caller.
  using MakeAccelerator =
      absl::StatusOr<std::shared_ptr<Accelerator>> (*)(std::shared_ptr<const OpenedDevice>);
  absl::StatusOr<std::shared_ptr<Accelerator>> OpenAccelerator(MakeAccelerator make);

 private:
  std::shared_ptr<const Plugin> plugin_;
  uint32_t index_;
  std::string name_;
  Mutex mutex_;
  std::shared_ptr<const OpenedDevice> opened_;
  std::shared_ptr<Accelerator> accelerator_;
};

inline constexpr const char* kAutoDevice = "auto";
// What this name may mean.
struct AutoDevices {
  std::vector<Device*> devices;          // best first; not opened
  std::vector<std::string> passed_over;  // "cuda: no NVIDIA driver ..."
  // The error where none of the devices serves; passed_over has the reason of each.
  absl::Status Error(std::string_view task) const;
};

enum class Verdict { kLoaded, kRefused, kSkipped };
struct Attempt {  // one line of `keel doctor`
  std::string path, source, reason;
  Verdict verdict;
  const Plugin* plugin = nullptr;  // loaded
};

class Registry {
 public:
  // Parses a rule file as a plugin (kernel/runtime/rules); the path is for messages.
  using RuleReader = absl::StatusOr<std::unique_ptr<Plugin>> (*)(std::string_view text,
                                                                 const std::string& path, const Catalogue&);
  Registry(std::shared_ptr<Catalogue> catalogue, RuleReader rules);
  ~Registry();
  // Loads plugins of all default locations, in order; failures are only recorded.
  void Scan(const std::string& folder_option);
  absl::Status LoadFile(const std::string& path, const std::string& source);
  // All or nothing.
  absl::StatusOr<const Plugin*> Add(const keel_plugin* table, const std::string& path);

  // "cpu" means "cpu:0"; "vulkan:TEXT", at least 4 characters, is the one device whose description or UUID
  // contains the text; "auto" is the first of Auto() that opens. NotFound lists the available devices.
  absl::StatusOr<Device*> FindDevice(const std::string& name);
  // auto.cc: cuda, discrete devices of vulkan, cpu. Loads their drivers.
  AutoDevices Auto();
  // With host memory; null: there is none.
  Device* FirstHostDevice();
  // Devices()[i], without counting the devices of later plugins; null: there are fewer.
  Device* DeviceAt(size_t i);
  // Snapshots; their elements live as long as the registry.
  std::vector<Device*> Devices();
  std::vector<std::pair<const Plugin*, const keel_importer*>> Importers();
  std::vector<const Plugin*> Plugins();
  std::vector<Pass> Passes();  // in execution order
  std::vector<Attempt> Attempts();
  const std::shared_ptr<Catalogue>& catalogue() const { return catalogue_; }

 private:
  // Devices are counted when they are first needed, because that may load a driver.
  struct Loaded {
    std::shared_ptr<Plugin> plugin;
    bool counted = false;
    std::vector<std::unique_ptr<Device>> devices;
    std::string why;  // set if the plugin finds no device
  };
  static std::vector<std::unique_ptr<Device>>& Count(Loaded& loaded);
  absl::StatusOr<Device*> FirstThatOpens();
  void ScanFolder(const std::string& folder, const std::string& source);
  std::string Mistakes(const Plugin& plugin) const;
  void Record(const std::string& path, const std::string& source, Verdict verdict, const std::string& reason);
  static absl::Status Refuse(Attempt* attempt, const absl::Status& why);
  absl::StatusOr<const Plugin*> OpenFile(const std::string& path);
  absl::StatusOr<const Plugin*> Register(std::shared_ptr<Plugin> plugin);

  std::shared_ptr<Catalogue> catalogue_;
  RuleReader rules_;
  RecursiveMutex mutex_;
  std::vector<Loaded> plugins_;
  std::vector<Pass> passes_;
  std::vector<Attempt> attempts_;
  std::vector<std::pair<uint64_t, uint64_t>> seen_;  // device and inode of loaded files
};

// note.cc: reads the ELF note of a shared library without running its code; the error states why it cannot be
// a plugin for this libkeel.
absl::Status CheckPluginFile(const std::string& path);
// The first library required by the file and missing on the system, or "".
std::string MissingLibrary(const std::string& dlerror_text);

// pass_order.cc
absl::Status ReadPasses(const keel_plugin& table, Plugin* plugin);
// Checks a list of rows in a plugin's table, such as "impls". least: minimum size of a row.
absl::Status CheckRows(const char* list, const void* rows, uint32_t n, uint32_t stride, uint32_t least);
absl::Status CheckPass(const keel_pass&, size_t number);  // checks name and constants
// Orders passes. Extensions follow their pass, and are omitted while it is not loaded. Errors name a
// duplicate pass, or a cycle.
absl::StatusOr<std::vector<Pass>> OrderPasses(const std::vector<Pass>& passes);

// table.cc: copies and checks a plugin's tables.
absl::StatusOr<std::unique_ptr<Plugin>> ReadPlugin(const keel_plugin* table, const std::string& path);

}  // namespace keel
