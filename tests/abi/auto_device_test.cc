// auto_device_test.cc: the device "auto": cuda, discrete vulkan, cpu, the first that has all ops. The plugins
// are made here, so that the order is tested without the hardware.
#include <gtest/gtest.h>

#include <deque>
#include <nlohmann/json.hpp>
#include <string>

#include "abi/keel.h"
#include "abi/keel_plugin.h"
#include "tests/abi/plugin_table.h"

namespace {

keel_rc Run(const keel_call* call) {
  *static_cast<float*>(keel_ptr(call->out[0])) = 7;
  return KEEL_OK;
}
const keel_impl kImpls[] = {{"neg", 1, 1, nullptr, "test", 0, 0, nullptr, nullptr, Run},
                            {"exp", 1, 1, nullptr, "test", 0, 0, nullptr, nullptr, Run},
                            {"sin", 1, 1, nullptr, "test", 0, 0, nullptr, nullptr, Run}};

template <uint32_t flags>
keel_rc Info(const keel_host*, uint32_t, keel_device_info* out) {
  out->flags = flags;
  return KEEL_OK;
}
uint32_t None(const keel_host* host) {
  host->fail(KEEL_UNAVAILABLE, "no driver of the test");
  return 0;
}
keel_rc Broken(const keel_host* host, uint32_t, const keel_kv*, uint32_t, keel_dev*) {
  return host->fail(KEEL_UNAVAILABLE, "its driver is broken");
}

void ExpectPart(const std::string& error, const char* part) {
  EXPECT_NE(error.find(part), std::string::npos) << part << " is not in: " << error;
}

class Auto : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(keel_context_new(nullptr, 0, &context_, nullptr), KEEL_OK); }
  void TearDown() override { keel_context_free(context_); }

  // A plugin with a device that has the first n of neg, exp, sin.
  void Add(const char* name, uint32_t n, void (*change)(keel_device*) = nullptr) {
    keel_device& device =
        devices_.emplace_back(keel_device(KEEL_HOST_DEVICE(nullptr, nullptr, nullptr, nullptr)));
    if (change) change(&device);
    const keel_plugin& table = tables_.emplace_back(PluginTable(name, &device, kImpls, n));
    ASSERT_EQ(keel_plugin_add(context_, &table, nullptr), KEEL_OK);
  }

  // The device on which y = op(x) runs, or the error.
  std::string DeviceOf(const char* op, const keel_kv* option = nullptr) {
    const std::string text = std::string("keel 1\nfn @main(x: f32[]) -> y: f32[] {\n  y = ") + op +
                             "(x)\n  return y\n}\nentry main = @main (x) -> (y)\n";
    keel_module* module = nullptr;
    EXPECT_EQ(keel_module_parse(context_, text.data(), text.size(), &module, nullptr), KEEL_OK);
    keel_session* session = nullptr;
    keel_plan* plan = nullptr;
    keel_text* report = nullptr;
    keel_error* error = nullptr;
    std::string found;
    if (keel_session_new(module, "auto", option, option ? 1 : 0, &session, &error) == KEEL_OK) {
      EXPECT_EQ(keel_plan_new(session, nullptr, 0, nullptr, 0, nullptr, 0, &plan, nullptr), KEEL_OK);
      EXPECT_EQ(keel_plan_report(plan, nullptr, 0, &report, nullptr), KEEL_OK);
      found = nlohmann::json::parse(keel_text_data(report, nullptr))["launches"][0]["device"];
    } else {
      EXPECT_EQ(keel_error_code(error), KEEL_NOT_FOUND);
      found = keel_error_text(error, KEEL_ERROR_MESSAGE);
    }
    keel_error_free(error);
    keel_text_free(report);
    keel_plan_free(plan);
    keel_session_free(session);
    keel_module_free(module);
    return found;
  }

  keel_context* context_ = nullptr;
  std::deque<keel_device> devices_;  // of tables, which must not move
  std::deque<keel_plugin> tables_;
};

TEST_F(Auto, TheFirstThatHasAllOps) {
  Add("cpu", 3);
  Add("cuda", 1);
  Add("vulkan", 2);
  Add("other", 3);  // devices of other plugins are never chosen
  EXPECT_EQ(DeviceOf("neg"), "cuda:0");
  EXPECT_EQ(DeviceOf("exp"), "vulkan:0");
  EXPECT_EQ(DeviceOf("sin"), "cpu:0");
  const std::string error = DeviceOf("cos");
  for (const char* part : {"device \"auto\": no device for graph \"main\"", "cos (T=f32) \"y\" on cuda:0",
                           "cos (T=f32) \"y\" on vulkan:0", "cos (T=f32) \"y\" on cpu:0"})
    ExpectPart(error, part);
}

TEST_F(Auto, DevicesToBeNamedAndBrokenOnesArePassedOver) {
  Add("vulkan", 3, [](keel_device* d) { d->info = Info<KEEL_DEVICE_SOFTWARE>; });
  Add("cuda", 3, [](keel_device* d) { d->open = Broken; });
  EXPECT_EQ(DeviceOf("neg").substr(0, 26), "device \"auto\": no device f");
  const std::string error = DeviceOf("neg");
  for (const char* part :
       {"vulkan:0 is a software device", "cpu: there is no such plugin", "its driver is broken"})
    ExpectPart(error, part);
  Add("cpu", 3);
  EXPECT_EQ(DeviceOf("neg"), "cpu:0");
}

TEST_F(Auto, IntegratedDevicesAndPluginsWithoutADeviceArePassedOver) {
  Add("vulkan", 3, [](keel_device* d) { d->info = Info<KEEL_DEVICE_INTEGRATED>; });
  Add("cuda", 3, [](keel_device* d) { d->count = None; });
  const std::string error = DeviceOf("neg");
  for (const char* part : {"vulkan:0 is a part of the processor", "no driver of the test"})
    ExpectPart(error, part);
}

TEST_F(Auto, WithAFallbackTheFirstThatOpens) {
  Add("cuda", 1);
  Add("cpu", 3);
  const keel_kv fallback = {"fallback", "cpu"};
  EXPECT_EQ(DeviceOf("neg", &fallback), "cuda:0");
  EXPECT_EQ(DeviceOf("sin", &fallback), "cpu:0");  // the node moved
}

TEST_F(Auto, WithoutAGraphTheFirstThatOpens) {
  Add("cuda", 1, [](keel_device* d) { d->open = Broken; });
  Add("cpu", 1);
  keel_text* report = nullptr;
  ASSERT_EQ(keel_context_report(context_, "devices:auto", &report, nullptr), KEEL_OK);
  EXPECT_EQ(nlohmann::json::parse(keel_text_data(report, nullptr))[0]["name"], "cpu:0");
  keel_text_free(report);
}

}  // namespace
