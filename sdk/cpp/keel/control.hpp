// control.hpp: branches and loops that depend on tensors, and effects, in traced and in eager programs.
//
//   y = keel::cond(x > 0, [&] { return x; }, [&] { return 0; });
//   auto [i, p] = keel::while_loop(std::tuple(keel::Tensor(0), x), [&](auto& i, auto&) { return i < n; },
//                                  [&](auto& i, auto& p) { return std::tuple(i + 1, p * x); });
//   auto [sum, all] = keel::scan(keel::zeros({3}), rows,
//                                [](auto& s, auto& row) { return std::pair(s + row, s); });
//
// Eagerly the lambdas run on numbers, as if and while of C++ do. In a trace each lambda becomes a body of one
// node and runs once, while the body is written. Tensors that it captures become operands. The result types
// must agree between branches, and with the carried operands of a loop. Only results leave a body.
// How to read it: Body writes one body; the public functions below are independent of each other.
#ifndef KEEL_CONTROL_HPP
#define KEEL_CONTROL_HPP
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

/// then() if p is true, else otherwise(). p: bool[]. Both branches return the same type: a tensor, a
/// structure of tensors or nothing. A number is a literal: in a trace it takes the dtype of the other
/// branch's result, eagerly (the other branch does not run) its default dtype.
template <std::invocable Then, std::invocable Else>
auto cond(const Tensor& p, const Then& then, const Else& otherwise, const Place& where = Place::current()) {
  using R = detail::joint<std::invoke_result_t<const Then&>, std::invoke_result_t<const Else&>>;
  static constexpr const char* kLabels[] = {"then", "else"};
  return detail::placed<R>("cond", where, [&] {
    if (p.symbolic()) return detail::branches<R>("cond", kLabels, p, then, otherwise);
    bool so = detail::decide("the predicate", p);
    if constexpr (std::is_void_v<R>) {
      so ? then() : otherwise();
      return std::tuple<>();
    } else {
      return so ? R(then()) : R(otherwise());
    }
  });
}

struct Selector {
  template <std::convertible_to<Tensor> T>
  Selector(const T& t, const Place& place = Place::current()) : value(t), where(place) {}
  Tensor value;
  Place where;
};

/// Runs branch number i, an i32[] or i64[] (KEEL_RANGE if there is none): keel::switch_(i, [&] {...}, [&]
/// {...}).
template <std::invocable First, std::invocable... More>
auto switch_(const Selector& i, const First& first, const More&... more) {
  using R = detail::Returned<std::decay_t<std::invoke_result_t<const First&>>>;
  return detail::placed<R>("switch", i.where, [&] {
    if (i.value.symbolic()) return detail::branches<R>("switch", nullptr, i.value, first, more...);
    auto at = detail::decide<int64_t>("the index", i.value, {KEEL_I32, KEEL_I64});
    if (at < 0 || at > static_cast<int64_t>(sizeof...(more)))
      throw Error(KEEL_RANGE, "index " + std::to_string(at) + " is not in [0, " +
                                  std::to_string(1 + sizeof...(more)) + ")");
    std::optional<detail::kept<R>> out;
    auto take = [&](const auto& f) {
      if (at-- != 0) return;
      if constexpr (std::is_void_v<R>)
        f(), out.emplace();
      else
        out.emplace(R(f()));
    };
    take(first);
    (take(more), ...);
    return *std::move(out);
  });
}

/// carry = body(carry) while test(carry), a bool[], is true; a tuple is passed as separate arguments. carry:
/// a tensor or a structure of tensors; body must return the same dtypes and shapes.
template <class C, class Test, class Code>
C while_loop(const C& init, const Test& test, const Code& body, const Place& where = Place::current()) {
  return detail::placed<C>("while", where, [&] {
    std::vector<keel_array*> like = detail::tensors_of(init);
    if (!detail::writes() && !detail::any_symbolic(like)) {
      C carry = init;
      while (detail::decide("the test", detail::call_with(test, carry))) {
        C next = detail::call_with(body, carry);
        detail::check_carried(carry, next);
        carry = std::move(next);
      }
      return carry;
    }
    detail::Body tested("test", like, like.size(), 0);
    Tensor more = detail::call_with(test, detail::with_tensors(init, tested.params));
    tested.leave();
    tested.result(more.get());
    detail::Body looped("body", like, like.size(), 0);
    C next = detail::call_with(body, detail::with_tensors(init, looped.params));
    looped.leave();
    looped.results(detail::tensors_of(next));
    return detail::with_tensors(
        init, detail::run_bodies("while", like, {}, {tested.get(), looped.get()}, like.size()));
  });
}

struct ScanOptions {
  Dim length = -1;       // iterations; -1: the number of entries of xs
  bool reverse = false;  // starts with the last entry
};

