// eager_device.h: the fast path of keel_apply on a device with memory of its own: from the operands' dtypes
// and shapes to a plan of one op with its binding, in an append-only table without locks. Operands may be in
// host memory, too: the run uploads them. On a miss op.cc makes a plan and adds it to the table.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "kernel/api/eager.h"
#include "kernel/runtime/plan/plan.h"

namespace keel {

// Dtype and shape of each operand, as numbers; -1 for an omitted operand.
using Signature = std::vector<int64_t>;
Signature SignatureOf(keel_array* const* in, uint32_t n);

class DeviceQuickTable {
 public:
  DeviceQuickTable() = default;
  ~DeviceQuickTable();
  // As QuickTable::Apply, with one result.
  QuickTable::Outcome Apply(keel_array* const* in, uint32_t n, keel_array** out, absl::Status* error) const;
  // Adds a plan that was made for these operands. One thread at a time.
  void Learn(keel_array* const* in, uint32_t n, const std::shared_ptr<Plan>& plan);

 private:
  struct Entry {
    uint64_t hash;
    Signature signature;
    std::shared_ptr<Plan> plan;
    std::shared_ptr<Binding> binding;
  };
  static constexpr size_t kSlots = 256, kMost = 192;          // the others are found by op.cc
  static uint64_t HashOf(keel_array* const* in, uint32_t n);  // 0: the table does not serve these operands
  static bool Same(const Signature& signature, keel_array* const* in, uint32_t n);

  std::array<std::atomic<Entry*>, kSlots> slots_{};
  size_t entries_ = 0;
};

}  // namespace keel
