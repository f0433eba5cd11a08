// misuse_test.cc: every function of abi/*.h is called with each parameter wrong in turn (misuse_calls.py
// writes the calls), and what a header says of misuse by hand. Each ends in an error that names the
// parameter, or in nothing.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include "abi/keel.h"
#include "abi/keel_control.h"
#include "abi/keel_plugin.h"

namespace {

keel_rc Nothing(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**) { return KEEL_OK; }
keel_rc NoBlock(void*, keel_trace*, keel_array* const*, uint32_t, keel_error**) { return KEEL_OK; }
int32_t NoEvent(void*, const keel_event*) { return 0; }
void NoPrint(void*, int32_t, const char*, uint64_t) {}
int released = 0;
void Release(void*) { released++; }

void Free(keel_array* a) { keel_array_release(a); }
void Free(keel_context* c) { keel_close(c); }
void Free(keel_text* t) { keel_text_free(t); }
void Free(keel_op* o) { keel_op_free(o); }
void Free(keel_module* m) { keel_module_free(m); }
void Free(keel_session* s) { keel_session_free(s); }
void Free(keel_plan* p) { keel_plan_free(p); }
void Free(keel_trace* t) { keel_trace_free(t); }
void Free(keel_function* f) { keel_function_free(f); }
void Free(keel_tape* t) { keel_tape_free(t); }
void Free(keel_variable* v) { keel_variable_release(v); }
void Free(const void*) {}  // of a graph, a name: its owner's

class Misuse : public testing::Test {
 protected:
  static constexpr const char* kText =
      "keel 1 opset core 1\n\nfn @main(x: f32[3]) -> f32[3] {\n  y = neg(x)\n  return y\n}\n\nentry main = "
      "@main (x) -> "
      "(y)\n";

  void SetUp() override {
    char name[] = "/tmp/keel-misuse-XXXXXX";
    folder_ = mkdtemp(name);
    file_ = folder_ + "/file";
    Ok(keel_open(nullptr, 0, &context_, &error_));
    Ok(keel_plugin_load(context_, KEEL_TEST_PLUGINS "/keel-reference.so", &error_));
    Ok(keel_module_parse(context_, kText, std::char_traits<char>::length(kText), &module_, &error_));
    Ok(keel_module_parse(context_, kText, std::char_traits<char>::length(kText), &other_, &error_));
    Ok(keel_module_graph(other_, nullptr, &graph_, &error_));
    Ok(keel_session_new(module_, "reference", nullptr, 0, &session_, &error_));
    Ok(keel_session_prepare(session_, nullptr, 0, nullptr, 0, nullptr, 0, &plan_, &error_));
    Ok(keel_trace_new(context_, "trace", "reference", &trace_, &error_));
    Ok(keel_function_new(context_, "f", "reference", nullptr, 0, Nothing, nullptr, nullptr, &function_,
                         &error_));
    Ok(keel_tape_new(context_, "reference", nullptr, 0, nullptr, &tape_, &error_));
    Ok(keel_array_new(context_, KEEL_F32, kShape, 1, &array_, &error_));
    Ok(keel_variable_new(context_, array_, &variable_, &error_));
    Ok(keel_op_bind(context_, "reference", "neg", 0, nullptr, nullptr, 0, &op_, &error_));
    keel_array_tensor(array_, &tensor_);
    arrays_ = {array_, array_};
    variables_ = {variable_, variable_};
    bodies_ = {trace_, trace_};
    for (keel_leaf& leaf : leaves_) leaf.kind = KEEL_LEAF_ARRAY, leaf.array = array_;
  }
  void TearDown() override {
    keel_error_free(error_);
    for (keel_array* a : {array_}) keel_array_release(a);
    keel_variable_release(variable_);
    keel_op_free(op_);
    keel_tape_free(tape_);
    keel_function_free(function_);
    keel_trace_free(trace_);
    keel_plan_free(plan_);
    keel_session_free(session_);
    keel_module_free(module_);
    keel_module_free(other_);
    keel_close(context_);
    std::filesystem::remove_all(folder_);
  }

