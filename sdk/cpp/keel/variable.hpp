// variable.hpp: state that outlives runs, shared by eager code, functions and the graphs of modules.
//
//   keel::Variable w({{1.f}}, {.name = "w"});
//   keel::Tensor y = w * x;            // a read at this point: now, or in the trace of a function
//   w.assign_sub(0.1 * dw);            // a write at this point
#ifndef KEEL_VARIABLE_HPP
#define KEEL_VARIABLE_HPP
#include <string>
#include <utility>
#include <vector>

#include "module.hpp"
#include "operators.hpp"

namespace keel {

/// trainable: tapes watch the variable when it is read.
struct VariableOptions {
  std::string name = "";  // the name in modules and files
  bool trainable = true;
};

/// A reference to a variable; copies refer to the same one. Thread-safe: any thread may read and write.
class Variable {
 public:
  Variable() = default;  // no variable
  /// A new variable with a copy of `initial` and its dtype and shape, which do not change, in the memory that
  /// contains `initial`. In a traced function: created in the first trace only, from constants and shapes.
  explicit Variable(const Tensor& initial, const VariableOptions& options = {},
                    const Place& where = Place::current()) {
    keel_kv kv[] = {{"trainable", options.trainable ? "1" : "0"}, {"name", options.name.c_str()}};
    keel_error* error = nullptr;
    keel_rc rc = keel_variable_new(detail::here().context(), detail::this_trace, initial.get(), kv,
                                   options.name.empty() ? 1 : 2, &p_, &error);
    if (rc != KEEL_OK) throw Error::take(rc, error).within("Variable(" + initial.type() + ")", where);
  }
  explicit Variable(std::initializer_list<Literal> rows, const VariableOptions& options = {},
                    const Place& where = Place::current())
      : Variable(Tensor(rows), options, where) {}
  /// A new variable with a copy of `initial` and its dtype and shape, which do not change.
  Variable(const Context& context, const Array& initial) {
    call(keel_variable_new, context.get(), nullptr, initial.get(), nullptr, 0, &p_);
  }
  /// The module's variable of that name; Error KEEL_NOT_FOUND.
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
  ~Variable() { keel_variable_free(p_); }
  keel_variable* get() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }
  std::string name() const {
    const char* name = "";
    keel_variable_info(p_, &name, nullptr, nullptr);
    return name;
  }
  bool trainable() const {
    int32_t trainable = 0;
    keel_variable_info(p_, nullptr, &trainable, nullptr);
    return trainable != 0;
  }
  /// Equal for all handles of one variable; 0 if this has none.
  uint64_t id() const {
    uint64_t id = 0;
    keel_variable_info(p_, nullptr, nullptr, &id);
    return id;
  }
  keel_dt dtype() const { return read().dtype(); }
  std::vector<int64_t> shape() const {
    Array now = read();
    return {now.shape().begin(), now.shape().end()};
  }

  /// The device whose memory contains its value, "cuda:0"; "" for host memory.
  std::string device() const { return keel_array_device(read().get()); }
  /// Moves its value to a device, or with "" to host memory, at once.
  void to(const std::string& device) const {
    call(keel_variable_to, p_, device.empty() ? nullptr : device.c_str());
  }

  /// Its value at this point of the program.
  Tensor value() const {
    keel_array* out = nullptr;
    call(keel_variable_read, p_, detail::this_trace, detail::tape_handle(), &out);
    keel_error* error = nullptr;
    if (keel_rc rc = detail::cut({&out, 1}, &error); rc != KEEL_OK) throw Error::take(rc, error);
    return Tensor(Array(out));
  }
  operator Tensor() const { return value(); }
  /// Writes at this point of the program; literals take its dtype. Error KEEL_INVALID for another dtype or
  /// shape.
  void assign(const Operand& v) const { write("assign", v); }
  void assign_add(const Operand& v) const { write("assign_add", v); }
  void assign_sub(const Operand& v) const { write("assign_sub", v); }

  /// The present value without a copy; later writes do not change the array, which is read-only.
  Array read() const {
    keel_array* out = nullptr;
    call(keel_variable_read, p_, nullptr, nullptr, &out);
    return Array(out);
  }
  template <std::same_as<Array> A>
  void assign(const A& value) const {
    call(keel_variable_write, p_, nullptr, "assign", value.get());
  }
  /// Atomic: concurrent additions are all applied.
  template <std::same_as<Array> A>
  void assign_add(const A& value) const {
    call(keel_variable_write, p_, nullptr, "assign_add", value.get());
  }
  template <std::same_as<Array> A>
  void assign_sub(const A& value) const {
    call(keel_variable_write, p_, nullptr, "assign_sub", value.get());
  }

  /// Adds it to the module under that name; returns its number in nodes' attributes.
  uint32_t number_in(Module& module, const std::string& name) const {
    uint32_t number = 0;
    call(keel_module_variable, module.get(), name.c_str(), p_, &number,
         static_cast<keel_variable**>(nullptr));
    return number;
  }

 private:
  void write(const char* how, const Operand& v) const {
    if (detail::this_trace) detail::note_place(detail::this_trace, v.where());
    keel_error* error = nullptr;
    Array value = v.weak() ? v.settle(detail::here().context(), dtype()) : Array(keel_array_retain(v.get()));
    if (keel_rc rc = keel_variable_write(p_, detail::this_trace, how, value.get(), &error); rc != KEEL_OK)
      throw Error::take(rc, error).within(std::string(how) + "(" + v.type() + ")", v.where());
  }
  keel_variable* p_ = nullptr;
};

/// Variables with their names.
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

/// Writes the values of these variables to a file, complete or not at all.
inline void save_checkpoint(const Context& context, const std::string& path,
                            const NamedVariables& variables) {
  detail::with_names(variables, [&](auto names, auto raw, uint32_t n) {
    call(keel_checkpoint_save, context.get(), path.c_str(), names, raw, n);
  });
}
/// Sets each variable to its value in the file, or fails and changes none.
inline void load_checkpoint(const Context& context, const std::string& path,
                            const NamedVariables& variables) {
  detail::with_names(variables, [&](auto names, auto raw, uint32_t n) {
    call(keel_checkpoint_load, context.get(), path.c_str(), names, raw, n);
  });
}

}  // namespace keel
#endif
