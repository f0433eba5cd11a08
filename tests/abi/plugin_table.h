// plugin_table.h: the table of a plugin that is made of a device and impls.
#pragma once

#include "abi/keel_plugin.h"

// Nothing is copied: the device and the impls must live as long as the table.
inline keel_plugin PluginTable(const char* name, const keel_device* device, const keel_impl* impls,
                               uint32_t n) {
  return {KEEL_PLUGIN_HEADER,
          name,
          "1",
          "a test",
          device,
          impls,
          n,
          sizeof(keel_impl),
          nullptr,
          nullptr,
          0,
          0,
          nullptr,
          0,
          0};
}
