// shared.cc: deduplicates the steps of equal programs. Large graphs repeat the same programs: steps shared by
// thousands of launches stay in the cache, separate copies would each miss.
#include <mutex>
#include <string>

#include "abi/mutex.hpp"
#include "plugins/cpu/map/map.h"
#include "plugins/cpu/weak_table.h"

namespace keel_cpu {
namespace {

// All fields that distinguish steps, without padding.
std::string KeyOf(const std::vector<MapStep>& steps) {
  std::string key;
  const auto add = [&key](const auto& field) {
    key.append(reinterpret_cast<const char*>(&field), sizeof(field));
  };
  for (const MapStep& s : steps) {
    add(s.kind), add(s.n_in), add(s.size_out), add(s.in), add(s.out), add(s.unary), add(s.failure);
    add(s.writes);
  }
  return key;
}

struct Store {
  keel::Mutex mutex;
  WeakTable<std::vector<MapStep>> known;
};

}  // namespace

std::shared_ptr<const std::vector<MapStep>> SharedSteps(const std::vector<MapStep>& steps) {
  static Store* store = new Store;  // never destroyed: plans may outlive static destruction
  const std::string key = KeyOf(steps);
  const std::lock_guard lock(store->mutex);
  return store->known.Get(key, [&] { return std::make_shared<const std::vector<MapStep>>(steps); });
}

}  // namespace keel_cpu
