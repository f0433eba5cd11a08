// body.hpp: the bodies of control flow under construction, which control.hpp fills from lambdas.
//
// How to read it: Body writes one body; branches() writes those of a conditional.
#ifndef KEEL_BODY_HPP
#define KEEL_BODY_HPP
#include "function.hpp"
#include "index.hpp"
#include "keel/ops.hpp"
#include "tape.hpp"

namespace keel {
namespace detail {

inline std::vector<keel_array*> need_tensors(const Leaves& leaves) {
  std::vector<keel_array*> arrays;
  for (const keel_leaf& leaf : leaves.list) {
    if (leaf.kind != KEEL_LEAF_ARRAY)
      throw Error(KEEL_INVALID, "loops carry, and bodies return, tensors only",
                  "write keel::Tensor(0) for 0");
    if (!leaf.array)
      throw Error(KEEL_INVALID, "an empty Tensor, made by Tensor(), cannot be carried or returned");
    arrays.push_back(leaf.array);
  }
  return arrays;
}
/// The tensors of a structure of nothing but tensors; borrowed from it.
template <class T>
std::vector<keel_array*> tensors_of(const T& x) {
  Leaves leaves;
  each_leaf(x, leaves);
  return need_tensors(leaves);
}
/// The same structure with other tensors.
template <class T>
T with_tensors(const T& like, const std::vector<Array>& arrays) {
  return with_arrays(like, raw(arrays));
}
/// A predicate or index, as a C++ value: one element of one of these dtypes, traced or not.
template <class T>
T decide(const char* what, const Tensor& t, std::initializer_list<keel_dt> dtypes) {
  if (t.ndim() || std::find(dtypes.begin(), dtypes.end(), t.dtype()) == dtypes.end())
    throw Error(KEEL_INVALID, std::string(what) + " is " + t.type() + ", expected " +
                                  (dtypes.size() == 1 ? "bool[]" : "i32[] or i64[]"));
  return t.template item<T>();
}
inline bool decide(const char* what, const Tensor& t) { return decide<bool>(what, t, {KEEL_BOOL}); }
template <class F, class... A>
decltype(auto) call_with(const F& f, const A&... args) {
  if constexpr (std::invocable<const F&, const A&...>)
    return f(args...);
  else
    return std::apply([&](const auto&... carried) { return f(carried...); }, args...);
}

/// One body under construction: all ops of this thread are added to it until leave() or the destructor.
class Body {
 public:
  Body(const char* label, const std::vector<keel_array*>& like, size_t entries_from, uint32_t flags)
      : before_(this_trace) {
    std::vector<keel_array*> made(like.size());
    keel_trace* out = nullptr;
    call(keel_body_begin, this_trace, tape_handle(), label, like.data(), static_cast<uint32_t>(like.size()),
         static_cast<uint32_t>(entries_from), flags, &out, made.data());
    handle_.reset(out);
    params = take_arrays(made);
    this_trace = out;
  }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  ~Body() { this_trace = before_; }
  void leave() {
    call(keel_body_end, get());
    this_trace = before_;
  }
  void result(keel_array* array) { call(keel_trace_result, get(), static_cast<const char*>(nullptr), array); }
  void results(const std::vector<keel_array*>& all) {
    for (keel_array* array : all) result(array);
  }
  keel_trace* get() const { return handle_.get(); }
  std::vector<Array> params;

