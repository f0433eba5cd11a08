// control.hpp: branches and loops that depend on tensors, in traced and in eager programs.
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
// How to read it: the functions are independent of each other; Body of body.hpp writes one body.
#ifndef KEEL_CONTROL_HPP
#define KEEL_CONTROL_HPP
#include "body.hpp"

namespace keel {

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

}  // namespace keel
#endif
