// templates.h: the structures of a function's results.
#ifndef KEEL_PYTHON_TEMPLATES_H
#define KEEL_PYTHON_TEMPLATES_H
#include <set>
#include <string>
#include <unordered_map>

#include "trace/structure.h"

namespace keel_python {

/// Structures of results by traced call. A graph does not contain the Python structure, so if a function has
/// several, the types of the call decide: first with sizes, then without.
class Templates {
 public:
  void add(const keel::detail::Leaves& call, nb::object made, const std::string& shape) {
    if (shapes_.insert(shape).second) last_ = made;
    by_call_[key(call, true)] = made;
    by_call_[key(call, false)] = made;
  }
  nb::object find(const keel::detail::Leaves& call) const {
    if (shapes_.size() == 1) return last_;
    for (bool sizes : {true, false})
      if (auto found = by_call_.find(key(call, sizes)); found != by_call_.end()) return found->second;
    return last_;
  }

  /// For the garbage collector.
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(last_.ptr());
    for (const auto& [key, held] : by_call_) Py_VISIT(held.ptr());
    return 0;
  }

 private:
  static std::string key(const keel::detail::Leaves& call, bool sizes) {
    std::string out = call.structure;
    for (const keel_leaf& leaf : call.list) {
      out.append(reinterpret_cast<const char*>(&leaf.i), sizeof leaf.i);
      out.append(reinterpret_cast<const char*>(&leaf.f), sizeof leaf.f);
      if (leaf.s) out += leaf.s;
      if (!leaf.array) continue;
      keel_tensor t;
      keel_array_tensor(leaf.array, &t);
      out += sizes ? keel::type_text(t) : std::to_string(t.ndim) + std::to_string(keel::dtype_pack(t.dtype));
    }
    return out;
  }
  std::set<std::string> shapes_;
  std::unordered_map<std::string, nb::object> by_call_;
  nb::object last_;
};

}  // namespace keel_python
#endif
