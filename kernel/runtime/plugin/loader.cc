// loader.cc: the search for plugins, and the loading of each file. Search order; the first plugin of a name
// wins: explicit paths, KEEL_PLUGIN_PATH (absolute folders only), keel/plugins next to libkeel, the
// system folder. The current directory is never searched. Plugins are never unloaded.
#include <dlfcn.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernel/base/timeline.h"
#include "kernel/runtime/plugin/host.h"
#include "kernel/runtime/plugin/registry.h"

namespace keel {
namespace {

constexpr char kSystemFolder[] = "/usr/lib/keel/plugins";
constexpr uint32_t kMaxDevices = 256;
constexpr char kSource[] = "given path";
constexpr char kPrefix[] = "keel-";  // of the files of plugins

std::string FolderOfLibkeel() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&FolderOfLibkeel), &info) || !info.dli_fname) return "";
  std::error_code error;
  auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? "" : path.parent_path().string();
}

std::string PluginNameOf(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  return absl::StartsWith(name, kPrefix) ? name.substr(strlen(kPrefix)) : name;
}

bool MatchesAny(const char* globs, const std::string& name) {
  for (absl::string_view glob : absl::StrSplit(globs, absl::ByAnyChar(",: "), absl::SkipEmpty()))
    if (!fnmatch(std::string(glob).c_str(), name.c_str(), 0)) return true;
  return false;
}

bool IsRules(std::string_view path) { return absl::EndsWith(path, ".rules"); }

// Why the user's filters exclude the plugin, or "".
std::string Filtered(const std::string& name) {
  const char* only = secure_getenv("KEEL_PLUGINS_ONLY");
  const char* skip = secure_getenv("KEEL_PLUGINS_SKIP");
  if (only && !MatchesAny(only, name)) return absl::StrCat("not in KEEL_PLUGINS_ONLY=", only);
  if (skip && MatchesAny(skip, name)) return absl::StrCat("in KEEL_PLUGINS_SKIP=", skip);
  return "";
}

absl::Status LoadError(const std::string& path) {
  const char* text = dlerror();
  std::string missing = MissingLibrary(text ? text : "");
  if (!missing.empty())
    return Error(absl::StatusCode::kUnavailable, "needs the library ", missing, ", which is not installed");
  return Error(absl::StatusCode::kUnavailable, "cannot be loaded: ", text ? text : path);
}

}  // namespace

Registry::Registry(std::shared_ptr<Catalogue> catalogue, RuleReader rules)
    : catalogue_(std::move(catalogue)), rules_(rules) {}
Registry::~Registry() = default;

void Registry::Record(const std::string& path, const std::string& source, Verdict verdict,
                      const std::string& reason) {
  attempts_.push_back({path, source, reason, verdict});
}

void Registry::Scan(const std::string& folder_option) {
  std::lock_guard lock(mutex_);
  if (const char* list = secure_getenv("KEEL_PLUGIN_PATH"))
    for (absl::string_view folder : absl::StrSplit(list, ':', absl::SkipEmpty()))
      ScanFolder(std::string(folder), "KEEL_PLUGIN_PATH");
  if (!folder_option.empty()) return ScanFolder(folder_option, "option plugins");
  std::string default_folder = FolderOfLibkeel();
  if (!default_folder.empty()) ScanFolder(default_folder += "/keel/plugins", "next to libkeel");
  if (default_folder != kSystemFolder) ScanFolder(kSystemFolder, "system");
}

void Registry::ScanFolder(const std::string& folder, const std::string& source) {
  if (folder.empty() || folder[0] != '/')
    return Record(folder, source, Verdict::kSkipped,
                  "not an absolute path: only absolute paths are searched");
  std::error_code error;
  std::vector<std::string> files, rules;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string file = it->path().filename().string();
    if (!IsRules(file) && !absl::EndsWith(file, ".so")) continue;
    if (absl::StartsWith(file, kPrefix))
      (IsRules(file) ? rules : files).push_back(it->path().string());
    else
      Record(it->path().string(), source, Verdict::kSkipped, "its name does not begin with \"keel-\"");
  }
  if (error)
    return Record(folder, source, Verdict::kSkipped, absl::StrCat("cannot be listed: ", error.message()));
  std::sort(files.begin(), files.end());
  std::sort(rules.begin(), rules.end());
  files.insert(files.end(), rules.begin(), rules.end());  // rules may use ops of libraries
  Record(folder, source, Verdict::kLoaded,
         absl::StrCat(files.size(), files.size() == 1 ? " plugin file" : " plugin files"));
  for (const std::string& file : files)
    if (std::string why = Filtered(PluginNameOf(file)); !why.empty())
      Record(file, source, Verdict::kSkipped, why);
    else
      LoadFile(file, source).IgnoreError();
}

