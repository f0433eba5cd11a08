// table_size_test.cc: tables of other sizes. Each ends at an unreadable page: a read beyond struct_size
// crashes.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "abi/keel.h"
#include "abi/keel_plugin.h"
#include "tests/abi/plugin_table.h"

namespace {

// Memory of `size` bytes, rounded up to a table's alignment, that ends at an unreadable page.
class Guarded {
 public:
  explicit Guarded(size_t size) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    void* both = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(both, MAP_FAILED);
    base_ = static_cast<char*>(both);
    EXPECT_EQ(mprotect(base_ + page_, page_, PROT_NONE), 0);
    at_ = base_ + page_ - (size + 7) / 8 * 8;
  }
  ~Guarded() { munmap(base_, 2 * page_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  char* at() const { return at_; }

 private:
  size_t page_;
  char *base_, *at_;
};

// The first `size` bytes of a table, with struct_size set to it.
template <typename T>
const T* Cut(const Guarded& memory, const T& table, uint32_t size) {
  std::memcpy(memory.at(), &table, size);
  std::memcpy(memory.at(), &size, sizeof size);
  return reinterpret_cast<const T*>(memory.at());
}

keel_rc Run(const keel_call*) { return KEEL_OK; }

const keel_impl kImpl = {"neg", 1, 1, nullptr, "test", 0, 0, nullptr, nullptr, Run};
const keel_device kDevice = KEEL_HOST_DEVICE(nullptr, nullptr, nullptr, nullptr);

keel_plugin Table() { return PluginTable("sizes", &kDevice, &kImpl, 1); }

// The code and message of keel_plugin_add in a fresh context.
keel_rc Add(const keel_plugin* table, std::string* message = nullptr, uint32_t* devices = nullptr) {
  keel_context* context = nullptr;
  EXPECT_EQ(keel_context_new(nullptr, 0, &context, nullptr), KEEL_OK);
  keel_error* error = nullptr;
  keel_rc code = keel_plugin_add(context, table, &error);
  if (message) *message = error ? keel_error_text(error, KEEL_ERROR_MESSAGE) : "";
  if (devices)
    for (*devices = 0; keel_device_name(context, *devices);) ++*devices;
  keel_error_free(error);
  keel_context_free(context);
  return code;
}

TEST(TableSize, TheFullTableIsTaken) {
  keel_plugin table = Table();
  uint32_t devices = 0;
  EXPECT_EQ(Add(&table, nullptr, &devices), KEEL_OK);
  EXPECT_EQ(devices, 1u);
}

TEST(TableSize, AShorterPluginTableIsTakenFromItsNameOnAndNeverReadBeyond) {
  for (uint32_t size = 4; size <= sizeof(keel_plugin); size += 4) {
    Guarded memory(size);
    std::string message;
    keel_rc code = Add(Cut(memory, Table(), size), &message);
    if (size < KEEL_END(keel_plugin, name)) {
      EXPECT_NE(code, KEEL_OK) << size;
      EXPECT_NE(message.find(std::to_string(size)), std::string::npos) << message;
    } else if (size >= KEEL_END(keel_plugin, n_impls) && size < KEEL_END(keel_plugin, impl_stride)) {
      EXPECT_NE(code, KEEL_OK) << "impls without their stride, " << size;
    } else if (size >= KEEL_END(keel_plugin, about)) {
      EXPECT_EQ(code, KEEL_OK) << size << ": " << message;
    }
  }
}

TEST(TableSize, AShorterDeviceTableIsNeverReadBeyond) {
  for (uint32_t size = 4; size <= sizeof(keel_device); size += 4) {
    Guarded memory(size);
    keel_plugin table = Table();
    table.device = Cut(memory, kDevice, size);
    EXPECT_EQ(Add(&table) == KEEL_OK, size >= KEEL_END(keel_device, flags)) << size;
  }
}

TEST(TableSize, ALongerTableOfANewerHeaderIsTaken) {
  struct Longer {
    keel_plugin known;
    uint64_t unknown[4];
  } table = {Table(), {~0ull, ~0ull, ~0ull, ~0ull}};
  table.known.struct_size = sizeof table;
  EXPECT_EQ(Add(&table.known), KEEL_OK);
}

TEST(TableSize, RowsOfANewerHeaderAreReadByTheirStride) {
  struct Longer {
    keel_impl known;
    uint64_t unknown[2];
  } rows[2] = {{kImpl, {~0ull, ~0ull}}, {kImpl, {~0ull, ~0ull}}};
  rows[1].known.op = "abs";
  Guarded memory(sizeof rows);
  std::memcpy(memory.at(), rows, sizeof rows);
  keel_plugin table = Table();
  table.impls = reinterpret_cast<const keel_impl*>(memory.at());
  table.n_impls = 2;
  table.impl_stride = sizeof rows[0];
  EXPECT_EQ(Add(&table), KEEL_OK);
}

TEST(TableSize, RowsShorterThanAnImplAreRefused) {
  keel_plugin table = Table();
  std::string message;
  for (uint32_t stride : {0u, 8u, static_cast<uint32_t>(sizeof(keel_impl)) - 8}) {
    table.impl_stride = stride;
    EXPECT_NE(Add(&table, &message), KEEL_OK);
    EXPECT_NE(message.find("stride " + std::to_string(stride)), std::string::npos) << message;
  }
}

TEST(TableSize, NoTableAndABadNameAreRefused) {
  EXPECT_NE(Add(nullptr), KEEL_OK);
  for (const char* name : {"", "Upper", "a b", "../x", "\xff"}) {
    keel_plugin table = Table();
    table.name = name;
    EXPECT_NE(Add(&table), KEEL_OK) << name;
  }
  keel_plugin table = Table();
  table.name = nullptr;
  EXPECT_NE(Add(&table), KEEL_OK);
}

// The reverse: Keel's plugins with a host table that ends at an unreadable page. (Draft 0 has one size; a
// later minor version will also truncate it to each earlier one.)
keel_rc Fail(keel_rc code, const char*) { return code; }
void Log(int32_t, const char*) {}
const void* Ext(const char*) { return nullptr; }

TEST(TableSize, OurPluginsReadNothingBeyondTheHostTable) {
  keel_host host = {};
  host.abi_minor = KEEL_ABI_MINOR;
  host.fail = Fail;
  host.log = Log;
  host.ext = Ext;
  Guarded memory(sizeof host);
  const keel_host* table = Cut(memory, host, sizeof host);
  int seen = 0;
  for (const auto& file : std::filesystem::directory_iterator(KEEL_TEST_PLUGINS)) {
    if (file.path().extension() != ".so" || file.path().filename().string().rfind("keel-", 0) != 0) continue;
    void* library = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto entry = reinterpret_cast<const keel_plugin* (*)()>(dlsym(library, "keel_plugin_v0"));
    ASSERT_NE(entry, nullptr) << file.path();
    const keel_device* device = entry()->device;
    seen++;
    if (!device) continue;
    uint32_t count = device->count ? device->count(table) : 1;
    for (uint32_t i = 0; i < count; i++) {
      keel_device_info info = {};
      info.struct_size = sizeof info;
      keel_rc informed = device->info ? device->info(table, i, &info) : KEEL_OK;
      EXPECT_EQ(informed, KEEL_OK) << file.path();
      keel_dev opened = nullptr;
      keel_rc code = device->open ? device->open(table, i, nullptr, 0, &opened) : KEEL_OK;
      ASSERT_EQ(code, KEEL_OK) << file.path();
      if (device->close) device->close(opened);
    }
  }
  EXPECT_GT(seen, 0) << "no plugin in " KEEL_TEST_PLUGINS;
}

}  // namespace
