// values.h: arrays of given elements, and modules read again from their text, for tests of ops by the C
// interface.
#pragma once
#include <cstring>

#include "misuse.h"

namespace misuse {

using Numbers = std::vector<int64_t>;

class Values : public Misuse {
 protected:
  keel_array* Array(keel_dt dtype, const Numbers& shape, const void* data, uint64_t bytes) {
    keel_array* made = nullptr;
    keel_tensor t{};
    Ok(keel_array_new(context_, dtype, shape.data(), static_cast<int32_t>(shape.size()), &made, &error_));
    keel_array_tensor(made, &t);
    if (bytes) std::memcpy(t.data, data, bytes);
    return made;
  }
  keel_array* Array(const Numbers& shape, const std::vector<float>& elements) {
    return Array(KEEL_F32, shape, elements.data(), elements.size() * sizeof(float));
  }
  static Numbers Shape(const keel_array* a) {
    keel_tensor t{};
    keel_array_tensor(a, &t);
    return {t.shape, t.shape + t.ndim};
  }
  template <typename T>
  static std::vector<T> Elements(const keel_array* a) {
    keel_tensor t{};
    keel_array_tensor(a, &t);
    size_t n = 1;
    for (int64_t d : Shape(a)) n *= static_cast<size_t>(d);
    const auto* first = reinterpret_cast<const T*>(static_cast<const char*>(t.data) + t.byte_offset);
    return n ? std::vector<T>(first, first + n) : std::vector<T>();
  }
  // The module that its text describes; `words` occur there.
  keel_module* ReadAgain(keel_module* module, const char* words) {
    keel_module* parsed = nullptr;
    keel_text* text = nullptr;
    uint64_t size = 0;
    Ok(keel_module_report(module, "text", &text, &error_));
    const char* data = keel_text_data(text, &size);
    EXPECT_NE(std::strstr(data, words), nullptr) << data;
    Ok(keel_module_parse(context_, data, size, &parsed, &error_));
    keel_text_free(text);
    return parsed;
  }
};

}  // namespace misuse