  void Ok(keel_rc rc) { ASSERT_EQ(rc, KEEL_OK) << Said(); }
  // What the last call said, which is forgotten then.
  std::string Said() {
    std::string text = std::string(keel_error_message(error_)) + " | " + keel_error_hint(error_);
    keel_error_free(error_);
    error_ = nullptr;
    return text;
  }
  void ExpectInvalid(keel_rc rc, const std::string& words) {
    EXPECT_EQ(rc, KEEL_INVALID) << words;
    std::string said = Said();
    EXPECT_NE(said.find(words), std::string::npos) << "no \"" << words << "\" in: " << said;
  }

  // Arguments that are well-formed: those of one type are one.
  template <typename T>
  T good(const std::string& name) {
    if constexpr (std::is_same_v<T, const char*>)
      return Text(name);
    else if constexpr (std::is_same_v<T, keel_context*>)
      return context_;
    else if constexpr (std::is_same_v<T, keel_module*>)
      return name == "from" ? other_ : module_;
    else if constexpr (std::is_same_v<T, keel_graph*>)
      return graph_;
    else if constexpr (std::is_same_v<T, keel_session*>)
      return session_;
    else if constexpr (std::is_same_v<std::remove_const_t<std::remove_pointer_t<T>>, keel_plan>)
      return plan_;
    else if constexpr (std::is_same_v<std::remove_const_t<std::remove_pointer_t<T>>, keel_trace>)
      return trace_;
    else if constexpr (std::is_same_v<T, keel_function*>)
      return function_;
    else if constexpr (std::is_same_v<T, keel_tape*>)
      return tape_;
    else if constexpr (std::is_same_v<T, keel_op*>)
      return op_;
    else if constexpr (std::is_same_v<std::remove_const_t<std::remove_pointer_t<T>>, keel_variable>)
      return variable_;
    else if constexpr (std::is_same_v<std::remove_const_t<std::remove_pointer_t<T>>, keel_array>)
      return array_;
    else if constexpr (std::is_same_v<T, const keel_tensor*>)
      return &tensor_;
    else if constexpr (std::is_same_v<T, keel_array* const*>)
      return arrays_.data();
    else if constexpr (std::is_same_v<T, keel_variable* const*>)
      return variables_.data();
    else if constexpr (std::is_same_v<T, keel_trace* const*>)
      return bodies_.data();
    else if constexpr (std::is_same_v<T, const char* const*>)
      return names_.data();
    else if constexpr (std::is_same_v<T, const keel_attr*>)
      return attrs_.data();
    else if constexpr (std::is_same_v<T, const keel_kv*>)
      return options_.data();
    else if constexpr (std::is_same_v<T, const keel_leaf*>)
      return leaves_.data();
    else if constexpr (std::is_same_v<T, const keel_block*>)
      return blocks_.data();
    else if constexpr (std::is_same_v<T, const int64_t*>)
      return kShape;
    else if constexpr (std::is_same_v<T, const keel_value*>)
      return values_.data();
    else if constexpr (std::is_same_v<T, const keel_plugin*>)
      return &plugin_;
    else if constexpr (std::is_same_v<T, keel_program>)
      return Nothing;
    else if constexpr (std::is_same_v<T, keel_block>)
      return NoBlock;
    else if constexpr (std::is_same_v<T, keel_observer>)
      return NoEvent;
    else if constexpr (std::is_same_v<T, void (*)(void*)>)
      return Release;
    else if constexpr (std::is_same_v<T, const void*> || std::is_same_v<T, void*> ||
                       std::is_same_v<T, void* const*>)
      return static_cast<T>(static_cast<void*>(room_.data()));
    else
      return Out<std::remove_pointer_t<T>>();
  }
  template <typename T>
  T number(const std::string& name) {
    if constexpr (std::is_same_v<T, keel_print_fn>)
      return NoPrint;
    else
      return name == "dtype" ? static_cast<T>(KEEL_F32) : name == "sign" ? T{1} : T{0};
  }
  const char* Text(const std::string& name) const {
    const std::pair<const char*, const char*> texts[] = {
        {"device", "reference"}, {"op", "neg"},         {"how", "assign"},      {"what", "ops"},
        {"expression", "b"},     {"rule", "b in 2..9"}, {"entry", "main"},      {"text", kText},
        {"label", "body"},       {"structure", ""},     {"path", file_.c_str()}};
    for (auto [key, text] : texts)
      if (name == key) return text;
    return "x";
  }
  // Room for what comes back through a pointer, freed after the call: eight words for each.
  template <typename T>
  T* Out() {
    void** at = &room_.at(8 * free_.size());
    free_.push_back([](void** room) {
      if constexpr (std::is_pointer_v<T>)
        if (auto made = (T*)room) Free(*made);
    });
    return (T*)at;
  }