absl::Status Registry::LoadFile(const std::string& path, const std::string& source) {
  TimedBlock block("plugin", path);
  std::lock_guard lock(mutex_);
  seen_.reserve(seen_.size() + 1);
  Attempt& attempt =
      attempts_.emplace_back(Attempt{path, source.empty() ? kSource : source, "", Verdict::kRefused});
  struct stat info {};
  if (stat(path.c_str(), &info)) return Refuse(&attempt, FileError(errno, "cannot be read"));
  if (!S_ISREG(info.st_mode)) return Refuse(&attempt, Invalid("not a plugin: not a file"));
  std::pair<uint64_t, uint64_t> id(info.st_dev, info.st_ino);
  if (std::count(seen_.begin(), seen_.end(), id)) {
    attempt.verdict = Verdict::kSkipped;
    attempt.reason = "the same file (device and inode) as one loaded before";
    return absl::OkStatus();
  }
  absl::StatusOr<const Plugin*> plugin = OpenFile(path);
  if (!plugin.ok()) return Refuse(&attempt, plugin.status());
  seen_.push_back(id);
  attempt.verdict = Verdict::kLoaded;
  attempt.plugin = *plugin;
  return absl::OkStatus();
}

absl::Status Registry::Refuse(Attempt* attempt, const absl::Status& why) {
  attempt->reason = std::string(why.message());
  return Annotate(Error(why.code(), "plugin ", attempt->path, ": ", why.message()), kErrorPlugin,
                  attempt->path);
}

