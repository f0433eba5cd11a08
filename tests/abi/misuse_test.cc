// misuse_test.cc: every function of libkeel is called with each parameter wrong in turn (misuse_calls.py
// writes the calls), then cases by hand. Each ends in an error that names the
// parameter, or in nothing. Callbacks are in misuse_callback_test.cc.
#include "misuse.h"

#include <utility>

namespace {

using namespace misuse;

TEST_F(Misuse, EveryParameterOfEveryFunctionIsChecked){
#include "misuse_calls.inc"
}

TEST_F(Misuse, NumbersAndOptionsAreNamed) {
  EXPECT_STREQ(keel_device_name(context_, 0), "reference:0");
  EXPECT_EQ(keel_device_name(context_, 1), nullptr);
  EXPECT_EQ(keel_device_name(context_, UINT32_MAX), nullptr);
  EXPECT_EQ(keel_module_case(module_, 7, nullptr, 0, nullptr, 0, &error_), KEEL_NOT_FOUND);
  EXPECT_EQ(Said(), "keel_module_case: 'index' is 7, but there are 0 cases | ");
  keel_context* c = nullptr;
  for (keel_kv option : {keel_kv{nullptr, "1"}, keel_kv{"threads", nullptr}})
    ExpectInvalid(keel_context_new(&option, 1, &c, &error_),
                  option.key ? "options[0].value is NULL" : "options[0].key is NULL");
  keel_tensor t = tensor_;
  keel_array* a = nullptr;
  t.ndim = -1;
  ExpectInvalid(keel_array_from_tensor(context_, &t, nullptr, nullptr, &a, &error_), "ndim is -1");
  t.ndim = 1, t.shape = nullptr;
  ExpectInvalid(keel_array_from_tensor(context_, &t, nullptr, nullptr, &a, &error_),
                "shape is NULL, but ndim is 1");
  t = tensor_, t.data = nullptr;
  ExpectInvalid(keel_array_from_tensor(context_, &t, nullptr, nullptr, &a, &error_),
                "data is NULL, but the tensor has 3 elements");
  ExpectInvalid(keel_array_from_tensor(context_, &t, Release, nullptr, &a, &error_), "data is NULL");
}

TEST_F(Misuse, CountsOfATableAreNamed) {
  keel_device device = {};
  device.struct_size = sizeof device;
  device.flags = KEEL_DEVICE_HOST_MEMORY;
  keel_impl impl = {};
  keel_plugin p = {};
  p.struct_size = sizeof p;
  p.draft = KEEL_ABI_DRAFT;
  p.name = "table";
  auto expect = [&](const char* words) { ExpectInvalid(keel_plugin_add(context_, &p, &error_), words); };
  p.draft = KEEL_ABI_DRAFT + 1;
  expect(("draft " + std::to_string(KEEL_ABI_DRAFT + 1) + ", this libkeel has minor " +
          std::to_string(KEEL_ABI_MINOR) + " draft " + std::to_string(KEEL_ABI_DRAFT) +
          ": rebuild the plugin")
             .c_str());
  p.draft = KEEL_ABI_DRAFT;
  p.impl_stride = sizeof impl;
  for (uint32_t n : {1u, UINT32_MAX}) {
    p.n_impls = n;
    expect(n == 1 ? "n_impls is 1, but the list is NULL" : "n_impls is 4294967295");
  }
  p.n_impls = 1, p.impls = &impl, p.impl_stride = 3;
  expect("impls: stride 3, expected at least");
  p.n_impls = 0;
  p.importer_stride = sizeof(keel_importer), p.n_importers = UINT32_MAX;
  expect("n_importers is 4294967295");
  p.n_importers = 0, p.pass_stride = sizeof(keel_pass), p.n_passes = UINT32_MAX;
  expect("n_passes is 4294967295");
  p.n_passes = 0, p.device = &device, device.struct_size = 4;
  expect("its device's table has 4 bytes, expected at least");
}

TEST_F(Misuse, StridesAndOffsetsThatLeaveTheMemoryAreRefused) {
  float data[4] = {1, 2, 3, 4};
  int64_t shape[2] = {2, 2}, strides[2] = {2, 1};
  keel_tensor t = {data, {1, 0}, 2, {2, 32, 1}, shape, strides, 0};
  keel_array* a = nullptr;
  for (int64_t stride : {int64_t{1} << 40, INT64_MAX / 8, INT64_MAX, INT64_MIN, -(int64_t{1} << 40)}) {
    strides[0] = stride;
    ExpectInvalid(keel_array_from_tensor(context_, &t, nullptr, nullptr, &a, &error_),
                  "strides[0] is " + std::to_string(stride));
    ExpectInvalid(keel_array_from_tensor(context_, &t, Release, nullptr, &a, &error_),
                  "strides[0] is " + std::to_string(stride));
  }
  t.strides = nullptr;
  t.byte_offset = UINT64_MAX - 3;
  ExpectInvalid(keel_array_from_tensor(context_, &t, nullptr, nullptr, &a, &error_),
                "byte_offset is 18446744073709551612");
  ExpectInvalid(keel_array_from_tensor(context_, &t, Release, nullptr, &a, &error_),
                "byte_offset is 18446744073709551612");
  t.byte_offset = 0;
  strides[0] = 1, strides[1] = 2;
  t.strides = strides;
  Ok(keel_array_from_tensor(context_, &t, nullptr, nullptr, &a, &error_));  // transposed
  keel_tensor out;
  keel_array_tensor(a, &out);
  EXPECT_EQ(static_cast<float*>(out.data)[1], 3);
  keel_array_free(a);
}

TEST_F(Misuse, BytesBeyondAnAddressSpaceAreRefused) {
  keel_module* m = nullptr;
  ExpectInvalid(keel_module_load_bytes(context_, "abc", UINT64_MAX, nullptr, nullptr, &m, &error_),
                "keel_module_load_bytes: 'size' is 18446744073709551615");
  ExpectInvalid(keel_module_parse(context_, "abc", UINT64_MAX, &m, &error_), "keel_module_parse: 'size' is");
}

TEST_F(Misuse, ACallThatFailsReleasesNothing) {
  released = 0;
  keel_function* f = nullptr;
  keel_kv unknown = {"x", "y"}, bad = {"signature", "((("};
  for (const keel_kv* option : {&unknown, &bad})
    EXPECT_NE(
        keel_function_new(context_, "f", "reference", option, 1, Nothing, nullptr, Release, &f, nullptr),
        KEEL_OK);
  EXPECT_NE(keel_function_new(context_, "f", "nowhere", nullptr, 0, Nothing, nullptr, Release, &f, nullptr),
            KEEL_OK);
  EXPECT_NE(keel_function_new(nullptr, "f", "reference", nullptr, 0, Nothing, nullptr, Release, &f, nullptr),
            KEEL_OK);
  keel_module* m = nullptr;
  EXPECT_NE(keel_module_load_bytes(context_, "abc", 3, Release, nullptr, &m, nullptr), KEEL_OK);
  EXPECT_NE(keel_module_load_bytes(context_, nullptr, 3, Release, nullptr, &m, nullptr), KEEL_OK);
  keel_array* a = nullptr;
  keel_tensor t = tensor_;
  t.ndim = 99;
  EXPECT_NE(keel_array_from_tensor(context_, &t, Release, nullptr, &a, nullptr), KEEL_OK);
  EXPECT_EQ(released, 0);
  ASSERT_EQ(keel_function_new(context_, "f", "reference", nullptr, 0, Nothing, nullptr, Release, &f, nullptr),
            KEEL_OK);
  keel_function_free(f);
  EXPECT_EQ(released, 1) << "the argument is released once";
}

TEST_F(Misuse, BindChecksAttributes) {
  const char* name = "bogus";
  keel_attr a = {KEEL_ATTR_I64, 0, 1, 0, nullptr};
  keel_op* op = nullptr;
  ExpectInvalid(keel_op_new(context_, "reference", "neg", 0, &name, &a, 1, &op, &error_),
                "has no attribute 'bogus'");
  name = "axes";
  a = {KEEL_ATTR_STR, 1, 0, 0, "x"};
  ExpectInvalid(keel_op_new(context_, "reference", "reduce_sum", 0, &name, &a, 1, &op, &error_),
                "attribute 'axes' of reduce_sum");
  a = {KEEL_ATTR_I64S, UINT32_MAX, 0, 0, kShape};
  ExpectInvalid(keel_op_new(context_, "reference", "reduce_sum", 0, &name, &a, 1, &op, &error_),
                "4294967295 entries");
}

TEST_F(Misuse, AnOptionIsGivenOnce) {
  keel_kv options[] = {{"threads", "1"}, {"threads", "2"}};
  keel_context* c = nullptr;
  ExpectInvalid(keel_context_new(options, 2, &c, &error_), "option \"threads\" is given twice");
  keel_kv places[] = {{"place", "a=reference"}, {"place", "b=reference"}};  // but this one repeats
  keel_session* s = nullptr;
  Ok(keel_session_new(module_, "reference", places, 2, &s, &error_));
  keel_session_free(s);
}
TEST_F(Misuse, ATraceFileThatBlocksOrIsNotThereKeepsNoContextFromOpening) {
  std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EXIT(
      {
        alarm(10);
        setenv("KEEL_TRACE", fifo.c_str(), 1);
        keel_context* c = nullptr;
        _exit(keel_context_new(nullptr, 0, &c, nullptr));
      },
      testing::ExitedWithCode(KEEL_OK), "KEEL_TRACE: cannot write the timeline");
}

}  // namespace