/// [carry, y] = body(carry, entry) for each entry along the first dim of the tensors of xs. Returns the last
/// carry, and all y stacked along a new first dim in the order of the entries. std::tuple<>() is an empty
/// carry, xs or y.
template <class C, class X, class Code>
auto scan(const C& init, const X& xs, const Code& body, const ScanOptions& options = {},
          const Place& where = Place::current())
    -> std::pair<C, std::decay_t<decltype(std::get<1>(body(init, xs)))>> {
  using R = std::pair<C, std::decay_t<decltype(std::get<1>(body(init, xs)))>>;
  return detail::placed<R>("scan", where, [&] {
    std::vector<keel_array*> carried = detail::tensors_of(init), over = detail::tensors_of(xs),
                             like = carried;
    like.insert(like.end(), over.begin(), over.end());
    auto on_entries = [&](const std::vector<Array>& params) {
      auto entries = params.begin() + static_cast<ptrdiff_t>(carried.size());
      return R(body(detail::with_tensors(init, {params.begin(), entries}),
                    detail::with_tensors(xs, {entries, params.end()})));
    };
    if (detail::writes() || detail::any_symbolic(like)) {
      detail::Body looped("body", like, carried.size(), 0);
      R made = on_entries(looped.params);
      looped.leave();
      std::vector<keel_array*> results = detail::tensors_of(made);
      looped.results(results);
      return detail::with_tensors(made,
                                  detail::run_bodies("scan", carried, over, {looped.get()}, results.size(),
                                                     options.length.handle(), options.reverse));
    }
    int64_t length = options.length.number();
    for (keel_array* x : over) {
      Tensor t{Array(keel_array_retain(x))};
      if (!t.ndim()) throw Error(KEEL_INVALID, "an operand of scan is a scalar: it has no dim to scan over");
      if (length == -1) length = t.shape()[0];
      if (t.shape()[0] != length)
        throw Error(KEEL_INVALID, "an operand has " + std::to_string(t.shape()[0]) + " entries, not " +
                                      std::to_string(length));
    }
    if (length < 0) throw Error(KEEL_INVALID, "scan has no operand to scan over; set .length");
    if (!length) {  // only a trace infers the stacked types
      std::optional<R> like;
      auto traced = function("scan", [&](const C& carry, const X& none) {
        like.emplace(detail::writes() ? scan(carry, none, body, options, where)
                                      : detail::scan_no_entries<R>(carried, over, on_entries));
        std::vector<Tensor> flat;
        for (keel_array* made : detail::tensors_of(*like)) flat.emplace_back(Array(keel_array_retain(made)));
        return flat;
      });
      std::vector<Array> all;
      for (const Tensor& t : traced(init, xs)) all.push_back(t.array());
      return detail::with_tensors(*like, all);
    }
    std::vector<std::vector<Tensor>> stacks;
    std::optional<R> last;
    for (int64_t k = 0; k < length; k++) {
      std::vector<Array> entry;
      for (keel_array* x : over)
        entry.push_back(Tensor(Array(keel_array_retain(x)))[options.reverse ? length - 1 - k : k].array());
      C carry = last ? last->first : init;
      last.emplace(body(carry, detail::with_tensors(xs, std::move(entry))));
      detail::check_carried(carry, last->first);
      std::vector<keel_array*> ys = detail::tensors_of(last->second);
      stacks.resize(ys.size());
      for (size_t y = 0; y < ys.size(); y++) {
        Tensor one{Array(keel_array_retain(ys[y]))};
        std::vector<int64_t> to{1};
        to.insert(to.end(), one.shape().begin(), one.shape().end());
        stacks[y].insert(options.reverse ? stacks[y].begin() : stacks[y].end(), reshape(one, to));
      }
    }
    std::vector<Array> all;
    for (const std::vector<Tensor>& stack : stacks) all.push_back(concat(stack).array());
    last->second = detail::with_tensors(last->second, std::move(all));
    return *std::move(last);
  });
}

struct PrintOptions {
  bool out = false;  // stdout instead of stderr; the hook of the context receives both
  int64_t edge = 3;  // elements shown at both ends of each dim; -1: all
};
/// Prints one line when the program reaches this point, traced or not: `format` with each {} replaced by the
/// next of x.
inline void print(const std::string& format, std::initializer_list<Operand> x = {},
                  const PrintOptions& o = {}, const Place& where = Place::current()) {
  detail::Attributes at;
  if (!format.empty()) at.text("format", format.c_str());
  if (o.out) at.text("stream", "out");
  if (o.edge != 3) at.i64("edge", o.edge);
  detail::apply(OpId::print, Operands(x).all(), at, {}, where);
}
inline void print(const Tensor& x, const Place& where = Place::current()) {
  print("", {Operand(x, where)}, {}, where);
}

/// If ok, a bool[], is false, the program fails with the message and x before any later effect.
inline void assert_(const Operand& ok, const std::string& message = "",
                    std::initializer_list<Operand> x = {}) {
  detail::Attributes at;
  if (!message.empty()) at.text("message", message.c_str());
  std::vector<const Operand*> all{&ok};
  for (const Operand& operand : x) all.push_back(&operand);
  detail::apply(OpId::assert, all, at, {}, ok.where());
}

}  // namespace keel
#endif