absl::StatusOr<const Plugin*> Registry::OpenFile(const std::string& path) {
  if (IsRules(path)) {
    ASSIGN_OR_RETURN(FileMap file, MapFile(path));
    std::string_view text(reinterpret_cast<const char*>(file.data), file.size);
    ASSIGN_OR_RETURN(std::unique_ptr<Plugin> plugin, rules_(text, path, *catalogue_));
    plugin->name = PluginNameOf(path) + ".rules";
    return Register(std::move(plugin));
  }
  // A name without a slash would be searched on the linker's path, and load another file than the checked
  // one.
  const std::unique_ptr<char, decltype(&std::free)> resolved(realpath(path.c_str(), nullptr), std::free);
  if (!resolved) return FileError(errno, "cannot be read");
  const std::string real = resolved.get();
  RETURN_IF_ERROR(CheckPluginFile(real));
  void* library = dlopen(real.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return LoadError(path);
  auto* entry = reinterpret_cast<const keel_plugin* (*)(void)>(dlsym(library, "keel_plugin_v0"));
  if (!entry) return Invalid("not a plugin: exports no function keel_plugin_v0");
  return Add(entry(), path);
}

absl::StatusOr<const Plugin*> Registry::Add(const keel_plugin* table, const std::string& path) {
  ASSIGN_OR_RETURN(std::shared_ptr<Plugin> plugin, ReadPlugin(table, path));
  return Register(std::move(plugin));
}

absl::StatusOr<const Plugin*> Registry::Register(std::shared_ptr<Plugin> plugin) {
  std::lock_guard lock(mutex_);
  std::vector<Pass> passes;
  for (const Loaded& loaded : plugins_) {
    const std::shared_ptr<Plugin>& other = loaded.plugin;
    if (other->name == plugin->name)
      return Error(absl::StatusCode::kAlreadyExists, "another plugin named \"", plugin->name,
                   "\" was loaded before", other->path.empty() ? "" : ": ", other->path);
    passes.insert(passes.end(), other->passes.begin(), other->passes.end());
  }
  passes.insert(passes.end(), plugin->passes.begin(), plugin->passes.end());
  ASSIGN_OR_RETURN(passes, OrderPasses(passes));
  plugins_.reserve(plugins_.size() + 1);
  if (plugin->table.ops) RETURN_IF_ERROR(catalogue_->AddText(plugin->table.ops, plugin->name));
  plugins_.push_back({std::move(plugin), false, {}, ""});  // nothing fails from here on: all or nothing
  passes_ = std::move(passes);
  return plugins_.back().plugin.get();
}

std::vector<std::unique_ptr<Device>>& Registry::Count(Loaded& loaded) {
  const std::shared_ptr<Plugin>& plugin = loaded.plugin;
  if (loaded.counted || !plugin->table.device) return loaded.devices;
  HostCall call;
  const uint32_t count = plugin->device.count ? plugin->device.count(&HostTable()) : 1;
  if (!count) loaded.why = call.Finish(KEEL_UNAVAILABLE, *plugin, "counted its devices").message();
  for (uint32_t i = 0; i < std::min(count, kMaxDevices); i++)
    loaded.devices.push_back(std::make_unique<Device>(plugin, i));
  loaded.counted = true;
  return loaded.devices;
}

absl::StatusOr<Device*> Registry::FindDevice(const std::string& name) {
  if (name == kAutoDevice) return FirstThatOpens();
  std::lock_guard lock(mutex_);
  const std::string wanted = name.substr(0, name.find(':'));
  const char* text = name.c_str() + wanted.size();  // ":TEXT", or ""
  std::string why;
  std::vector<std::string> names;
  Device* found = nullptr;
  for (Loaded& loaded : plugins_) {
    if (loaded.plugin->name != wanted) continue;
    for (const auto& device : Count(loaded)) {
      if (device->name() == name || device->name() == name + ":0") return device.get();
      if (strlen(text) <= 4 || !device->Has(text + 1)) continue;
      found = device.get();
      names.push_back(found->name());
    }
    why = loaded.why;
  }
  if (names.size() == 1) return found;
  const char* fault = "several devices match \"";
  if (names.empty()) {
    fault = "no device \"";
    for (Device* device : Devices()) names.push_back(device->name());
  }
  absl::Status error =
      NotFound(fault, name, "\"; available devices: ", names.empty() ? "none" : absl::StrJoin(names, ", "));
  if (!why.empty()) return Annotate(error, kErrorHint, absl::StrCat("plugin ", wanted, ": no device: ", why));
  for (const Attempt& attempt : attempts_)
    if (attempt.verdict != Verdict::kLoaded && PluginNameOf(attempt.path) == wanted)
      return Annotate(error, kErrorHint, absl::StrCat(attempt.path, " was not loaded: ", attempt.reason));
  return Annotate(error, kErrorHint,
                  names.empty()
                      ? "load plugins first (keel_plugin_load); `keel doctor` shows where they are searched"
                      : "`keel doctor` shows which plugins were refused, and why");
}

Device* Registry::FirstHostDevice() {
  std::lock_guard lock(mutex_);
  for (Loaded& loaded : plugins_)
    if (loaded.plugin->device.flags & KEEL_DEVICE_HOST_MEMORY)
      for (const auto& device : Count(loaded)) return device.get();
  return nullptr;
}

Device* Registry::DeviceAt(size_t i) {
  std::lock_guard lock(mutex_);
  for (Loaded& loaded : plugins_) {
    const auto& devices = Count(loaded);
    if (i < devices.size()) return devices[i].get();
    i -= devices.size();
  }
  return nullptr;
}

std::vector<Device*> Registry::Devices() {
  std::lock_guard lock(mutex_);
  std::vector<Device*> all;
  for (Loaded& loaded : plugins_)
    for (const auto& device : Count(loaded)) all.push_back(device.get());
  return all;
}

std::vector<std::pair<const Plugin*, const keel_importer*>> Registry::Importers() {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<const Plugin*, const keel_importer*>> all;
  for (const Loaded& loaded : plugins_)
    for (const keel_importer& importer : loaded.plugin->importers)
      all.emplace_back(loaded.plugin.get(), &importer);
  return all;
}

std::vector<const Plugin*> Registry::Plugins() {
  std::lock_guard lock(mutex_);
  std::vector<const Plugin*> all;
  for (const Loaded& loaded : plugins_) all.push_back(loaded.plugin.get());
  return all;
}

std::vector<Pass> Registry::Passes() {
  std::lock_guard lock(mutex_);
  return passes_;
}

// Impls that no node can get, each with the reason.
std::string Registry::Mistakes(const Plugin& plugin) const {
  std::string text;
  for (const auto& [name, rows] : plugin.impls) {
    const absl::StatusOr<const OpDef*> op = catalogue_->Find(name, 0);
    if (!op.ok()) absl::StrAppend(&text, "; unused impl: no plugin defines the op ", name);
    for (const Impl& impl : rows)
      if (const std::string why = op.ok() ? Mistake(impl, **op) : ""; !why.empty())
        absl::StrAppend(&text, "; unused impl: ", why);
  }
  return text;
}

std::vector<Attempt> Registry::Attempts() {
  std::lock_guard lock(mutex_);
  for (Loaded& loaded : plugins_) {
    Count(loaded);
    const Plugin& plugin = *loaded.plugin;
    for (Attempt& attempt : attempts_)
      if (attempt.plugin == &plugin)
        attempt.reason =
            absl::StrCat(plugin.name, plugin.version.empty() ? "" : " ", plugin.version,
                         loaded.why.empty() ? "" : ", no device: ", loaded.why, Mistakes(plugin));
  }
  return attempts_;
}

}  // namespace keel