  template <typename Call>
  auto Do(const Call& call) {
    room_.fill(nullptr);
    free_.clear();
    return call();
  }
  void Done(keel_rc rc) {
    for (size_t i = 0; rc == KEEL_OK && i < free_.size(); i++) free_[i](&room_[8 * i]);
    keel_error_free(std::exchange(error_, nullptr));
  }
  template <typename Call>
  void Named(const char* function, const char* parameter, const Call& call) {
    keel_rc rc = Do(call);
    EXPECT_EQ(rc, KEEL_INVALID) << function << ": " << parameter;
    std::string words = std::string(function) + ": '" + parameter, said = keel_error_message(error_);
    EXPECT_EQ(said.rfind(words, 0), 0u) << "wanted \"" << words << "...\", got: " << said;
    Done(rc);
  }
  template <typename Call>
  void Fails(const char* function, const char* parameter, const Call& call) {
    keel_rc rc = Do(call);
    EXPECT_NE(rc, KEEL_OK) << function << ": " << parameter;
    EXPECT_NE(rc, KEEL_INTERNAL) << function << ": " << parameter << ": " << keel_error_message(error_);
    Done(rc);
  }
  template <typename Call>
  void Survives(const char* function, const char* parameter, const Call& call) {
    keel_rc rc = Do(call);
    EXPECT_NE(rc, KEEL_INTERNAL) << function << ": " << parameter << ": " << keel_error_message(error_);
    Done(rc);
  }
  template <typename Call>
  void Silent(const char*, const char*, const Call& call) {
    Do(call);
  }

