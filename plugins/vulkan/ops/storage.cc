// storage.cc: cast from and to storage dtypes, by tables.
#include "sdk/plugin/storage_table.h"

#include "shader_op.h"

namespace vulkan {
namespace {

bool IsStorage(const keel_tensor& t) { return keel::is_storage(keel_dt_of(&t)); }

void Cast(Op& op) {
  const keel_tensor x = op.In(0), y = op.Out(0);
  const keel::plugin::StorageCast cast = keel::plugin::storage_cast(op);
  const uint32_t elements = Count32(y), steps = static_cast<uint32_t>(cast.table.keys.size());
  const struct {
    uint64_t sign;
    uint32_t elements, count, steps, unused;
  } numbers = {cast.sign, elements, cast.to_bits ? CeilDiv(elements, 8 / cast.to_bits) : elements, steps, 0};
  op.work.Set(numbers);
  for (const auto* part : {&cast.table.keys, &cast.table.codes})
    for (uint64_t word : *part) op.work.Add(word);
  op.work.Threads(numbers.count);
  keel_tensor computed = cast.from_bits ? y : x;  // of numbers; if there are none, any that has shaders
  if (IsStorage(computed)) computed.dtype = {KEEL_U8 & 255, 8, 1};
  op.work.pipeline = op.Numbers("storage", computed, {cast.from_bits, cast.to_bits, cast.wraps});
}

int32_t Match(keel_dev d, const keel_host* host, const keel_node* node) {
  Op op(d, host, node);
  const keel_tensor x = op.In(0), y = op.Out(0);
  if (!IsStorage(x) && !IsStorage(y)) return 0;
  for (const keel_tensor& t : {x, y})
    if (IsStorage(t) ? Lack(d->has, false, true, false) : LackOfNumbers(d->has, t)) return 0;
  return !op.rc;
}

}  // namespace

Impls StorageImpls() { return {Row<Prepared<Cast>, Match>("cast", nullptr, "storage dtypes by tables")}; }

}  // namespace vulkan