 private:
  keel_trace* before_;
  Handle<keel_trace, keel_trace_free> handle_;
};

inline std::vector<Array> run_bodies(const char* op, const std::vector<keel_array*>& before,
                                     const std::vector<keel_array*>& entries,
                                     const std::vector<keel_trace*>& bodies, size_t results,
                                     keel_dim length = -1, bool reverse = false) {
  std::vector<keel_array*> out(results);
  uint32_t n = 0;
  call(keel_body_run, op, before.data(), static_cast<uint32_t>(before.size()), entries.data(),
       static_cast<uint32_t>(entries.size()), bodies.data(), static_cast<uint32_t>(bodies.size()), length,
       static_cast<int32_t>(reverse), out.data(), static_cast<uint32_t>(out.size()), &n);
  keel_error* error = nullptr;
  if (keel_rc rc = cut(out, &error); rc != KEEL_OK) throw Error::take(rc, error);
  return take_arrays(out);
}

/// The type of a branch's result for the caller: numbers are literals and become tensors.
template <class A, class B>
struct Joint {
  static_assert(std::same_as<Returned<A>, Returned<B>>, "branches return values of one type, or nothing");
  using type = Returned<A>;
};
template <class A, class B>
using joint = typename Joint<std::decay_t<A>, std::decay_t<B>>::type;

template <class R>
using kept = std::conditional_t<std::is_void_v<R>, std::tuple<>, R>;

/// Writes the branches one after the other; literals among their results then take the dtype of the other
/// branches' results.
template <class R, class... F>
kept<R> branches(const char* op, const char* const* labels, const Tensor& selector, const F&... code) {
  struct Made {
    std::unique_ptr<Body> body;
    std::vector<Array> arrays;
    std::optional<Literal> literal;
    std::string structure;
  };
  std::vector<Made> made;
  kept<R> like{};
  auto write = [&](const auto& f) {
    using Own = std::decay_t<decltype(f())>;
    std::string label = labels ? labels[made.size()] : "branches" + std::to_string(made.size());
    Made& mine = made.emplace_back();
    mine.body = std::make_unique<Body>(label.c_str(), std::vector<keel_array*>{}, 0, KEEL_BODY_BRANCH);
    if constexpr (std::is_void_v<Own>) {
      f();
    } else if constexpr (Number<Own>) {
      mine.literal.emplace(f());
    } else {
      like = f();
      Leaves leaves;
      each_leaf(like, leaves);
      mine.structure = leaves.structure;
      for (keel_array* array : need_tensors(leaves)) mine.arrays.emplace_back(keel_array_retain(array));
      if (made[0].structure != mine.structure && !std::same_as<R, Tensor>)
        throw Error(KEEL_INVALID,
                    "branches return different structures (such as lists of different lengths)");
    }
    mine.body->leave();
  };
  (write(code), ...);
  std::optional<keel_dt> dtype;
  Weak::Kind kind = Weak::kBool;
  for (const Made& m : made) {
    if (!m.arrays.empty()) dtype = m.arrays[0].dtype();
    if (m.literal) kind = std::max(kind, m.literal->kind());
  }
  static constexpr keel_dt kOwn[] = {KEEL_BOOL, KEEL_I32, KEEL_I64, KEEL_F32};
  std::vector<keel_trace*> bodies;
  for (Made& m : made) {
    if (m.literal) m.arrays.push_back(tensor(*m.literal, dtype.value_or(kOwn[kind])).array());
    m.body->results(raw(m.arrays));
    bodies.push_back(m.body->get());
  }
  return with_tensors(like, run_bodies(op, {selector.get()}, {}, bodies, made[0].arrays.size()));
}

/// Adds the caller's place to failures of the node; exceptions of the user's code pass unchanged.
template <class R, class F>
R placed(const char* op, const Place& where, const F& run) {
  try {
    return static_cast<R>(run());
  } catch (const Error& e) {
    if (e.where().line) throw;
    std::string said = e.what(), own = std::string(op) + ": ";
    if (said.starts_with("node '")) said.erase(0, said.find("': ") + 3);
    if (said.starts_with(own)) said.erase(0, own.size());
    throw e.within(op, where, &said);
  }
}

template <class C>
void check_carried(const C& before, const C& after) {
  std::vector<keel_array*> a = tensors_of(before), b = tensors_of(after);
  bool same = a.size() == b.size();
  for (size_t k = 0; same && k < a.size(); k++) {
    Tensor x(Array(keel_array_retain(a[k]))), y(Array(keel_array_retain(b[k])));
    if (x.type() != y.type())
      throw Error(KEEL_INVALID, "result " + std::to_string(k) + " of the body is " + y.type() +
                                    " but the carried operand is " + x.type());
  }
  if (!same)
    throw Error(KEEL_INVALID, "the body returns " + std::to_string(b.size()) + " tensors, but carries " +
                                  std::to_string(a.size()));
}

/// An eager scan without entries: libkeel traces the body to infer the stacked types, and runs nothing.
template <class R, class Code>
R scan_no_entries(const std::vector<keel_array*>& carried, const std::vector<keel_array*>& over,
                  const Code& body) {
  struct Call {
    const Code& body;
    std::optional<R> made;
    std::exception_ptr thrown;
    static keel_rc run(void* arg, keel_trace* trace, keel_array* const* in, uint32_t n, keel_error**) {
      auto& mine = *static_cast<Call*>(arg);
      try {
        BodyScope written(here(), trace, nullptr);
        std::vector<Array> params;
        for (uint32_t k = 0; k < n; k++) params.emplace_back(keel_array_retain(in[k]));
        for (keel_array* array : tensors_of(mine.made.emplace(mine.body(params))))
          call(keel_trace_result, trace, static_cast<const char*>(nullptr), array);
      } catch (...) {
        mine.thrown = std::current_exception();
        return KEEL_INVALID;
      }
      return KEEL_OK;
    }
  } mine{body, {}, {}};
  std::array<keel_array*, 256> out;
  uint32_t n = 0;
  keel_error* error = nullptr;
  keel_rc rc = keel_trace_scan(this_trace, carried.data(), static_cast<uint32_t>(carried.size()), over.data(),
                               static_cast<uint32_t>(over.size()), 0, 0, Call::run, &mine, out.data(),
                               static_cast<uint32_t>(out.size()), &n, &error);
  if (rc == KEEL_OK) return with_tensors(*mine.made, take_arrays({out.begin(), out.begin() + n}));
  Error failure = Error::take(rc, error);
  if (mine.thrown) std::rethrow_exception(mine.thrown);
  throw failure;
}

inline bool any_symbolic(const std::vector<keel_array*>& arrays) {
  return std::any_of(arrays.begin(), arrays.end(), [](keel_array* a) { return keel_array_symbolic(a) != 0; });
}

}  // namespace detail
}  // namespace keel
#endif
