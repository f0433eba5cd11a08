// memory.cc: segments at unreadable addresses, filled with poison on allocation and on free.
#include <cstdlib>
#include <cstring>

#include "device.h"

namespace hostile {
namespace {

constexpr int kPoison = 0xff;  // NaN in every float, -1 in every integer
constexpr uint64_t kAlignment = 256;

}  // namespace

keel_rc SegmentAlloc(keel_dev d, uint32_t kind, uint64_t bytes, keel_segment* out) {
  HOSTILE_FAIL(d->host, "segment_alloc");
  if (keel_rc rc = d->Lost()) return rc;
  if (kind == KEEL_SEGMENT_SHARED && !control().shared)
    return d->host->fail(KEEL_UNIMPLEMENTED, "no shared memory");
  std::lock_guard lock(d->mutex);
  d->RunSome();
  if (kind == KEEL_SEGMENT_DEVICE && d->bytes + bytes > control().memory)
    return d->host->fail(KEEL_OOM, "the device's memory is full");
  if (control().max_segment && bytes > control().max_segment)
    control().Violation("segment above max_segment");
  uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  char* memory = static_cast<char*>(std::aligned_alloc(kAlignment, rounded ? rounded : kAlignment));
  if (!memory) return d->host->fail(KEEL_OOM, "the host's memory is full");
  std::memset(memory, kPoison, rounded);
  uint64_t address = reinterpret_cast<uint64_t>(memory) + kVeil;
  {
    std::lock_guard map(d->memory_mutex);
    d->memory[address] = {memory, bytes, kind};
  }
  if (kind == KEEL_SEGMENT_DEVICE) d->bytes += bytes;
  *out = {memory, address, kind == KEEL_SEGMENT_DEVICE ? nullptr : memory, bytes, kind, 0};
  control().segments++;
  control().bytes += bytes;
  return KEEL_OK;
}

void SegmentFree(keel_dev d, const keel_segment* s) {
  std::lock_guard lock(d->mutex);
  std::lock_guard map(d->memory_mutex);
  auto it = d->memory.find(s->address);
  if (it == d->memory.end()) return control().Violation("segment_free of what is no live segment");
  std::memset(it->second.bytes, kPoison, it->second.size);
  std::free(it->second.bytes);
  control().segments--;
  control().bytes -= it->second.size;
  if (it->second.kind == KEEL_SEGMENT_DEVICE) d->bytes -= it->second.size;
  d->memory.erase(it);
}

// Memory of the program gets an address of its own, for as long as it is wrapped. DEVICE: memory of this
// device.
keel_rc SegmentWrap(keel_dev d, uint32_t kind, void* memory, uint64_t bytes, keel_segment* out) {
  HOSTILE_FAIL(d->host, "segment_wrap");
  if (keel_rc rc = d->Lost()) return rc;
  if (!control().wraps) return d->host->fail(KEEL_UNIMPLEMENTED, "wraps nothing");
  auto address = reinterpret_cast<uint64_t>(memory);
  if (kind == KEEL_SEGMENT_DEVICE) {
    std::string why;
    if (!d->Reach(address, bytes, &why)) return d->host->fail(KEEL_UNIMPLEMENTED, "no memory of this device");
  } else {
    std::lock_guard map(d->memory_mutex);
    address = d->next_wrapped;
    d->next_wrapped += (bytes + 2 * kAlignment) / kAlignment * kAlignment;
    d->memory[address] = {static_cast<char*>(memory), bytes, kind};
  }
  *out = {nullptr, address, kind == KEEL_SEGMENT_DEVICE ? nullptr : memory, bytes, kind, 0};
  control().wrapped++;
  return KEEL_OK;
}

void SegmentUnwrap(keel_dev d, const keel_segment* s) {
  std::lock_guard map(d->memory_mutex);
  if (s->kind != KEEL_SEGMENT_DEVICE && !d->memory.erase(s->address))
    control().Violation("segment_unwrap of what is not wrapped");
  control().wrapped--;
}

}  // namespace hostile

char* keel_dev_s::Reach(uint64_t address, uint64_t count, std::string* why) {
  std::lock_guard map(memory_mutex);
  auto it = memory.upper_bound(address);
  if (it != memory.begin()) {
    --it;
    if (address - it->first <= it->second.size && count <= it->second.size - (address - it->first))
      return it->second.bytes + (address - it->first);
  }
  *why = "touches " + std::to_string(count) + " bytes that are in no live segment";
  return nullptr;
}
