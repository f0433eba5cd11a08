// home.hpp: where eager ops run: a context, a device, and the ops bound there.
//
// How to read it: a Home is a cache of the ops bound to one device, by attributes; a Context owns its Homes;
// here() is the Home of this thread. Internal: programs use keel::Scope (scope.hpp).
#ifndef KEEL_HOME_HPP
#define KEEL_HOME_HPP
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "error.hpp"
#include "keel/catalogue.hpp"
#include "keel/keel.h"
#include "keel/mutex.hpp"

namespace keel::detail {

/// Attributes of one call, in the order of the catalogue, without attributes that equal their default.
class Attributes {
 public:
  void i64(const char* name, int64_t v) { add(name, {KEEL_ATTR_I64, 0, v, 0, nullptr}); }
  void flag(const char* name, bool v) { add(name, {KEEL_ATTR_BOOL, 0, v, 0, nullptr}); }
  void f64(const char* name, double v) { add(name, {KEEL_ATTR_F64, 0, 0, v, nullptr}); }
  void dtype(const char* name, keel_dt v) { add(name, {KEEL_ATTR_DTYPE, 0, v, 0, nullptr}); }
  void dim(const char* name, keel_dim v) {
    symbolic_ = symbolic_ || KEEL_DIM_IS_HANDLE(v);
    add(name, {KEEL_ATTR_DIM, 0, v, 0, nullptr});
  }
  void text(const char* name, const char* v) {
    add(name, {KEEL_ATTR_STR, static_cast<uint32_t>(std::char_traits<char>::length(v)), 0, 0, v});
  }
  /// KEEL_ATTR_I64S or KEEL_ATTR_DIMS; `v` is borrowed.
  void list(const char* name, int32_t kind, const std::vector<int64_t>& v) {
    add(name, {kind, static_cast<uint32_t>(v.size()), 0, 0, v.data()});
  }
  /// Sizes, some of them symbolic; owned.
  void sizes(const char* name, std::vector<keel_dim> v) {
    list(name, KEEL_ATTR_DIMS, own_.emplace_back(std::move(v)));
    symbolic_ = true;
  }
  /// As list(), but owned.
  void numbers(const char* name, std::vector<int64_t> v) {
    list(name, KEEL_ATTR_I64S, own_.emplace_back(std::move(v)));
  }
  bool empty() const { return n_ == 0; }
  bool symbolic() const { return symbolic_; }  // has symbolic sizes: the op belongs to their trace

  keel_op* bind(keel_context* context, const char* device, const char* op) const {
    keel_op* out = nullptr;
    call(keel_op_new, context, device, op, 0u, names_.data(), attrs_.data(), n_, &out);
    return out;
  }
  /// Appends a key to `out`: equal bytes for equal op and attributes.
  void key(OpId id, std::string& out) const {
    auto append = [&](const void* p, size_t n) { out.append(static_cast<const char*>(p), n); };
    append(&id, sizeof id);
    for (uint32_t i = 0; i < n_; i++) {
      const keel_attr& a = attrs_[i];
      append(&names_[i], sizeof names_[i]);  // a string literal of ops.hpp: compared by address
      append(&a.kind, offsetof(keel_attr, p));
      if (a.count) append(a.p, a.kind == KEEL_ATTR_STR ? a.count : a.count * sizeof(int64_t));
    }
  }

 private:
  void add(const char* name, keel_attr attr) {
    names_[n_] = name;
    attrs_[n_++] = attr;
  }
  std::array<const char*, 8> names_;
  std::array<keel_attr, 8> attrs_;
  uint32_t n_ = 0;
  std::vector<std::vector<keel_dim>> own_;
  bool symbolic_ = false;
};

class Homes;

class Home {
 public:
  Home(Homes& family, keel_context* context, std::string device)
      : family_(family), context_(context), device_(std::move(device)) {}
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;
  ~Home() {
    for (auto& op : plain_) keel_op_free(op.load(std::memory_order_relaxed));
  }
  Homes& family() const { return family_; }
  keel_context* context() const { return context_; }
  const std::string& device() const { return device_; }

  /// An op without attributes: one atomic load after the first call.
  keel_op* op(OpId id) {
    keel_op* op = plain_[static_cast<size_t>(id)].load(std::memory_order_acquire);
    return op ? op : bind(id);
  }
  keel_op* op(OpId id, const Attributes& attributes) {
    if (attributes.empty()) return op(id);
    thread_local std::string key;
    key.clear();
    attributes.key(id, key);
    {
      std::lock_guard lock(mutex_);
      if (auto found = others_.find(key); found != others_.end()) return found->second.get();
    }
    Bound made(attributes.bind(context_, device_.c_str(), info(id).name));
    std::lock_guard lock(mutex_);
    return others_.try_emplace(key, std::move(made)).first->second.get();
  }

 private:
  using Bound = Handle<keel_op, keel_op_free>;
  keel_op* bind(OpId id) {
    keel_op* made = Attributes().bind(context_, device_.c_str(), info(id).name);
    keel_op* first = nullptr;
    if (plain_[static_cast<size_t>(id)].compare_exchange_strong(first, made)) return made;
    keel_op_free(made);  // another thread bound it first
    return first;
  }
  Homes& family_;
  keel_context* context_;
  std::string device_;
  std::array<std::atomic<keel_op*>, kOpCount> plain_{};
  Mutex mutex_;
  std::unordered_map<std::string, Bound> others_;
};

/// The Homes of one context, one per device in use.
class Homes {
 public:
  Home& at(keel_context* context, const std::string& device) {
    std::lock_guard lock(mutex_);
    for (auto& home : all_)
      if (home->device() == device) return *home;
    return *all_.emplace_back(std::make_unique<Home>(*this, context, device));
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<Home>> all_;
};

inline constinit thread_local Home* this_home = nullptr;         // set by Scope
inline constinit thread_local keel_trace* this_trace = nullptr;  // receives new nodes
inline constinit thread_local bool trace_takes_all =
    false;  // a function's: ops on concrete tensors become nodes, too
/// Records the source position of the next nodes. The Python package installs its own function.
inline void (*note_place)(keel_trace*, const Place&) = [](keel_trace* trace, const Place& where) {
  if (where.line) keel_trace_source(trace, where.file, where.line);
};
inline bool writes() {
  int32_t writes = 0;
  keel_trace_info(this_trace, nullptr, &writes);
  return writes != 0;
}
/// A tape records the program of this trace.
inline bool is_taped(const keel_trace* trace) {
  keel_tape* tape = nullptr;
  keel_trace_info(trace, &tape, nullptr);
  return tape != nullptr;
}

/// An active tape of this thread, and the next outer one (tape.hpp). handle null: recording is off.
struct Recorder {
  keel_tape* handle;
  Recorder* outer;
};
inline constinit thread_local Recorder* this_tape = nullptr;  // the innermost
inline keel_tape* tape_handle() { return this_tape ? this_tape->handle : nullptr; }

}  // namespace keel::detail
#endif
