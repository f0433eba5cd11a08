// eager.cc: the lookup of eager.h. This is the hot path; eager_learn.cc fills the table.
#include "kernel/api/eager.h"

#include <algorithm>

#include "kernel/language/values/blocks.h"

namespace keel {
namespace {

constexpr uint64_t kStackScratch = 4096;

inline bool SameDims(const int64_t* a, const int64_t* b, int32_t rank) {
  for (int32_t d = 0; d < rank; d++)
    if (a[d] != b[d]) return false;
  return true;
}

inline bool SameShapes(keel_array* const* in, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    if (in[i]->view.ndim != in[0]->view.ndim || !SameDims(in[i]->dims, in[0]->dims, in[0]->view.ndim))
      return false;
  return true;
}

const Quick* WithShapes(const Quick* quick, keel_array* const* in, uint32_t n) {
  for (; quick; quick = quick->next.load(std::memory_order_acquire)) {
    const int64_t* dims = quick->dims.data();
    uint32_t same = 0;
    for (; same < n; same++) {
      if (!in[same]) continue;
      int32_t rank = in[same]->view.ndim;
      if (!SameDims(dims, in[same]->dims, rank)) break;
      dims += rank;
    }
    if (same == n) return quick;
  }
  return nullptr;
}

// Facts about the result of a call.
struct Result {
  const int64_t* dims;
  int32_t rank;
  uint32_t flags;
  int64_t count;
};

// Shapes aligned at the last dim, 1 expanded. False: they do not match, or the count overflows.
bool Broadcast(keel_array* const* in, uint32_t n, int64_t* dims, Result* r) {
  *r = {dims, 0, 0, 1};
  for (uint32_t i = 0; i < n; i++) r->rank = std::max(r->rank, in[i]->view.ndim);
  std::fill_n(dims, r->rank, 1);
  for (uint32_t i = 0; i < n; i++) {
    int64_t* to = dims + (r->rank - in[i]->view.ndim);
    for (int32_t d = 0; d < in[i]->view.ndim; d++) {
      int64_t mine = in[i]->dims[d];
      if (to[d] != 1 && mine != 1 && to[d] != mine) return false;
      if (mine != 1) to[d] = mine;
    }
  }
  for (int32_t d = 0; d < r->rank; d++)
    if (__builtin_mul_overflow(r->count, dims[d], &r->count)) return false;
  uint32_t flags = KEEL_CALL_FLAT;
  for (uint32_t i = 0; i < n; i++) {
    if (in[i]->count != r->count && in[i]->count != 1) return true;
    if (in[i]->count == 1 && r->count != 1) flags |= KEEL_CALL_ONE(i);
  }
  r->flags = flags;
  return true;
}

[[gnu::cold, gnu::noinline]] absl::Status Failure(const HostCall& host, const Quick& quick, keel_rc rc) {
  const Step& step = quick.plan->lowered().steps[0];
  return rc == KEEL_OK || rc == KEEL_CANCELLED ? Stopped(step.name) : RunError(host, rc, step);
}

// A separate function: its stack buffer would enlarge the frame of every call.
[[gnu::noinline]] keel_rc LaunchWithScratch(const Quick& quick, keel_call* call) {
  if (quick.scratch_bytes <= kStackScratch) {
    alignas(kAlign) char scratch[kStackScratch];
    call->scratch = scratch;
    return quick.run(call);
  }
  keel_array* scratch = AllocateBlock(quick.scratch_bytes);
  if (!scratch) return KEEL_OOM;
  call->scratch = scratch->payload();
  keel_rc rc = quick.run(call);
  FreeBlock(scratch);
  return rc;
}

}  // namespace

QuickTable::~QuickTable() {
  for (auto& slot : slots_)
    for (Quick* q = slot.load(); q;) delete std::exchange(q, q->next.load());
}

inline const Quick* QuickTable::Find(uint64_t key) const {
  for (size_t at = SlotOf(key);; at = (at + 1) % kSlots) {
    const Quick* quick = slots_[at].load(std::memory_order_acquire);
    if (!quick || quick->key == key) return quick;
  }
}

QuickTable::Outcome QuickTable::Apply(keel_array* const* in, uint32_t n, keel_array** out,
                                      absl::Status* error) const {
  uint64_t key = QuickKey(in, n);
  const Quick* quick = key ? Find(key) : nullptr;
  if (!quick) [[unlikely]]
    return kUnknown;
  int64_t dims[KEEL_MAX_RANK];
  Result r;
  if (quick->rule == ShapeRule::kInferred) {
    quick = WithShapes(quick, in, n);
    if (!quick) return kUnknown;
    r = {quick->shape, quick->rank, quick->flags, quick->count};
  } else if (SameShapes(in, n)) {
    r = {in[0]->dims, in[0]->view.ndim, KEEL_CALL_FLAT, in[0]->count};
  } else if (quick->rule != ShapeRule::kBroadcast || !Broadcast(in, n, dims, &r)) {
    return kUnknown;
  }
  if (r.count > quick->max_count) [[unlikely]]
    return kUnknown;
  keel_array* made = NewResult(quick->dtype, {r.dims, static_cast<size_t>(r.rank)}, r.count);
  if (!made) [[unlikely]]
    return kUnknown;
  const keel_tensor* operands[kQuickOperands];
  for (uint32_t i = 0; i < n; i++) operands[i] = in[i] ? &in[i]->view : nullptr;
  keel_tensor* result = &made->view;
  keel_call call;
  call.struct_size = KEEL_END(keel_call, scratch_bytes);
  call.flags = r.flags;
  call.n_in = static_cast<uint16_t>(n);
  call.n_out = 1;
  call.fault = 0;
  call.count = r.count;
  call.in = operands;
  call.out = &result;
  call.state = quick->state;
  call.scratch = nullptr;
  call.env = &quick->env;
  call.scratch_bytes = quick->scratch_bytes;
  HostCall host;
  keel_rc rc = !r.count               ? KEEL_OK
               : quick->scratch_bytes ? LaunchWithScratch(*quick, &call)
                                      : quick->run(&call);
  if (rc != KEEL_OK || *quick->env.cancelled) [[unlikely]] {
    FreeBlock(made);
    *error = Failure(host, *quick, rc);
    return kFailed;
  }
  *out = made;
  return kDone;
}

}  // namespace keel
