// save.hpp: several functions as the entries of one file; checkpoints of whole objects.
//
//   keel::save("m.keel", {{"serve", serve.concrete(x)}, {"train", step.concrete(x, y)}}, {.gradients =
//   true});
//
// Variables shared by the functions are shared in the file; so are constants with the same memory. Test
// vectors of the modules (Module::add_case) are included.
//
//   keel::save_checkpoint("model.ckpt", model);   // all variables in the struct, by path: "0/layers/1/w"
//   keel::load_checkpoint("model.ckpt", model);
#ifndef KEEL_SAVE_HPP
#define KEEL_SAVE_HPP
#include <algorithm>

#include "structure.hpp"

namespace keel {

/// The only entry of a module, under a name in the file.
class SavedEntry {
 public:
  SavedEntry(std::string name, const Module& module) : name_(std::move(name)), module_(module) {}
  const std::string& name() const { return name_; }
  const Module& module() const { return module_; }

 private:
  std::string name_;
  const Module& module_;  // outlives the call of save()
};
struct SaveOptions {
  bool gradients = false;  // adds "serve.gradient" for each entry "serve" with float parameters
};

/// Adds an entry `as`: the results of `entry` and, as "d_NAME", the gradient of the sum of its float results
/// with respect to each of its float parameters. Returns false, and adds nothing, if it has no float
/// parameter or result.
inline bool add_gradient(Module& module, const std::string& entry, const std::string& as) {
  const Graph source = module.graph_of(entry);
  auto floats = [&](bool results) {
    std::vector<std::pair<std::string, keel_value>> list = source.ports(results);
    std::erase_if(list, [&](const auto& port) {
      keel_dt dtype = 0;
      call(keel_graph_value_at, source.get(), port.second, nullptr, nullptr, &dtype,
           static_cast<int64_t*>(nullptr), static_cast<int32_t*>(nullptr));
      const DtypeRow* row = find_dtype(dtype);
      return !row || row->kind != 'f';
    });
    return list;
  };
  auto xs = floats(false), ys = floats(true);
  if (xs.empty() || ys.empty()) return false;
  std::vector<keel_value> of, wrt;
  for (const auto& [name, value] : ys) of.push_back(value);
  for (const auto& [name, value] : xs) wrt.push_back(value);
  Graph graph = source.copy(as);
  std::vector<keel_value> dxs = graph.gradient(of, wrt, {}, true);
  for (const auto& [name, value] : source.ports(true)) graph.result(name, value);
  for (size_t i = 0; i < xs.size(); i++) graph.result("d_" + xs[i].first, dxs[i]);
  module.entry(as, graph);
  return true;
}

/// A new module with these entries.
inline Module join(std::initializer_list<SavedEntry> entries, const SaveOptions& options = {}) {
  keel_module* made = nullptr;
  call(keel_module_new, detail::here().context(), &made);
  Module all = Module::take(made);
  for (const SavedEntry& e : entries) all.link(e.module(), "", e.name());
  if (options.gradients)
    for (const SavedEntry& e : entries) add_gradient(all, e.name(), e.name() + ".gradient");
  return all;
}
/// Writes join(entries) to a file.
inline void save(const std::string& path, std::initializer_list<SavedEntry> entries,
                 const SaveOptions& options = {}) {
  join(entries, options).save(path);
}

namespace detail {
/// A walker (structure.hpp) that collects variables by path.
class VariablePaths {
 public:
  NamedVariables list;
  void variable(const Variable& v) {
    auto same = [&](const auto& known) { return known.second.id() == v.id(); };
    if (!v || std::any_of(list.begin(), list.end(), same)) return;
    std::vector<std::string> path = path_;
    if (std::string own = v.name(); !own.empty() || path.empty()) {
      if (!path.empty()) path.pop_back();
      path.push_back(own.empty() ? "variable" : own);
    }
    std::string name;
    for (const std::string& part : path) name += (name.empty() ? "" : "/") + part;
    list.emplace_back(name, v);
  }
  void tensor(const Tensor&) {}
  template <class T>
  void fixed(const T&) {}
  void open(std::string_view) {}
  void close() {}
  template <class T>
  void size(const T&) {}
  void step(const std::string& what) {  // "[3]", ".key", ".0"
    path_.push_back(what.substr(1, what.size() - (what.front() == '[' ? 2 : 1)));
  }
  void back() { path_.pop_back(); }

 private:
  std::vector<std::string> path_;
};
}  // namespace detail

/// The variables of an object, each once, by path: keys of maps, indices in vectors and structs, joined with
/// "/"; the name of a named variable replaces the last part: "layers/0/w".
template <class T>
NamedVariables variables_of(const T& object) {
  detail::VariablePaths paths;
  detail::each_leaf(object, paths);
  return paths.list;
}
/// Writes the values of all variables of the object, complete or not at all.
template <class T>
void save_checkpoint(const std::string& path, const T& object) {
  detail::with_names(variables_of(object), [&](auto names, auto raw, uint32_t n) {
    call(keel_checkpoint_save, detail::here().context(), path.c_str(), names, raw, n);
  });
}
/// Sets all variables of the object, or fails (KEEL_NOT_FOUND, KEEL_INVALID) and changes none.
template <class T>
void load_checkpoint(const std::string& path, const T& object) {
  detail::with_names(variables_of(object), [&](auto names, auto raw, uint32_t n) {
    call(keel_checkpoint_load, detail::here().context(), path.c_str(), names, raw, n);
  });
}

}  // namespace keel
#endif
