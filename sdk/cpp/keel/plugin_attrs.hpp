// plugin_attrs.hpp: attributes of a node that a plugin adds. For plugins, which do not link libkeel.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "keel/keel_plugin.h"

namespace keel {

/// PluginAttrs().i("axis", 1).flag("keep", true): names and values for keel_node_spec. Names and words must
/// outlive it.
class PluginAttrs {
 public:
  PluginAttrs&& i(const char* name, int64_t v) && { return add(name, {KEEL_ATTR_I64, 0, v, 0, nullptr}); }
  PluginAttrs&& flag(const char* name, bool v) && { return add(name, {KEEL_ATTR_BOOL, 0, v, 0, nullptr}); }
  PluginAttrs&& f(const char* name, double v) && { return add(name, {KEEL_ATTR_F64, 0, 0, v, nullptr}); }
  PluginAttrs&& dtype(const char* name, keel_dt v) && {
    return add(name, {KEEL_ATTR_DTYPE, 0, v, 0, nullptr});
  }
  PluginAttrs&& dim(const char* name, keel_dim v) && { return add(name, {KEEL_ATTR_DIM, 0, v, 0, nullptr}); }
  PluginAttrs&& ints(const char* name, std::vector<int64_t> v) && {
    return list(name, KEEL_ATTR_I64S, std::move(v));
  }
  PluginAttrs&& dims(const char* name, std::vector<keel_dim> v) && {
    return list(name, KEEL_ATTR_DIMS, std::move(v));
  }
  PluginAttrs&& word(const char* name, const char* v) && {
    return add(name, {KEEL_ATTR_STR, static_cast<uint32_t>(std::char_traits<char>::length(v)), 0, 0, v});
  }
  /// An attribute of a node that outlives this.
  PluginAttrs&& as(const char* name, const keel_attr& v) && { return add(name, v); }
  const std::vector<const char*>& names() const { return names_; }
  const std::vector<keel_attr>& values() const { return values_; }

 private:
  PluginAttrs&& add(const char* name, keel_attr v) {
    names_.push_back(name);
    values_.push_back(v);
    return std::move(*this);
  }
  PluginAttrs&& list(const char* name, int32_t kind, std::vector<int64_t> v) {
    lists_.push_back(std::move(v));  // a deque does not move its elements
    return add(name, {kind, static_cast<uint32_t>(lists_.back().size()), 0, 0, lists_.back().data()});
  }
  std::vector<const char*> names_;
  std::vector<keel_attr> values_;
  std::deque<std::vector<int64_t>> lists_;
};

}  // namespace keel
