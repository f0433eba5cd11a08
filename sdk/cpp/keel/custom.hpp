// custom.hpp: functions with a user-defined gradient.
//
//   auto clipped = keel::custom_gradient(
//       [](const keel::Tensor& x) { return keel::identity(x); },
//       [](const keel::Tensor& x, const keel::Tensor& y, const keel::Tensor& dy) { return keel::clamp(dy, -1,
//       1); });
//   keel::Tensor y = clipped(x);   // eagerly under tapes, in traced and in saved functions
//
// Arguments are tensors (or variables, which are read); forward returns a tensor or a structure of tensors.
// backward receives the arguments, the results and the gradients of the results (both in forward's structure;
// an empty Tensor for a result that is not floating-point), and returns one gradient for each argument (a
// tensor, a tuple, an array or a vector); an empty Tensor means zeros. The ops of backward are differentiated
// for second-order gradients. Captured variables and tensors of forward get the gradient of its ops.
#ifndef KEEL_CUSTOM_HPP
#define KEEL_CUSTOM_HPP
#include "function.hpp"
#include "keel/ops.hpp"
#include "tape.hpp"

namespace keel {

namespace detail {

inline bool is_float(keel_dt dtype) {
  const DtypeRow* row = find_dtype(dtype);
  return row && row->kind == 'f';
}

inline std::vector<keel_array*> floats_of(const std::vector<keel_array*>& arrays) {
  std::vector<keel_array*> out;
  std::ranges::copy_if(arrays, std::back_inserter(out),
                       [](keel_array* a) { return is_float(dtype_of_array(a)); });
  return out;
}

/// One call in progress; backward runs in it. The results of forward are operands, too, after the n
/// arguments: their gradients flow on to the captures of forward.
template <class Backward, class Result, size_t n>
struct CustomCall {
  const Backward& backward;
  const Result& result;
  Home& home;
  std::exception_ptr thrown = nullptr;

  static keel_rc run(void* self, keel_trace* trace, const keel_leaf* leaves, uint32_t count, keel_error**) {
    auto& mine = *static_cast<CustomCall*>(self);
    try {
      mine.write(trace, {leaves, count});
    } catch (...) {
      mine.thrown = std::current_exception();
      return KEEL_INVALID;
    }
    return KEEL_OK;
  }

 private:
  void write(keel_trace* trace, std::span<const keel_leaf> leaves) {
    BodyScope body(home, trace, nullptr);
    std::array<Tensor, n> x;
    for (size_t i = 0; i < n; i++) x[i] = Tensor(Array(keel_array_retain(leaves[i].array)));
    std::vector<keel_array*> ys = arrays_of(result), dys(ys.size());
    size_t floats = floats_of(ys).size(), next = n + floats + ys.size();
    for (size_t i = 0; i < ys.size(); i++) {
      if (is_float(dtype_of_array(ys[i]))) dys[i] = leaves[next++].array;
      ys[i] = leaves[n + floats + i].array;
    }
    auto y = with_arrays(result, ys), dy = with_arrays(result, dys);
    auto made = std::apply([&](const auto&... each) { return backward(each..., y, dy); }, x);
    pass_results(trace, x, arrays_of(made));
    for (keel_array* d : dys)
      if (d) call(keel_trace_result, trace, nullptr, d);
  }
  static void pass_results(keel_trace* trace, const std::array<Tensor, n>& x,
                           const std::vector<keel_array*>& made) {
    if (made.size() != n)
      throw Error(KEEL_INVALID,
                  "custom_gradient: backward returned " + std::to_string(made.size()) +
                      " gradients, expected " + std::to_string(n) + ", one for each argument",
                  "return one for each argument, an empty Tensor for zeros and for arguments that are not "
                  "floating-point");
    for (size_t i = 0; i < n; i++) {
      if (!is_float(x[i].dtype())) continue;
      Tensor zeros = made[i] ? Tensor() : select(Tensor(false), x[i], 0);
      call(keel_trace_result, trace, nullptr, made[i] ? made[i] : zeros.get());
    }
  }
};

/// The code of a keel::function with a user-defined gradient.
template <class Forward, class Backward>
struct Custom {
  Forward forward;
  Backward backward;
  std::string name;

  template <std::same_as<Tensor>... X>
  requires std::invocable<const Forward&, const X&...>
  auto operator()(const X&... x) const {
    using Result = Returned<std::decay_t<std::invoke_result_t<const Forward&, const X&...>>>;
    auto apart = [](const Tensor& t) { return is_float(t.dtype()) ? stop_gradient(t) : t; };
    Result result = forward(apart(x)...);
    CustomCall<Backward, Result, sizeof...(X)> mine{backward, result, here()};
    std::vector<keel_array*> xs{x.get()...}, ys = arrays_of(result), out(ys.size());
    std::ranges::copy(floats_of(ys), std::back_inserter(xs));
    keel_error* error = nullptr;
    keel_rc rc = keel_trace_custom(this_trace, tape_handle(), name.c_str(), xs.data(),
                                   static_cast<uint32_t>(xs.size()), ys.data(),
                                   static_cast<uint32_t>(ys.size()), mine.run, &mine, out.data(), &error);
    if (rc == KEEL_OK) rc = cut(out, &error);
    if (rc != KEEL_OK) {
      Error failure = Error::take(rc, error);
      if (mine.thrown) std::rethrow_exception(mine.thrown);
      throw failure;
    }
    std::vector<Array> owned = take_arrays(out);
    return with_arrays(result, raw(owned));
  }
};

}  // namespace detail

/// A keel::function; copies share their traces. Any thread may call it.
template <class Forward, class Backward>
class CustomGradient : public Function<detail::Custom<Forward, Backward>> {
 public:
  using Base = Function<detail::Custom<Forward, Backward>>;
  using Base::Base;
  template <class... X>
  requires(std::convertible_to<const X&, Tensor>&&...) auto operator()(const X&... x) const {
    return Base::operator()(static_cast<Tensor>(x)...);
  }
};

/// name: in messages and graphs. Effects of backward (prints, writes) are dropped; tensors and variables that
/// it captures get no gradient. Exceptions of the user's code pass unchanged.
template <class Forward, class Backward>
CustomGradient<std::decay_t<Forward>, std::decay_t<Backward>> custom_gradient(
    Forward&& forward, Backward&& backward, const std::string& name = "custom",
    const FunctionOptions& options = {}) {
  return {name, {std::forward<Forward>(forward), std::forward<Backward>(backward), name}, options};
}

}  // namespace keel
#endif
