// storage.cc: cast from and to storage dtypes: 8-bit floats, and 4- and 2-bit elements packed in bytes.
//
// How to read it: work goes tile by tile through arrays of codes, one a byte (Unpack, Pack). Sources of up to
// 8 bits are looked up in a table of all their values; others have a function that computes a tile of codes.
#include <array>
#include <cstring>
#include <limits>

#include "plugins/cpu/common.h"
#include "plugins/cpu/elementwise/cast_loops.h"
#include "plugins/cpu/elementwise/storage_loops.h"
#include "plugins/cpu/parallel/parallel.h"
#include "sdk/cpp/keel/storage.hpp"

namespace keel_cpu {
namespace {

using keel::StorageRounding;

constexpr int64_t kTile = 1024;
constexpr int64_t kUnit = 8;  // elements that begin and end with a byte in every dtype

struct StorageCast {
  keel_dt from, to;
  StorageRounding how;
  SmallFormat format{};
  alignas(8) std::array<char, 256 * 8> table{};  // of results, one for each code of a small source
};
using Codes = uint8_t[kTile];

// ---- codes and bytes; `begin` is a multiple of kUnit

void Unpack(keel_dt dt, const void* data, int64_t begin, int64_t n, uint8_t* codes) {
  const int bits = keel::dtype_bits(dt);
  const uint8_t* p = static_cast<const uint8_t*>(data) + begin * bits / 8;
  if (bits == 8) std::memcpy(codes, p, static_cast<size_t>(n));
  if (bits == 4)
    for (int64_t i = 0; i < n; i++) codes[i] = p[i / 2] >> i % 2 * 4 & 15;
  if (bits == 2)
    for (int64_t i = 0; i < n; i++) codes[i] = p[i / 4] >> i % 4 * 2 & 3;
}
// Writes up to kUnit codes after the last: zeros.
void Pack(keel_dt dt, uint8_t* codes, int64_t begin, int64_t n, void* data) {
  const int bits = keel::dtype_bits(dt);
  uint8_t* p = static_cast<uint8_t*>(data) + begin * bits / 8;
  std::fill(codes + n, codes + n + kUnit, uint8_t{0});
  const int64_t bytes = (n * bits + 7) / 8;
  if (bits == 8) std::memcpy(p, codes, static_cast<size_t>(n));
  if (bits == 4)
    for (int64_t i = 0; i < bytes; i++) p[i] = static_cast<uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
  if (bits == 2)
    for (int64_t i = 0; i < bytes; i++)
      p[i] = static_cast<uint8_t>(codes[4 * i] | codes[4 * i + 1] << 2 | codes[4 * i + 2] << 4 |
                                  codes[4 * i + 3] << 6);
}

// Calls f(begin, n) for tiles of all elements.
template <class F>
keel_rc EachTile(const keel_call* call, int64_t cost, F&& f) {
  const int64_t count = call->count, units = (count + kUnit - 1) / kUnit;
  ParallelFor(call, units, cost * kUnit, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * kUnit, stop = std::min(count, end * kUnit); i < stop; i += kTile)
      f(i, std::min(kTile, stop - i));
  });
  return Done(call);
}

// ---- sources of up to 8 bits

double SmallValue(keel_dt from, int code) {
  if (from == KEEL_BOOL) return code != 0;
  if (from == KEEL_U8) return code;
  if (from == KEEL_I8) return static_cast<int8_t>(code);
  return keel::storage_value(from, code);
}
void FillTable(StorageCast& s) {
  const bool fraction = keel::is_storage(s.from) && !keel::is_storage_integer(s.from);
  double reals[256];
  int32_t integers[256];
  const int n = 1 << keel::dtype_bits(s.from);
  for (int code = 0; code < n; code++) {
    reals[code] = SmallValue(s.from, code);
    integers[code] = fraction ? 0 : static_cast<int32_t>(reals[code]);
  }
  if (!keel::is_storage(s.to)) {
    if (fraction) return FindCast(KEEL_F64, s.to)(reals, s.table.data(), n);
    return FindCast(KEEL_I32, s.to)(integers, s.table.data(), n);
  }
  for (int code = 0; code < n; code++)
    s.table[static_cast<size_t>(code)] =
        static_cast<char>(s.from == s.to ? code : keel::storage_code(s.to, reals[code], fraction, s.how));
}

template <class T>
keel_rc RunTable(const keel_call* call) {
  const StorageCast& s = State<StorageCast>(call);
  const T* table = reinterpret_cast<const T*>(s.table.data());
  T* y = Out<T>(call, 0);
  return EachTile(call, 2, [&](int64_t begin, int64_t n) {
    Codes codes;
    Unpack(s.from, keel_ptr(call->in[0]), begin, n, codes);
    for (int64_t i = 0; i < n; i++) y[begin + i] = table[codes[i]];
  });
}
keel_rc RunCodes(const keel_call* call) {
  const StorageCast& s = State<StorageCast>(call);
  const auto* table = reinterpret_cast<const uint8_t*>(s.table.data());
  return EachTile(call, 3, [&](int64_t begin, int64_t n) {
    uint8_t codes[kTile + kUnit];
    Unpack(s.from, keel_ptr(call->in[0]), begin, n, codes);
    for (int64_t i = 0; i < n; i++) codes[i] = table[codes[i]];
    Pack(s.to, codes, begin, n, keel_ptr(call->out[0]));
  });
}

