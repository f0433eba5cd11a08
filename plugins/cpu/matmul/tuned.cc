// tuned.cc: see tuned.h.
#include "plugins/cpu/matmul/tuned.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "abi/mutex.hpp"
#include "dnnl.h"
#include "plugins/cpu/simd/simd.h"
#include "sdk/plugin/disk_cache.h"

namespace keel_cpu {
namespace {

constexpr char kMagic[] = "keel cpu products 1";
constexpr size_t kMostProducts = 4096, kMostBytes = 512 << 10;

using Key = std::array<int64_t, 6>;  // m, k, n, ta, tb, whether b is a constant

struct Store {
  const keel_host* host = nullptr;
  std::string path;
  std::map<Key, Timing> products;
  bool tunes = false;
  keel::Mutex mutex{keel::Mutex::kLong};
};
Store& TheStore() {
  static Store store;
  return store;
}
std::atomic<bool> active = false;  // there are products, or they are tuned

std::string Variable(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

std::string Path() {
  if (secure_getenv("KEEL_CPU_TUNED") != nullptr) return Variable("KEEL_CPU_TUNED");
  const std::string folder = keel::plugin::cache_folder();
  return folder.empty() ? "" : folder + "/cpu-products-" + NameOf(UsedIsa());
}

// What the times depend on.
std::string Machine() {
  std::string line, model = "unknown processor";
  for (std::ifstream info("/proc/cpuinfo"); std::getline(info, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      model = line.substr(line.find(": ") + 2);
      break;
    }
  const dnnl_version_t* v = dnnl_version();
  return model + "; class " + NameOf(UsedIsa()) + "; oneDNN " + std::to_string(v->major) + "." +
         std::to_string(v->minor) + "." + std::to_string(v->patch);
}

std::string HashOf(const std::string& text) {
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64, keel::plugin::DiskCache::Hash(text));
  return digits;
}

std::string TextOf(const std::map<Key, Timing>& products) {
  std::string rows;
  for (const auto& [key, time] : products) {
    for (const int64_t part : key) rows += std::to_string(part) + " ";
    rows += std::to_string(time.own) + " " + std::to_string(time.onednn) + "\n";
  }
  rows.insert(0, Machine() + "\n");
  return std::string(kMagic) + "\n" + HashOf(rows) + "\n" + rows;
}

// Returns why the text is not used; "" if its products were taken.
std::string Read(const std::string& text, std::map<Key, Timing>* to) {
  const std::string start = std::string(kMagic) + "\n";
  const size_t end = text.find('\n', start.size());  // of the hash
  if (!text.starts_with(start) || end == std::string::npos)
    return "it does not begin with \"" + std::string(kMagic) + "\"";
  if (text.substr(start.size(), end - start.size()) != HashOf(text.substr(end + 1)))
    return "its hash is wrong";
  std::istringstream in(text.substr(end + 1));
  std::string machine, line;
  std::getline(in, machine);
  if (machine != Machine()) return "it was measured on another machine (" + machine + ")";
  std::map<Key, Timing> products;
  while (std::getline(in, line)) {
    std::istringstream row(line);
    Key key;
    Timing time{};
    for (int64_t& part : key) row >> part;
    if (!(row >> time.own >> time.onednn) || time.own <= 0 || time.onednn <= 0) return "a line is no product";
    products[key] = time;
  }
  if (products.size() > kMostProducts) return "it has too many products";
  to->merge(products);
  return "";
}

void Warn(const Store& store, const std::string& what) {
  store.host->log(KEEL_LOG_WARNING, ("cpu: the file of tuned products " + store.path + ": " + what).c_str());
}

void Load(Store* store) {
  struct stat info = {};
  if (store->path.empty() || stat(store->path.c_str(), &info) != 0) return;
  const std::string ignored = "; it is ignored, and --tune replaces it";
  if (!S_ISREG(info.st_mode) || static_cast<size_t>(info.st_size) > kMostBytes)
    return Warn(*store, "it is no file of at most " + std::to_string(kMostBytes) + " bytes" + ignored);
  std::ifstream file(store->path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return Warn(*store, "it cannot be read" + ignored);
  if (const std::string wrong = Read(text.str(), &store->products); !wrong.empty())
    Warn(*store, wrong + ignored);
}

// Another process may have added products to the file since, and none sees half a file.
void Save(Store* store) {
  if (store->path.empty()) return;
  std::ifstream file(store->path, std::ios::binary);
  std::stringstream text;
  if (file && text << file.rdbuf()) Read(text.str(), &store->products);
  for (size_t slash = store->path.find('/', 1); slash != std::string::npos;
       slash = store->path.find('/', slash + 1))
    mkdir(store->path.substr(0, slash).c_str(), 0700);
  const std::string made = store->path + "." + std::to_string(getpid());
  std::ofstream out(made, std::ios::binary);
  out << TextOf(store->products);
  out.close();
  if (out && std::rename(made.c_str(), store->path.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  std::remove(made.c_str());
  Warn(*store, "it cannot be written (" + why + "); the measurements last as long as this process");
  store->path.clear();
}

}  // namespace

void OpenTuned(const keel_host* host) {
  Store& store = TheStore();
  std::lock_guard lock(store.mutex);
  if (store.host != nullptr) return;
  store.host = host;
  store.path = Path();
  store.tunes = Variable("KEEL_CPU_TUNE") == "1";
  Load(&store);
  active = store.tunes || !store.products.empty();
}

std::optional<Timing> Tuned(const MatmulShape& s, bool constant) {
  if (!active || s.batch.rank != 1 || s.b_matrices != 1) return {};
  Store& store = TheStore();
  const Key key = {s.m, s.k, s.n, s.ta, s.tb, constant};
  std::lock_guard lock(store.mutex);
  if (const auto found = store.products.find(key); found != store.products.end()) return found->second;
  if (!store.tunes || store.products.size() >= kMostProducts) return {};
  const std::optional<Timing> made = Measure(s, constant);
  if (!made) return {};
  store.products[key] = *made;
  Save(&store);
  return made;
}

}  // namespace keel_cpu
