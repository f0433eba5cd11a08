// cast.cc: conversions between all dtypes. Storage dtypes are read and written as numbers, one by one; the
// others have a loop for each pair.
#include <cstring>

#include "call.h"
#include "families.h"
#include "sdk/cpp/keel/storage.hpp"

namespace reference {
namespace {

using keel::StorageRounding;

struct CastState {
  StorageRounding how;
  void read(Attributes& a) {
    how.saturate = a.boolean("saturate");
    const std::string_view mode = a.text("round");
    how.mode = mode == "up"     ? StorageRounding::kUp
               : mode == "down" ? StorageRounding::kDown
                                : StorageRounding::kNearest;
  }
};

// An element as a number that holds it exactly.
struct Exact {
  long double v;
  bool fraction;  // of a float
};

template <class From>
Exact exact(From x) {
  return {static_cast<long double>(value(x)), Float<From>};
}
template <class To>
To from_exact(Exact x) {
  if constexpr (Integer<To>) {
    return x.fraction ? saturate<To>(static_cast<double>(x.v)) : static_cast<To>(static_cast<int64_t>(x.v));
  } else {
    return make<To>(x.v);
  }
}

Exact exact_of_storage(const keel_tensor& t, int64_t i) {
  const keel_dt dt = keel_dt_of(&t);
  return {keel::storage_element(dt, keel_ptr(&t), i), !keel::is_storage_integer(dt)};
}

// The bits that fill the last byte are zeros.
void clear(const keel_tensor& t) {
  if (const uint64_t bytes = keel_bytes(keel_dt_of(&t), keel_count(&t)))
    std::memset(keel_ptr(&t), 0, static_cast<size_t>(bytes));
}

keel_rc to_storage(const CastState& s, const keel_call& c) {
  const keel_tensor &x = *c.in[0], &y = *c.out[0];
  const keel_dt to = keel_dt_of(&y);
  const int64_t n = keel_count(&y);
  const auto put = [&](int64_t i, Exact v) {
    keel::store_code(to, keel_ptr(&y), i, keel::storage_code(to, v.v, v.fraction, s.how));
  };
  clear(y);
  if (in_type(c) == to) {  // infinities stay
    for (int64_t i = 0; i < n; ++i)
      keel::store_code(to, keel_ptr(&y), i, keel::load_code(to, keel_ptr(&x), i));
    return KEEL_OK;
  }
  if (keel::is_storage(in_type(c))) {
    for (int64_t i = 0; i < n; ++i) put(i, exact_of_storage(x, i));
    return KEEL_OK;
  }
  return typed<Any>(c, in_type(c), [&](auto from) {
    for (int64_t i = 0; i < n; ++i) put(i, exact(in<typename decltype(from)::type>(c, 0)[i]));
    return KEEL_OK;
  });
}

keel_rc from_storage(const keel_call& c) {
  return typed<Any>(c, keel_dt_of(c.out[0]), [&](auto to) {
    using To = typename decltype(to)::type;
    const int64_t n = keel_count(c.out[0]);
    for (int64_t i = 0; i < n; ++i) out<To>(c)[i] = from_exact<To>(exact_of_storage(*c.in[0], i));
    return KEEL_OK;
  });
}

template <class From, class To>
keel_rc cast_loop(const keel_call& c) {
  const From* x = in<From>(c, 0);
  To* y = out<To>(c);
  const int64_t n = keel_count(c.out[0]);
  for (int64_t i = 0; i < n; ++i) y[i] = convert<To>(x[i]);
  return KEEL_OK;
}
keel_rc cast(const CastState& s, const keel_call& c) {
  if (keel::is_storage(keel_dt_of(c.out[0]))) return to_storage(s, c);
  if (keel::is_storage(in_type(c))) return from_storage(c);
  return typed<Any>(c, in_type(c), [&](auto from) {
    return typed<Any>(c, keel_dt_of(c.out[0]), [&](auto to) {
      return cast_loop<typename decltype(from)::type, typename decltype(to)::type>(c);
    });
  });
}

constexpr keel_impl kImpls[] = {row<CastState, cast>(REFERENCE_OP("cast"), KEEL_IMPL_ANY_DIMS)};

}  // namespace

std::span<const keel_impl> cast_impls() { return kImpls; }

}  // namespace reference