// ---- wider sources

using ToCodes = void (*)(const StorageCast& s, const void* x, uint8_t* codes, int64_t n);

// Through f32, rounded to odd, so that the code is rounded once.
template <class From>
void Narrowed(const StorageCast& s, const void* x, uint8_t* codes, int64_t n) {
  float row[kTile];
  for (int64_t i = 0; i < n; i++) row[i] = ToOdd(static_cast<double>(Widen(static_cast<const From*>(x)[i])));
  FindEncode()(s.format, row, codes, n);
}
void Plain(const StorageCast& s, const void* x, uint8_t* codes, int64_t n) {
  FindEncode()(s.format, static_cast<const float*>(x), codes, n);
}
// Through 32 bits: floats are truncated and saturate.
void Truncated(const StorageCast& s, const void* x, uint8_t* codes, int64_t n) {
  const int bits = keel::dtype_bits(s.to), mask = (1 << bits) - 1;
  const int least = (s.to & 0xff) == 0 ? -(1 << (bits - 1)) : 0;
  int32_t row[kTile];
  FindCast(s.from, KEEL_I32)(x, row, n);
  for (int64_t i = 0; i < n; i++)
    codes[i] = static_cast<uint8_t>(std::clamp(row[i], least, least + mask) & mask);
}
// Integers wrap.
void Wrapped(const StorageCast& s, const void* x, uint8_t* codes, int64_t n) {
  FindCast(s.from, KEEL_U8)(x, codes, n);
  for (int64_t i = 0; i < n; i++) codes[i] &= static_cast<uint8_t>((1 << keel::dtype_bits(s.to)) - 1);
}
// f8e8m0: scales, which are few.
template <class From>
void Exact(const StorageCast& s, const void* x, uint8_t* codes, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    codes[i] = keel::storage_code(s.to, static_cast<long double>(Widen(static_cast<const From*>(x)[i])), true,
                                  s.how);
}

template <ToCodes MAKE, int64_t COST>
keel_rc RunWide(const keel_call* call) {
  const StorageCast& s = State<StorageCast>(call);
  const int64_t size = ItemSize(*call->in[0]);
  return EachTile(call, COST, [&](int64_t begin, int64_t n) {
    uint8_t codes[kTile + kUnit];
    MAKE(s, In<char>(call, 0) + begin * size, codes, n);
    Pack(s.to, codes, begin, n, keel_ptr(call->out[0]));
  });
}
Run WideRun(keel_dt from, keel_dt to) {
  const bool floats = (from & 0xff) == 2 || (from & 0xff) == 4;
  if (keel::is_storage_integer(to)) return floats ? RunWide<Truncated, 3> : RunWide<Wrapped, 3>;
  if (to == KEEL_F8E8M0) return VisitAll(from, []<class From>() -> Run { return RunWide<Exact<From>, 40>; });
  if (from == KEEL_F32) return RunWide<Plain, 4>;
  return VisitAll(from, []<class From>() -> Run { return RunWide<Narrowed<From>, 6>; });
}

void SetFormat(StorageCast& s) {
  const keel::detail::StorageFloat* f = keel::detail::find_storage_float(s.to);
  if (!f) return;
  const bool to_nan = !s.how.saturate && f->nan && !f->infinity;
  const int over = to_nan ? f->nan : s.how.saturate || !f->infinity ? f->most : f->infinity;
  s.format = {f->mantissa,   f->min_exponent,           f->most, f->sign(), f->nan, over,
              f->one_zero(), !(to_nan && f->one_zero())};
}

StorageRounding RoundingOf(const Node& node) {
  const std::string mode = node.Word("round");
  return {node.Flag("saturate"), mode == "up"     ? StorageRounding::kUp
                                 : mode == "down" ? StorageRounding::kDown
                                                  : StorageRounding::kNearest};
}

keel_rc PrepareStorage(const Node& node, keel_launch* launch) {
  StorageCast s{TypeOf(node.In(0)), TypeOf(node.Out(0)), RoundingOf(node)};
  SetFormat(s);
  if (keel::dtype_bits(s.from) > 8) return Keep(launch, s, WideRun(s.from, s.to));
  FillTable(s);
  if (keel::is_storage(s.to)) return Keep(launch, s, RunCodes);
  return Keep(launch, s, VisitSize(keel::dtype_bits(s.to) / 8, []<class T>() -> Run { return RunTable<T>; }));
}

int32_t IsStorageCast(keel_dev, const keel_host* host, const keel_node* node) {
  const Node n{host, node};
  return keel::is_storage(TypeOf(n.In(0))) || keel::is_storage(TypeOf(n.Out(0)));
}

constexpr keel_impl kImpls[] = {{"cast", 1, 1, nullptr, "storage cast", 1, KEEL_IMPL_ANY_DIMS, IsStorageCast,
                                 Prepare<PrepareStorage>, nullptr}};

}  // namespace

Impls StorageImpls() { return kImpls; }

}  // namespace keel_cpu
