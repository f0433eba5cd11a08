// table.h: the table of a C++ plugin with a device.
#ifndef KEEL_PLUGIN_TABLE_H
#define KEEL_PLUGIN_TABLE_H
#include <keel/keel_plugin.h>

#include <cstddef>

namespace keel::plugin {

// The pointers are not copied. Without ops, importers and passes.
constexpr keel_plugin device_plugin(const char* name, const char* version, const char* about,
                                    const keel_device* device, const keel_impl* impls, size_t n_impls) {
  return {KEEL_PLUGIN_HEADER,
          name,
          version,
          about,
          device,
          impls,
          static_cast<uint32_t>(n_impls),
          sizeof(keel_impl),
          nullptr,
          nullptr,
          0,
          0,
          nullptr,
          0,
          0};
}

}  // namespace keel::plugin
#endif
