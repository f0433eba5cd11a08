// storage.cc: cast from and to storage dtypes, by tables.
#include "sdk/plugin/storage_table.h"

#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

using keel::plugin::Computed, keel::plugin::dtype_of;

bool IsStorage(const keel_tensor& t) { return keel::is_storage(keel_dt_of(&t)); }

void Cast(Op& op) {
  const keel_tensor x = op.In(0), y = op.Out(0);
  const keel::plugin::StorageCast cast = keel::plugin::storage_cast(op);
  const keel_dt computed = cast.from_bits ? (cast.to_bits ? keel_dt{KEEL_U8} : dtype_of(y)) : dtype_of(x);
  std::vector<uint64_t> table = cast.table.keys;
  table.insert(table.end(), cast.table.codes.begin(), cast.table.codes.end());
  const int64_t elements = keel_count(&y),
                count = cast.to_bits ? CeilDiv(elements * cast.to_bits, 8) : elements;
  if (!count) return;
  const Computed from(dtype_of(x));
  op.Add(
      "storage", "storage_" + NameOf(computed), Blocks(count), {0, op.Result()},
      {elements, cast.from_bits, cast.to_bits, cast.wraps, from.floating, static_cast<int64_t>(from.sign()),
       static_cast<int64_t>(from.all()), static_cast<int64_t>(cast.table.keys.size()), op.Upload(table)});
}

int32_t Match(keel_dev, const keel_host* host, const keel_node* node) {
  keel::plugin::Node of(host, node);
  return !of.rc && (IsStorage(of.In(0)) || IsStorage(of.Out(0)));
}

}  // namespace

Impls StorageImpls() {
  return {{"cast", 1, 1, nullptr, "storage dtypes by tables", 0, 0, Guarded<Match>, Guarded<Prepared<Cast>>,
           nullptr}};
}

}  // namespace keel_cuda
