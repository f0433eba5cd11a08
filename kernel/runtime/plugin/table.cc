// table.cc: copies a plugin's tables up to their struct_size, and checks them, so that the rest of the kernel
// can trust them.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_split.h"
#include "kernel/runtime/plugin/registry.h"

namespace keel {
namespace {

// Copies the members that the other side's struct contains; the others stay zero. A table has no padding, and
// a pointer that its size cuts is left out.
template <typename T>
T Copy(const T* theirs) {
  T ours{};
  std::memcpy(&ours, theirs, std::min<size_t>(theirs->struct_size / 8 * 8, sizeof ours));
  return ours;
}

// Row i of an array whose rows may be longer than ours; they are not shorter (CheckRows).
template <typename T>
const T& Row(const T* rows, uint32_t stride, uint32_t i) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(rows) + uint64_t{i} * stride);
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
      std::optional<DType> dtype = ParseDType({name.data(), name.size()});
      if (!dtype)
        return Invalid("impl of \"", impl->table.op, "\": types \"", text, "\": \"", name,
                       "\" is not a dtype; example: \"T=f32|f64 I=i64\"");
      mask |= 1u << static_cast<uint32_t>(*dtype);
    }
    impl->types.emplace_back(std::string(rule.first), mask);
  }
  return absl::OkStatus();
}

absl::Status ReadImpls(const keel_plugin& t, Plugin* plugin) {
  RETURN_IF_ERROR(CheckRows("impls", t.impls, t.n_impls, t.impl_stride, KEEL_END(keel_impl, run)));
  for (uint32_t i = 0; i < t.n_impls; i++) {
    Impl impl;
    impl.table = Row(t.impls, t.impl_stride, i);
    impl.plugin = plugin;
    if (!impl.table.op || !impl.table.op[0]) return Invalid("impl ", i, " names no op");
    if (!impl.table.run && !impl.table.prepare)
      return Invalid("impl ", i, " (\"", impl.table.op, "\") has neither run nor prepare");
    if (!impl.table.ver_max || impl.table.ver_min > impl.table.ver_max)
      return Invalid("impl ", i, " (\"", impl.table.op, "\") is for versions ", impl.table.ver_min, " to ",
                     impl.table.ver_max, " of the op, which begin at 1");
    RETURN_IF_ERROR(ParseTypes(impl.table.types, &impl));
    std::vector<Impl>& rows = plugin->impls[impl.table.op];
    auto place = std::find_if(rows.begin(), rows.end(),
                              [&](const Impl& other) { return impl.table.priority > other.table.priority; });
    rows.insert(place, std::move(impl));
  }
  return absl::OkStatus();
}

absl::Status ReadDevice(const keel_plugin& t, Plugin* plugin) {
  if (!t.device) return t.n_impls ? Invalid("has impls but no device") : absl::OkStatus();
  if (t.device->struct_size < KEEL_END(keel_device, flags))
    return Invalid("its device's table has ", t.device->struct_size, " bytes, expected at least ",
                   KEEL_END(keel_device, flags));
  plugin->device = Copy(t.device);
  const keel_device& d = plugin->device;
  if (d.flags & KEEL_DEVICE_HOST_MEMORY) return absl::OkStatus();
  const std::pair<const char*, bool> needed[] = {{"segment_alloc", d.segment_alloc},
                                                 {"segment_free", d.segment_free},
                                                 {"queue_open", d.queue_open},
                                                 {"queue_close", d.queue_close},
                                                 {"copy", d.copy},
                                                 {"fill", d.fill},
                                                 {"submit", d.submit},
                                                 {"queue_wait", d.queue_wait},
                                                 {"host_wait", d.host_wait}};
  for (const auto& [name, there] : needed)
    if (!there)
      return Invalid("its device has memory of its own (no KEEL_DEVICE_HOST_MEMORY) but no function ", name);
  const bool records = d.record_begin;
  if (records != !!d.record_end || records != !!d.replay || records != !!d.recording_free)
    return Invalid(
        "its device has some of the functions record_begin, record_end, replay and recording_free, ",
        "expected all or none");
  return absl::OkStatus();
}

