// misuse.h: one valid object of each kind, and expectations for wrong calls. See misuse_test.cc.
#pragma once
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

// As in dlpack.h.
struct DLManagedTensor {
  keel_tensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* manager;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  keel_tensor tensor;
};

namespace misuse {

inline keel_rc Nothing(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**) { return KEEL_OK; }
inline keel_rc NoBlock(void*, keel_trace*, keel_array* const*, uint32_t, keel_error**) { return KEEL_OK; }
inline int32_t NoEvent(void*, const keel_event*) { return 0; }
inline void NoPrint(void*, int32_t, const char*, uint64_t) {}
inline int released = 0;
inline void Release(void*) { released++; }

inline void Free(keel_array* a) { keel_array_free(a); }
inline void Free(keel_context* c) { keel_context_free(c); }
inline void Free(keel_text* t) { keel_text_free(t); }
inline void Free(keel_op* o) { keel_op_free(o); }
inline void Free(keel_module* m) { keel_module_free(m); }
inline void Free(keel_session* s) { keel_session_free(s); }
inline void Free(keel_plan* p) { keel_plan_free(p); }
inline void Free(keel_trace* t) { keel_trace_free(t); }
inline void Free(keel_function* f) { keel_function_free(f); }
inline void Free(keel_tape* t) { keel_tape_free(t); }
inline void Free(keel_variable* v) { keel_variable_free(v); }
inline void Free(DLManagedTensorVersioned* d) { d->deleter(d); }
inline void Free(DLManagedTensor* d) { d->deleter(d); }
inline void Free(const void*) {}  // borrowed from a graph; a name: borrowed from its owner

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
    Ok(keel_context_new(nullptr, 0, &context_, &error_));
    Ok(keel_plugin_load(context_, KEEL_TEST_PLUGINS "/keel-reference.so", &error_));
    Ok(keel_module_parse(context_, kText, std::char_traits<char>::length(kText), &module_, &error_));
    Ok(keel_module_parse(context_, kText, std::char_traits<char>::length(kText), &other_, &error_));
    Ok(keel_module_graph(other_, nullptr, &graph_, &error_));
    Ok(keel_session_new(module_, "reference", nullptr, 0, &session_, &error_));
    Ok(keel_plan_new(session_, nullptr, 0, nullptr, 0, nullptr, 0, &plan_, &error_));
    Ok(keel_trace_new(context_, "trace", "reference", &trace_, &error_));
    Ok(keel_function_new(context_, "f", "reference", nullptr, 0, Nothing, nullptr, nullptr, &function_,
                         &error_));
    Ok(keel_tape_new(context_, "reference", nullptr, 0, nullptr, &tape_, &error_));
    Ok(keel_array_new(context_, KEEL_F32, kShape, 1, &array_, &error_));
    Ok(keel_variable_new(context_, nullptr, array_, nullptr, 0, &variable_, &error_));
    Ok(keel_op_new(context_, "reference", "neg", 0, nullptr, nullptr, 0, &op_, &error_));
    keel_array_tensor(array_, &tensor_);
    arrays_ = {array_, array_};
    variables_ = {variable_, variable_};
    bodies_ = {trace_, trace_};
    for (keel_leaf& leaf : leaves_) leaf.kind = KEEL_LEAF_ARRAY, leaf.array = array_;
  }
  void TearDown() override {
    keel_error_free(error_);
    for (keel_array* a : {array_}) keel_array_free(a);
    keel_variable_free(variable_);
    keel_op_free(op_);
    keel_tape_free(tape_);
    keel_function_free(function_);
    keel_trace_free(trace_);
    keel_plan_free(plan_);
    keel_session_free(session_);
    keel_module_free(module_);
    keel_module_free(other_);
    keel_context_free(context_);
    std::filesystem::remove_all(folder_);
  }

  void Ok(keel_rc rc) { ASSERT_EQ(rc, KEEL_OK) << Said(); }
  // The message of the last call; reading it clears it.
  std::string Said() {
    std::string text = std::string(keel_error_text(error_, KEEL_ERROR_MESSAGE)) + " | " +
                       keel_error_text(error_, KEEL_ERROR_HINT);
    keel_error_free(error_);
    error_ = nullptr;
    return text;
  }
  void ExpectError(keel_rc rc, keel_rc code, const std::string& words) {
    EXPECT_EQ(rc, code) << words;
    std::string said = Said();
    EXPECT_NE(said.find(words), std::string::npos) << "no \"" << words << "\" in: " << said;
  }
  void ExpectInvalid(keel_rc rc, const std::string& words) { ExpectError(rc, KEEL_INVALID, words); }

  // Valid arguments: one object for each type.
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
    else if constexpr (std::is_same_v<T, keel_print_fn>)
      return NoPrint;
    else if constexpr (std::is_same_v<T, void (*)(void*)>)
      return Release;
    else if constexpr (std::is_same_v<T, const void*> || std::is_same_v<T, void*> ||
                       std::is_same_v<T, void* const*>)
      return static_cast<T>(static_cast<void*>(room_.data()));
    else
      return Out<std::remove_pointer_t<T>>();
  }
  // The second of two entries is NULL.
  template <typename T>
  T holed() {
    static std::remove_const_t<std::remove_pointer_t<T>> entries[2];
    entries[0] = good<T>("")[0];
    return entries;
  }
  template <typename T>
  T number(const std::string& name) {
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
  // Buffers for output parameters, freed after the call: eight words each.
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
    std::string words = std::string(function) + ": '" + parameter,
                said = keel_error_text(error_, KEEL_ERROR_MESSAGE);
    EXPECT_EQ(said.rfind(words, 0), 0u) << "expected \"" << words << "...\", got: " << said;
    Done(rc);
  }
  template <typename Call>
  void Fails(const char* function, const char* parameter, const Call& call) {
    keel_rc rc = Do(call);
    EXPECT_NE(rc, KEEL_OK) << function << ": " << parameter;
    EXPECT_NE(rc, KEEL_INTERNAL) << function << ": " << parameter << ": "
                                 << keel_error_text(error_, KEEL_ERROR_MESSAGE);
    Done(rc);
  }
  template <typename Call>
  void Survives(const char* function, const char* parameter, const Call& call) {
    keel_rc rc = Do(call);
    EXPECT_NE(rc, KEEL_INTERNAL) << function << ": " << parameter << ": "
                                 << keel_error_text(error_, KEEL_ERROR_MESSAGE);
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

}  // namespace misuse
