// attrs.h: attributes of a Keel node, written as Attrs().i("axis", 1).b("keep", true).
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "abi/keel_plugin.h"

namespace onnx_import {

using Dims = std::vector<keel_dim>;
using Ints = std::vector<int64_t>;

class Attrs {
 public:
  Attrs&& i(const char* name, int64_t v) && { return add(name, {KEEL_ATTR_I64, 0, v, 0, nullptr}); }
  Attrs&& b(const char* name, bool v) && { return add(name, {KEEL_ATTR_BOOL, 0, v, 0, nullptr}); }
  Attrs&& f(const char* name, double v) && { return add(name, {KEEL_ATTR_F64, 0, 0, v, nullptr}); }
  Attrs&& type(const char* name, keel_dt v) && { return add(name, {KEEL_ATTR_DTYPE, 0, v, 0, nullptr}); }
  Attrs&& dim(const char* name, keel_dim v) && { return add(name, {KEEL_ATTR_DIM, 0, v, 0, nullptr}); }
  Attrs&& ints(const char* name, Ints v) && { return list(name, KEEL_ATTR_I64S, std::move(v)); }
  Attrs&& dims(const char* name, Dims v) && { return list(name, KEEL_ATTR_DIMS, std::move(v)); }
  Attrs&& word(const char* name, const char* v) && {
    return add(name, {KEEL_ATTR_STR, static_cast<uint32_t>(std::char_traits<char>::length(v)), 0, 0, v});
  }
  const std::vector<const char*>& names() const { return names_; }
  const std::vector<keel_attr>& values() const { return values_; }

 private:
  Attrs&& add(const char* name, keel_attr v) {
    names_.push_back(name);
    values_.push_back(v);
    return std::move(*this);
  }
  Attrs&& list(const char* name, int32_t kind, std::vector<int64_t> v) {
    lists_.push_back(std::move(v));  // a deque does not move its elements
    return add(name, {kind, static_cast<uint32_t>(lists_.back().size()), 0, 0, lists_.back().data()});
  }
  std::vector<const char*> names_;
  std::vector<keel_attr> values_;
  std::deque<std::vector<int64_t>> lists_;
};

}  // namespace onnx_import