  static constexpr int64_t kShape[8] = {3, 2, 2, 2, 2, 2, 2, 2};
  std::string folder_, file_;
  keel_context* context_ = nullptr;
  keel_error* error_ = nullptr;
  keel_module *module_ = nullptr, *other_ = nullptr;
  keel_graph* graph_ = nullptr;
  keel_session* session_ = nullptr;
  keel_plan* plan_ = nullptr;
  keel_trace* trace_ = nullptr;
  keel_function* function_ = nullptr;
  keel_tape* tape_ = nullptr;
  keel_array* array_ = nullptr;
  keel_variable* variable_ = nullptr;
  keel_op* op_ = nullptr;
  keel_tensor tensor_{};
  keel_plugin plugin_{};
  std::array<keel_array*, 2> arrays_{};
  std::array<keel_variable*, 2> variables_{};
  std::array<keel_trace*, 2> bodies_{};
  std::array<const char*, 2> names_{"x", "y"};
  std::array<keel_attr, 2> attrs_{};
  std::array<keel_kv, 2> options_{{{"bogus", "1"}, {"bogus", "1"}}};
  std::array<keel_leaf, 2> leaves_{};
  std::array<keel_block, 2> blocks_{NoBlock, NoBlock};
  std::array<keel_value, 2> values_{};
  std::array<void*, 128> room_{};
  std::vector<void (*)(void**)> free_;
};

TEST_F(Misuse, EveryParameterOfEveryFunctionIsChecked){
#include "misuse_calls.inc"
}

TEST_F(Misuse, StridesAndOffsetsThatLeaveTheMemoryAreRefused) {
  float data[4] = {1, 2, 3, 4};
  int64_t shape[2] = {2, 2}, strides[2] = {2, 1};
  keel_tensor t = {data, {1, 0}, 2, {2, 32, 1}, shape, strides, 0};
  keel_array* a = nullptr;
  for (int64_t stride : {int64_t{1} << 40, INT64_MAX / 8, INT64_MAX, INT64_MIN, -(int64_t{1} << 40)}) {
    strides[0] = stride;
    ExpectInvalid(keel_array_copy_from(context_, &t, &a, &error_), "strides[0] is " + std::to_string(stride));
    ExpectInvalid(keel_array_wrap(context_, &t, Release, nullptr, &a, &error_),
                  "strides[0] is " + std::to_string(stride));
  }
  t.strides = nullptr;
  t.byte_offset = UINT64_MAX - 3;
  ExpectInvalid(keel_array_copy_from(context_, &t, &a, &error_), "byte_offset is 18446744073709551612");
  ExpectInvalid(keel_array_wrap(context_, &t, Release, nullptr, &a, &error_),
                "byte_offset is 18446744073709551612");
  t.byte_offset = 0;
  strides[0] = 1, strides[1] = 2;
  t.strides = strides;
  Ok(keel_array_copy_from(context_, &t, &a, &error_));  // transposed
  keel_tensor out;
  keel_array_tensor(a, &out);
  EXPECT_EQ(static_cast<float*>(out.data)[1], 3);
  keel_array_release(a);
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
  EXPECT_NE(keel_array_wrap(context_, &t, Release, nullptr, &a, nullptr), KEEL_OK);
  EXPECT_EQ(released, 0);
  ASSERT_EQ(keel_function_new(context_, "f", "reference", nullptr, 0, Nothing, nullptr, Release, &f, nullptr),
            KEEL_OK);
  keel_function_free(f);
  EXPECT_EQ(released, 1) << "what was taken is given back once";
}

TEST_F(Misuse, BindChecksAttributes) {
  const char* name = "bogus";
  keel_attr a = {KEEL_ATTR_I64, 0, 1, 0, nullptr};
  keel_op* op = nullptr;
  ExpectInvalid(keel_op_bind(context_, "reference", "neg", 0, &name, &a, 1, &op, &error_),
                "has no attribute 'bogus'");
  name = "axes";
  a = {KEEL_ATTR_STR, 1, 0, 0, "x"};
  ExpectInvalid(keel_op_bind(context_, "reference", "reduce_sum", 0, &name, &a, 1, &op, &error_),
                "attribute 'axes' of reduce_sum");
  a = {KEEL_ATTR_I64S, UINT32_MAX, 0, 0, kShape};
  ExpectInvalid(keel_op_bind(context_, "reference", "reduce_sum", 0, &name, &a, 1, &op, &error_),
                "4294967295 entries");
}

TEST_F(Misuse, AnOptionIsGivenOnce) {
  keel_kv options[] = {{"threads", "1"}, {"threads", "2"}};
  keel_context* c = nullptr;
  ExpectInvalid(keel_open(options, 2, &c, &error_), "option \"threads\" is given twice");
  keel_kv places[] = {{"place", "a=reference"}, {"place", "b=reference"}};  // but this one repeats
  keel_session* s = nullptr;
  Ok(keel_session_new(module_, "reference", places, 2, &s, &error_));
  keel_session_free(s);
}

keel_rc Undeclared(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**) { return 77; }
keel_rc BothWays(void*, keel_trace* t, const keel_leaf*, uint32_t, keel_error** err) {
  keel_trace_result(t, nullptr, nullptr, err);
  return KEEL_OK;
}
keel_rc Throws(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**) {
  throw std::runtime_error("from the program");
}
keel_rc ThrowsNumber(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**) { throw 7; }

TEST_F(Misuse, WhatACallbackDoesWrongIsToldAsSuch) {
  struct Case {
    keel_program program;
    keel_rc code;
    const char* words;
  };
  for (const Case& c :
       {Case{Undeclared, KEEL_UNKNOWN, "returned 77, which is no code of Keel"},
        Case{BothWays, KEEL_INVALID, "returned KEEL_OK but stored an error: keel_trace_result: 'array'"},
        Case{Throws, KEEL_UNKNOWN, "threw a C++ exception: from the program"},
        Case{ThrowsNumber, KEEL_UNKNOWN, "threw a C++ exception"}})
    for (int eagerly : {0, 1}) {
      keel_function* f = nullptr;
      Ok(keel_function_new(context_, "f", "reference", nullptr, 0, c.program, nullptr, nullptr, &f, &error_));
      keel_function_run_eagerly(f, eagerly);
      keel_array* out = nullptr;
      uint32_t n = 0;
      EXPECT_EQ(keel_function_call(f, nullptr, "", leaves_.data(), 1, &out, 1, &n, &error_), c.code);
      std::string said = Said();
      EXPECT_NE(said.find(c.words), std::string::npos) << said;
      keel_function_free(f);
    }
}

keel_variable* counter = nullptr;
keel_rc Counts(void* one, keel_trace* t, const keel_leaf* leaves, uint32_t, keel_error** err) {
  keel_rc rc = keel_trace_write(t, counter, "assign_add", static_cast<keel_array*>(one), err);
  for (int i = 0; i < 2 && rc == KEEL_OK; i++) rc = keel_trace_result(t, nullptr, leaves[0].array, err);
  return rc;
}

TEST_F(Misuse, TooLittleRoomIsSaidBeforeAnythingIsWritten) {
  keel_tensor t;
  keel_array_tensor(array_, &t);
  static_cast<float*>(t.data)[0] = 1;
  counter = variable_;
  keel_function* f = nullptr;
  Ok(keel_function_new(context_, "f", "reference", nullptr, 0, Counts, array_, nullptr, &f, &error_));
  keel_array *out[2], *value = nullptr;
  uint32_t n = 0;
  auto count = [&] {
    Ok(keel_variable_read(variable_, &value, &error_));
    keel_array_tensor(value, &t);
    float now = static_cast<float*>(t.data)[0];
    keel_array_release(value);
    return now;
  };
  ExpectInvalid(keel_function_call(f, nullptr, "", leaves_.data(), 1, out, 1, &n, &error_),
                "2 results, got room for 1");
  EXPECT_EQ(count(), 0) << "a call that failed wrote";
  for (int call = 1; call <= 2; call++) {
    Ok(keel_function_call(f, nullptr, "", leaves_.data(), 1, out, 2, &n, &error_));
    for (keel_array* a : out) keel_array_release(a);
    ExpectInvalid(keel_function_call(f, nullptr, "", leaves_.data(), 1, out, 1, &n, &error_),
                  "got room for 1");
    EXPECT_EQ(count(), call) << "a warm call that failed wrote";
  }
  keel_function_free(f);
}

TEST_F(Misuse, ATraceFileThatBlocksOrIsNotThereKeepsNoContextFromOpening) {
  std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EXIT(
      {
        alarm(10);
        setenv("KEEL_TRACE", fifo.c_str(), 1);
        keel_context* c = nullptr;
        _exit(keel_open(nullptr, 0, &c, nullptr));
      },
      testing::ExitedWithCode(KEEL_OK), "KEEL_TRACE: cannot write the timeline");
}

#if defined(__SANITIZE_ADDRESS__)
TEST_F(Misuse, AddressSanitizerSeesDeadHandles) {
  keel_array* a = nullptr;
  Ok(keel_array_new(context_, KEEL_F32, kShape, 1, &a, &error_));
  EXPECT_DEATH(
      {
        keel_array_release(a);
        keel_array_release(a);
      },
      "heap-use-after-free|double-free");
  keel_array_release(a);
}
#endif

}  // namespace
