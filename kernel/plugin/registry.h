// registry.h: the plugins, devices and importers that a context knows, and the log of how each was
// found. Loading is in loader.cc, the look at a file before it is loaded in note.cc.
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
#include "kernel/opset/opset.h"

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

// Does the impl take this version of its op, with these type variables (those not named here: any)?
bool Takes(const Impl&, uint32_t version, std::span<const std::pair<std::string, DType>> types);

struct Pass {
  keel_pass table;
  const Plugin* plugin;
  const rules::RulePass* rules = nullptr;  // in place of table.run
  bool extends = false;                    // adds to the pass of that name, wherever it is from
};

struct Plugin {
  std::string name, version, about, path;  // path "": added by the program
  keel_plugin table{};                     // as long as ours; what theirs lacks is zero
  keel_device device{};
  std::vector<keel_importer> importers;
  std::vector<Pass> passes;
  std::vector<std::shared_ptr<const rules::RulePass>> rules;  // of a file of rules
  HashMap<std::string, std::vector<Impl>> impls;              // by op, best first
};

// A device that was opened; closed with the last who uses it.
struct OpenedDevice {
  std::shared_ptr<const Plugin> plugin;
  std::string name;
  uint32_t index = 0;
  keel_dev handle = nullptr;
  ~OpenedDevice();
};
class Accelerator;  // kernel/device: memory and queues of a device that has its own

// One openable device: "cpu:0". Opened on first use.
class Device {
 public:
  Device(std::shared_ptr<const Plugin> plugin, uint32_t index);
  ~Device();
  const std::string& name() const { return name_; }
  const Plugin& plugin() const { return *plugin_; }
  uint32_t index() const { return index_; }
  bool host_memory() const { return plugin_->device.flags & KEEL_DEVICE_HOST_MEMORY; }
  absl::StatusOr<keel_dev> Open();
  // What kernel/device made of the opened device; made once, by the first caller.
  using MakeAccelerator =
      absl::StatusOr<std::shared_ptr<Accelerator>> (*)(std::shared_ptr<const OpenedDevice>);
  absl::StatusOr<std::shared_ptr<Accelerator>> Accelerate(MakeAccelerator make);

 private:
  std::shared_ptr<const Plugin> plugin_;
  uint32_t index_;
  std::string name_;
  Mutex mutex_;
  std::shared_ptr<const OpenedDevice> opened_;
  std::shared_ptr<Accelerator> accelerator_;
};

enum class Verdict { kTaken, kRefused, kSkipped };
struct Attempt {  // one line of `keel doctor`
  std::string path, source, reason;
  Verdict verdict;
};

class Registry {
 public:
  // What reads a file of rules (kernel/rules) as a plugin, with the path for messages.
  using RuleReader = absl::StatusOr<std::unique_ptr<Plugin>> (*)(std::string_view text,
                                                                 const std::string& path, const Catalogue&);
  Registry(std::shared_ptr<Catalogue> catalogue, RuleReader rules);
  ~Registry();
  // All of the default places, in order; refusals are only recorded.
  void Scan(const std::string& folder_option);
  absl::Status LoadFile(const std::string& path, const std::string& source);
  // Whole or not at all; taken: its name and version.
  absl::Status Add(const keel_plugin* table, const std::string& path, std::string* taken = nullptr);

  // "cpu" is "cpu:0". NotFound lists the devices that are there.
  absl::StatusOr<Device*> FindDevice(const std::string& name);
  // Snapshots: what is in them stays as long as the registry.
  std::vector<Device*> Devices();
  std::vector<std::pair<const Plugin*, const keel_importer*>> Importers();
  std::vector<const Plugin*> Plugins();
  std::vector<Pass> Passes();  // in the order in which they run
  std::vector<Attempt> Attempts();
  const std::shared_ptr<Catalogue>& catalogue() const { return catalogue_; }

 private:
  void ScanFolder(const std::string& folder, const std::string& source);
  void Record(const std::string& path, const std::string& source, Verdict verdict, const std::string& reason);
  static absl::Status Refuse(Attempt* attempt, const absl::Status& why);
  absl::Status OpenFile(const std::string& path, std::string* taken);
  absl::Status Take(std::shared_ptr<Plugin> plugin, std::string* taken);

  std::shared_ptr<Catalogue> catalogue_;
  RuleReader rules_;
  RecursiveMutex mutex_;
  std::vector<std::shared_ptr<Plugin>> plugins_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Pass> passes_;
  std::vector<Attempt> attempts_;
  std::vector<std::pair<uint64_t, uint64_t>> seen_;  // device and inode of files taken
};

// note.cc: reads the ELF note of a shared library without running anything of it; the error says why the
// file cannot be a plugin for this libkeel.
absl::Status CheckPluginFile(const std::string& path);
// The first library that the file needs and the system does not have; "" if none.
std::string MissingLibrary(const std::string& dlerror_text);

// pass_order.cc
absl::Status ReadPasses(const keel_plugin& table, Plugin* plugin);
// A list of rows in a plugin's table, "impls"; least: bytes that a row has.
absl::Status CheckRows(const char* list, const void* rows, uint32_t n, uint32_t stride, uint32_t least);
absl::Status CheckPass(const keel_pass&, size_t number);  // its words and numbers
// What extends a pass stands behind it, and is left out where it is not there (yet). An error names a name
// that is taken, or passes that wait for each other.
absl::StatusOr<std::vector<Pass>> OrderPasses(const std::vector<Pass>& passes);

// table.cc: takes over a plugin's tables, checked.
absl::StatusOr<std::unique_ptr<Plugin>> ReadPlugin(const keel_plugin* table, const std::string& path);

}  // namespace keel
