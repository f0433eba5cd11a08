// plugin.cc: the plugin's description and the table of all families.
#include <array>

#include "families.h"
#include "sdk/plugin/table.h"

namespace {

constexpr size_t kMaxImpls = 256;
struct Table {
  std::array<keel_impl, kMaxImpls> impls;
  size_t size = 0;
  Table() {
    using namespace reference;
    for (const auto family :
         {elementwise_impls(), unary_impls(), cast_impls(), shape_impls(), gather_impls(), reduce_impls(),
          norm_impls(), linear_impls(), linear_algebra_impls(), spectra_impls(), pool_impls(),
          suppress_impls(), tree_impls(), random_impls()}) {
      for (const keel_impl& impl : family) {
        if (size < kMaxImpls) impls[size++] = impl;
      }
    }
  }
};

constexpr keel_device kDevice = KEEL_HOST_DEVICE(nullptr, nullptr, nullptr, nullptr);

// Thread-safe: a function-local static. The families' tables are constant-initialised, so initialisation
// order does not matter.
const keel_plugin& description() {
  static const Table table;
  static const keel_plugin plugin = keel::plugin::device_plugin(
      "reference", "0.1.0", "reference device: every primitive op for every dtype, simple and slow", &kDevice,
      table.impls.data(), table.size);
  return plugin;
}

}  // namespace

KEEL_PLUGIN(description())
