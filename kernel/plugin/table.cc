// table.cc: takes a plugin's tables over, as long as its struct_size says and no longer, and checks
// them, so that the rest of the kernel can trust what it reads.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_split.h"
#include "kernel/plugin/registry.h"

namespace keel {
namespace {

// A copy with our length: what theirs lacks is zero. Never reads beyond their struct_size.
template <typename T>
T Grow(const void* theirs, uint32_t their_size) {
  T ours{};
  std::memcpy(&ours, theirs, std::min<size_t>(sizeof ours, their_size));
  return ours;
}

bool IsPluginName(std::string_view name) {
  if (name.empty() || name.size() > 64 || name[0] < 'a' || name[0] > 'z') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

absl::Status ParseTypes(const char* text, Impl* impl) {
  if (!text) return absl::OkStatus();
  for (absl::string_view part : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    std::pair<absl::string_view, absl::string_view> rule = absl::StrSplit(part, absl::MaxSplits('=', 1));
    uint32_t mask = 0;
    for (absl::string_view name : absl::StrSplit(rule.second, '|')) {
      std::optional<DType> dtype = DTypeNamed({name.data(), name.size()});
      if (!dtype)
        return Invalid("impl of \"", impl->table.op, "\": types \"", text, "\": \"", name,
                       "\" is not a dtype; write like \"T=f32|f64 I=i64\"");
      mask |= 1u << static_cast<uint32_t>(*dtype);
    }
    impl->types.emplace_back(std::string(rule.first), mask);
  }
  return absl::OkStatus();
}

absl::Status ReadImpls(const keel_plugin& t, Plugin* plugin) {
  if (t.n_impls && (!t.impls || t.impl_stride < KEEL_END(keel_impl, run)))
    return Invalid("impls: stride ", t.impl_stride, ", wanted at least ", KEEL_END(keel_impl, run));
  for (uint32_t i = 0; i < t.n_impls; i++) {
    Impl impl;
    impl.table =
        Grow<keel_impl>(reinterpret_cast<const char*>(t.impls) + uint64_t{i} * t.impl_stride, t.impl_stride);
    impl.plugin = plugin;
    if (!impl.table.op || !impl.table.op[0]) return Invalid("impl ", i, " names no op");
    if (!impl.table.run && !impl.table.prepare)
      return Invalid("impl ", i, " (\"", impl.table.op, "\") has neither run nor prepare");
    RETURN_IF_ERROR(ParseTypes(impl.table.types, &impl));
    plugin->impls[impl.table.op].push_back(std::move(impl));
  }
  for (auto& [op, rows] : plugin->impls)
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Impl& a, const Impl& b) { return a.table.priority > b.table.priority; });
  return absl::OkStatus();
}

absl::Status ReadDevice(const keel_plugin& t, Plugin* plugin) {
  if (!t.device) return t.n_impls ? Invalid("has impls but no device") : absl::OkStatus();
  plugin->device = Grow<keel_device>(t.device, t.device->struct_size);
  if (!(plugin->device.flags & KEEL_DEVICE_HOST_MEMORY))
    return Unimplemented("its device has memory of its own, which this draft does not support yet");
  return absl::OkStatus();
}

absl::Status ReadImporters(const keel_plugin& t, Plugin* plugin) {
  if (t.n_importers && (!t.importers || t.importer_stride < KEEL_END(keel_importer, import)))
    return Invalid("importers: stride ", t.importer_stride, ", wanted at least ",
                   KEEL_END(keel_importer, import));
  for (uint32_t i = 0; i < t.n_importers; i++) {
    plugin->importers.push_back(Grow<keel_importer>(
        reinterpret_cast<const char*>(t.importers) + uint64_t{i} * t.importer_stride, t.importer_stride));
    if (!plugin->importers.back().name || !plugin->importers.back().import)
      return Invalid("importer ", i, " has no name or no import function");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Plugin>> ReadPlugin(const keel_plugin* table, const std::string& path) {
  if (!table) return Invalid("gave no table");
  if (table->struct_size < KEEL_END(keel_plugin, about))
    return Invalid("its table has ", table->struct_size, " bytes, wanted at least ",
                   KEEL_END(keel_plugin, about));
  auto plugin = std::make_unique<Plugin>();
  plugin->table = Grow<keel_plugin>(table, table->struct_size);
  const keel_plugin& t = plugin->table;
  if (t.draft != KEEL_ABI_DRAFT || t.abi_minor > KEEL_ABI_MINOR)
    return Invalid("ABI minor ", t.abi_minor, " draft ", t.draft, ", this libkeel has minor ", KEEL_ABI_MINOR,
                   " draft ", KEEL_ABI_DRAFT, ": rebuild the plugin with this version's keel_plugin.h");
  if (!t.name || !IsPluginName(t.name))
    return Invalid("plugin name \"", t.name ? t.name : "",
                   "\": wanted lower case letters, digits, '-' and '_'");
  plugin->name = t.name;
  plugin->version = t.version ? t.version : "";
  plugin->about = t.about ? t.about : "";
  plugin->path = path;
  RETURN_IF_ERROR(ReadImpls(t, plugin.get()));
  RETURN_IF_ERROR(ReadDevice(t, plugin.get()));
  RETURN_IF_ERROR(ReadImporters(t, plugin.get()));
  return plugin;
}

}  // namespace keel
