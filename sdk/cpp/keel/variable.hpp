// variable.hpp: state that outlives runs, shared by eager code and the graphs of modules.
#ifndef KEEL_VARIABLE_HPP
#define KEEL_VARIABLE_HPP
#include <string>
#include <utility>
#include <vector>

#include "module.hpp"

namespace keel {

/// Shares one variable: copies of this are the same variable. Any thread may read and write.
class Variable {
 public:
  /// A new one with a copy of `initial`, whose dtype and shape it keeps.
  Variable(const Context& context, const Array& initial) {
    call(keel_variable_new, context.get(), initial.get(), &p_);
  }
  /// The module's variable of that name.
  Variable(Module& module, const std::string& name) {
    call(keel_module_variable, module.get(), name.c_str(), static_cast<keel_variable*>(nullptr),
         static_cast<uint32_t*>(nullptr), &p_);
  }
  Variable(const Variable& o) : p_(keel_variable_retain(o.p_)) {}
  Variable(Variable&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Variable& operator=(Variable o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Variable() { keel_variable_release(p_); }
  keel_variable* get() const { return p_; }

  /// What it is now, without a copy; later writes do not change the array, and nobody may write into it.
  Array read() const {
    keel_array* out = nullptr;
    call(keel_variable_read, p_, &out);
    return Array(out);
  }
  void assign(const Array& value) { call(keel_variable_assign, p_, value.get()); }
  /// As one step: what many threads add is all there in the end.
  void assign_add(const Array& value) { call(keel_variable_add, p_, value.get(), 1); }
  void assign_sub(const Array& value) { call(keel_variable_add, p_, value.get(), -1); }

  /// Makes it a variable of the module under that name; the number by which nodes name it.
  uint32_t number_in(Module& module, const std::string& name) const {
    uint32_t number = 0;
    call(keel_module_variable, module.get(), name.c_str(), p_, &number,
         static_cast<keel_variable**>(nullptr));
    return number;
  }

 private:
  keel_variable* p_ = nullptr;
};

/// Variables by name.
using NamedVariables = std::vector<std::pair<std::string, Variable>>;

namespace detail {
template <typename Call>
void with_names(const NamedVariables& variables, Call then) {
  std::vector<const char*> names;
  std::vector<keel_variable*> raw;
  for (const auto& [name, variable] : variables) {
    names.push_back(name.c_str());
    raw.push_back(variable.get());
  }
  then(names.data(), raw.data(), static_cast<uint32_t>(raw.size()));
}
}  // namespace detail

/// A file of these variables' values, written all or nothing.
inline void save_checkpoint(const Context& context, const std::string& path,
                            const NamedVariables& variables) {
  detail::with_names(variables, [&](auto names, auto raw, uint32_t n) {
    call(keel_checkpoint_save, context.get(), path.c_str(), names, raw, n);
  });
}
/// Gives each of them its value in the file, or fails and changes none.
inline void load_checkpoint(const Context& context, const std::string& path,
                            const NamedVariables& variables) {
  detail::with_names(variables, [&](auto names, auto raw, uint32_t n) {
    call(keel_checkpoint_load, context.get(), path.c_str(), names, raw, n);
  });
}

}  // namespace keel
#endif
