// misuse_values_test.cc: invalid sizes, tensors, operands, options and files are refused with an error that
// names them.
#include "misuse.h"

#include <algorithm>
#include <fstream>

namespace {

using namespace misuse;

class MisusedValues : public Misuse {
 protected:
  void ExpectNoArray(const std::vector<int64_t>& shape, keel_dt dtype, keel_rc code, const char* words) {
    keel_array* a = nullptr;
    ExpectError(
        keel_array_new(context_, dtype, shape.data(), static_cast<int32_t>(shape.size()), &a, &error_), code,
        words);
  }
  keel_op* Bound(const char* name) {
    keel_op* op = nullptr;
    Ok(keel_op_new(context_, "reference", name, 0, nullptr, nullptr, 0, &op, &error_));
    return op;
  }
};

TEST_F(MisusedValues, SizesThatNoArrayHas) {
  const int64_t large = int64_t{1} << 40;
  ExpectNoArray({-1}, KEEL_F32, KEEL_INVALID, "shape [-1]: -1 is not in [0, 2^40]");
  ExpectNoArray({INT64_MIN}, KEEL_F32, KEEL_INVALID, "-9223372036854775808 is not in");
  ExpectNoArray({0, INT64_MAX}, KEEL_F32, KEEL_INVALID, "9223372036854775807 is not in");
  ExpectNoArray({large, large}, KEEL_F32, KEEL_OOM, "needs more than 2^40 bytes");
  ExpectNoArray(std::vector<int64_t>(100, 1), KEEL_F32, KEEL_INVALID,
                "keel_array_new: 'ndim' is 100; at least 0 and at most 8");
  for (keel_dt dtype : {keel_dt{0}, keel_dt{UINT32_MAX}, keel_dt{KEEL_F32 + (3u << 16)}})
    ExpectNoArray({}, dtype, KEEL_INVALID,
                  ("dtype code " + std::to_string(dtype) + " is not one of Keel's").c_str());
}

TEST_F(MisusedValues, TensorsThatCannotBeRead) {
  float data[4] = {};
  int64_t shape[2] = {2, 2}, negative[2] = {-1, 2};
  keel_tensor good = {data, {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0}, ranks = good, sizes = good,
              lanes = good, bits = good, cuda = good, unknown = good;
  ranks.ndim = 100;
  sizes.shape = negative;
  lanes.dtype.lanes = 4;
  bits.dtype.bits = 4;
  cuda.device.type = 2;
  unknown.device.type = 99;
  struct Case {
    const keel_tensor* tensor;
    keel_rc code;
    const char* words;
  };
  for (const Case& c :
       {Case{&ranks, KEEL_INVALID, "ndim is 100"}, Case{&sizes, KEEL_INVALID, "shape [-1, 2]"},
        Case{&lanes, KEEL_INVALID, "32 bits, 4 lanes"}, Case{&bits, KEEL_INVALID, "4 bits"},
        Case{&cuda, KEEL_UNIMPLEMENTED, "device type 2"},
        Case{&unknown, KEEL_UNIMPLEMENTED, "device type 99"}}) {
    keel_array* a = nullptr;
    ExpectError(keel_array_from_tensor(context_, c.tensor, nullptr, nullptr, &a, &error_), c.code, c.words);
    ExpectError(keel_array_from_tensor(context_, c.tensor, Release, nullptr, &a, &error_), c.code, c.words);
  }
  keel_array* a = nullptr;
  keel_tensor crooked = good;
  crooked.byte_offset = 1;
  ExpectInvalid(keel_array_from_tensor(context_, &crooked, Release, nullptr, &a, &error_),
                "not aligned to the 4 bytes of f32; copy it instead");
}

TEST_F(MisusedValues, StridesOfZeroAndBackwardsAreRead) {
  float data[4] = {1, 2, 3, 4};
  int64_t shape[2] = {2, 2}, backwards[2] = {-2, 1}, none[2] = {0, 0};
  struct Case {
    float* begin;
    int64_t* strides;
    std::array<float, 4> want;
  };
  for (const Case& c : {Case{data + 2, backwards, {3, 4, 1, 2}}, Case{data + 1, none, {2, 2, 2, 2}}}) {
    keel_tensor t = {c.begin, {1, 0}, 2, {2, 32, 1}, shape, c.strides, 0}, copied;
    keel_array* a = nullptr;
    Ok(keel_array_from_tensor(context_, &t, nullptr, nullptr, &a, &error_));
    keel_array_tensor(a, &copied);
    EXPECT_TRUE(std::equal(c.want.begin(), c.want.end(), static_cast<float*>(copied.data)));
    keel_array_free(a);
  }
}

TEST_F(MisusedValues, OperandsAndResultsOfAnOpAreCounted) {
  keel_op *add = Bound("add"), *concat = Bound("concat");
  keel_array* out[2] = {};
  ExpectInvalid(keel_apply(add, arrays_.data(), 1, out, 1, &error_), "takes 2 operands, got 1");
  ExpectInvalid(keel_apply(add, arrays_.data(), 2, out, 2, &error_), "1 results, but 'out' has room for 2");
  ExpectInvalid(keel_apply(add, arrays_.data(), 2, out, 0, &error_), "1 results, but 'out' has room for 0");
  keel_array* holed[2] = {array_, nullptr};
  ExpectInvalid(keel_apply(add, holed, 2, out, 1, &error_), "b must be given");
  ExpectInvalid(keel_apply(concat, arrays_.data(), INT32_MAX, out, 1, &error_), "'n_in' is 2147483647");
  keel_op_free(add);
  keel_op_free(concat);
}

TEST_F(MisusedValues, ArraysOfARunAreNeeded) {
  keel_array *none = nullptr, *out = nullptr;
  keel_text* text = nullptr;
  EXPECT_EQ(keel_plan_run(plan_, &none, 1, &out, 1, &error_), KEEL_INVALID);
  EXPECT_EQ(Said(),
            "keel_plan_run: 'in[0]' is NULL; a pointer is needed | feed \"x\" is missing; it is f32[3]");
  ExpectInvalid(keel_plan_run_observed(plan_, &none, 1, &out, 1, NoEvent, nullptr, &error_),
                "keel_plan_run_observed: 'in[0]' is NULL");
  ExpectInvalid(keel_plan_report(plan_, &none, 1, &text, &error_), "keel_plan_report: 'in[0]' is NULL");
}

TEST_F(MisusedValues, VersionsAndAttributesAreChecked) {
  keel_op* op = nullptr;
  ExpectError(keel_op_new(context_, "reference", "add", 99, nullptr, nullptr, 0, &op, &error_),
              KEEL_NOT_FOUND, "no version 99; the newest here is 1");
  const char* names[2] = {"tb", "tb"};
  keel_attr values[2] = {{99, 0, 1, 0, nullptr}, {KEEL_ATTR_I64, 0, 0, 0, nullptr}};
  auto bind = [&](uint32_t n) {
    return keel_op_new(context_, "reference", "matmul", 0, names, values, n, &op, &error_);
  };
  ExpectInvalid(bind(1), "attribute kind 99 is not known");
  values[0] = {KEEL_ATTR_STR, UINT32_MAX, 0, 0, nullptr};
  ExpectInvalid(bind(1), "4294967295 entries without data");
  values[0] = values[1];
  ExpectInvalid(bind(2), "\"tb\" is given twice");
}

TEST_F(MisusedValues, ArgumentsOfFunctionsAreChecked) {
  keel_array* out = nullptr;
  uint32_t n = 0;
  auto expect = [&](keel_leaf leaf, const char* words) {
    ExpectInvalid(keel_function_call(function_, nullptr, nullptr, "", &leaf, 1, &out, 1, &n, &error_), words);
  };
  expect({KEEL_LEAF_ARRAY, 0, nullptr, nullptr, 0, 0, nullptr}, "argument 0 is NULL; expected an array");
  expect({99, 0, nullptr, nullptr, 0, 0, nullptr}, "kind 99 is not one of the KEEL_LEAF_ kinds");
  expect({KEEL_LEAF_STR, 0, nullptr, nullptr, 0, 0, nullptr}, "argument 0 is NULL; expected a string");
}

TEST_F(MisusedValues, ThreadsAreANumber) {
  for (const char* text : {"0", "-1", "1000000", "abc", "", "99999999999999999999", " 3", "3 "}) {
    keel_kv option = {"threads", text};
    keel_context* c = nullptr;
    ExpectInvalid(keel_context_new(&option, 1, &c, &error_),
                  "option \"threads\": got \"" + std::string(text) + "\", expected a number from 1 to 4096");
  }
}

TEST_F(MisusedValues, NamesThatNothingHas) {
  keel_text* text = nullptr;
  ExpectInvalid(keel_context_report(context_, "bogus", &text, &error_),
                "keel_context_report: 'what' is \"bogus\"; expected one of plugins, ");
  keel_tape* tape = nullptr;
  ExpectError(keel_tape_new(context_, "bogus", nullptr, 0, nullptr, &tape, &error_), KEEL_NOT_FOUND,
              "no device \"bogus\"; available devices: reference:0");
  keel_array* out = nullptr;
  ExpectInvalid(keel_tape_gradient(tape_, arrays_.data(), 1, nullptr, arrays_.data(), nullptr, 1, UINT32_MAX,
                                   &out, &error_),
                "keel_tape_gradient: 'flags' is 4294967295");
  ExpectInvalid(keel_tape_gradient(tape_, arrays_.data(), 1, nullptr, nullptr, nullptr, 1, 0, &out, &error_),
                "keel_tape_gradient: 'xs[0]' is NULL, and so is 'variables[0]'");
  keel_trace* body = nullptr;
  ExpectInvalid(keel_body_begin(trace_, nullptr, "then", nullptr, 0, 0, 2, &body, nullptr, &error_),
                "keel_body_begin: 'flags' is 2");
}

TEST_F(MisusedValues, TapesArePausedAndResumedAtWill) {
  for (int on : {0, 0, 1, 1, 0}) keel_tape_pause(tape_, on);
  Ok(keel_tape_watch(tape_, array_, nullptr, &error_));
}

TEST_F(MisusedValues, CheckpointsThatAreNone) {
  std::ofstream(file_) << "garbage";
  std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const char* names[2] = {"w", "w"};
  auto load = [&](const std::string& path) {
    return keel_checkpoint_load(context_, path.c_str(), names, variables_.data(), 1, &error_);
  };
  auto save = [&](const std::string& path, uint32_t n) {
    return keel_checkpoint_save(context_, path.c_str(), names, variables_.data(), n, &error_);
  };
  ExpectInvalid(load(file_), "this is not a Keel file");
  std::ofstream(file_) << "keel 1\nvar w: f32[] = 1.0\n";
  ExpectInvalid(load(file_), "this is the text form of a module, not a Keel file");
  ExpectInvalid(load(fifo), "it is not a regular file");
  ExpectError(save(folder_, 1), KEEL_PRECONDITION, "it exists and is not a regular file");
  ExpectError(save(file_, 2), KEEL_EXISTS, "already has a variable 'w'");
}

}  // namespace
