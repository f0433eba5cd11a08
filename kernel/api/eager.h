// eager.h: the fast path of keel_apply: from the operands' types to a prepared launch, in an append-only
// table without locks; the call is on the stack, the result from a free list. On a miss op.cc runs a plan and
// adds its launch to the table.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "kernel/api/handles.h"
#include "kernel/runtime/plan/step.h"

namespace keel {

inline constexpr uint32_t kQuickOperands = 7;  // one byte each in the key, and one for their number

// A prepared launch. With a rule it serves all shapes of its types; otherwise only the shapes in `dims`.
struct Quick {
  uint64_t key = 0;
  ShapeRule rule = ShapeRule::kInferred;
  DType dtype = DType::kNone;  // of the result
  int32_t rank = 0;            // and its shape, if there is no rule
  uint32_t flags = 0;          // of the call, if there is no rule
  int64_t count = 0;
  int64_t shape[KEEL_MAX_RANK] = {};
  std::vector<int64_t> dims;  // of all operands, one after the other
  int64_t max_count = 0;      // larger results go to the plan, which reports the error
  uint64_t scratch_bytes = 0;
  keel_rc (*run)(const keel_call*) = nullptr;
  void* state = nullptr;
  keel_env env{};
  std::shared_ptr<Launch> launch;
  std::shared_ptr<Plan> plan;         // of the first call: for messages
  std::atomic<Quick*> next{nullptr};  // of the same key, with other shapes
};

// The operands' dtypes and ranks, exactly; 0 for an omitted operand. Returns 0 if the fast path does not
// apply.
inline uint64_t QuickKey(keel_array* const* in, uint32_t n) {
  if (n - 1 >= kQuickOperands) return 0;
  uint64_t key = 0;
  bool contiguous = true;
  for (uint32_t i = n; i-- > 0;) {
    key <<= 8;
    if (!in[i]) continue;
    key |= in[i]->type_key;
    contiguous &= in[i]->contiguous;
  }
  return contiguous ? key | static_cast<uint64_t>(n) << 56 : 0;
}

class QuickTable {
 public:
  enum Outcome { kDone, kUnknown, kFailed };

  QuickTable() = default;
  ~QuickTable();
  // kUnknown: nothing was done. kFailed: *error is set. Thread-safe.
  Outcome Apply(keel_array* const* in, uint32_t n_in, keel_array** out, absl::Status* error) const;
  // Adds the launch of a plan of one op that was made for these operands. One thread at a time.
  void Learn(keel_array* const* in, uint32_t n_in, const std::shared_ptr<Plan>& plan,
             const PlanOptions& options);

 private:
  static constexpr size_t kSlots = 64, kMostKeys = 48, kMostShapes = 16;
  static size_t SlotOf(uint64_t key) { return key * 0x9e3779b97f4a7c15u >> 58; }
  const Quick* Find(uint64_t key) const;
  void Add(std::unique_ptr<Quick> quick);

  std::array<std::atomic<Quick*>, kSlots> slots_{};
  size_t keys_ = 0;
};

}  // namespace keel