absl::Status ReadImporters(const keel_plugin& t, Plugin* plugin) {
  RETURN_IF_ERROR(
      CheckRows("importers", t.importers, t.n_importers, t.importer_stride, KEEL_END(keel_importer, import)));
  for (uint32_t i = 0; i < t.n_importers; i++) {
    keel_importer& row = plugin->importers.emplace_back();  // members missing in the plugin's row are zero
    std::memcpy(&row, &Row(t.importers, t.importer_stride, i),
                std::min<size_t>(t.importer_stride, sizeof row));
    if (!row.name || !row.import) return Invalid("importer ", i, " has no name or no import function");
  }
  return absl::OkStatus();
}

}  // namespace

std::string Mistake(const Impl& impl, const OpDef& op) {
  const keel_impl& t = impl.table;
  if (OpVersion(op) < t.ver_min || OpVersion(op) > t.ver_max)
    return absl::StrCat(t.op, " is for versions ", t.ver_min, " to ", t.ver_max, ", not ", OpVersion(op));
  for (const auto& [variable, mask] : impl.types)
    if (!HasTypeVariable(op, variable))
      return absl::StrCat(t.op, " restricts \"", variable, "\", which is no type variable of the op");
  return "";
}

bool Supports(const Impl& impl, const OpDef& op, std::span<const std::pair<std::string, DType>> types) {
  if (!Mistake(impl, op).empty()) return false;
  for (const auto& [variable, mask] : impl.types)
    for (const auto& [name, dtype] : types)
      if (name == variable && !(mask >> static_cast<uint32_t>(dtype) & 1)) return false;
  return true;
}

absl::Status CheckRows(const char* list, const void* rows, uint32_t n, uint32_t stride, uint32_t least) {
  constexpr uint32_t kMax = 1 << 16;
  if (n && (n > kMax || !rows))
    return Invalid("n_", list, " is ", n, rows ? "; at most 65536 are possible" : ", but the list is NULL");
  if (n && stride < least) return Invalid(list, ": stride ", stride, ", expected at least ", least);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Plugin>> ReadPlugin(const keel_plugin* table, const std::string& path) {
  if (!table) return Invalid("gave no table");
  if (table->struct_size < KEEL_END(keel_plugin, about))
    return Invalid("its table has ", table->struct_size, " bytes, expected at least ",
                   KEEL_END(keel_plugin, about));
  auto plugin = std::make_unique<Plugin>();
  plugin->table = Copy(table);
  keel_plugin& t = plugin->table;
  if (table->struct_size >= KEEL_END(keel_plugin, n_impls)) t.n_impls = table->n_impls;
  if (t.draft != KEEL_ABI_DRAFT || t.abi_minor > KEEL_ABI_MINOR)
    return Invalid("ABI minor ", t.abi_minor, " draft ", t.draft, ", this libkeel has minor ", KEEL_ABI_MINOR,
                   " draft ", KEEL_ABI_DRAFT, ": rebuild the plugin with this version's keel_plugin.h");
  if (!t.name || !IsPluginName(t.name))
    return Invalid("plugin name \"", t.name ? t.name : "",
                   "\": expected lower case letters, digits, '-' and '_'");
  plugin->name = t.name;
  plugin->version = t.version ? t.version : "";
  plugin->about = t.about ? t.about : "";
  plugin->path = path;
  RETURN_IF_ERROR(ReadImpls(t, plugin.get()));
  RETURN_IF_ERROR(ReadDevice(t, plugin.get()));
  RETURN_IF_ERROR(ReadImporters(t, plugin.get()));
  RETURN_IF_ERROR(ReadPasses(t, plugin.get()));
  return plugin;
}

}  // namespace keel
