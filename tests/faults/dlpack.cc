// dlpack.cc: tensors exchanged by DLPack, in both forms. The structs are declared here as in DLPack 1.0.
#include "tests/faults/calls.h"
#include "tests/faults/scenarios.h"

struct DLManagedTensor {
  keel_tensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* manager;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  keel_tensor tensor;
};

namespace keel::test {
namespace {

constexpr float kData[] = {1, 2, 3, 4, 5, 6};

template <typename Managed>
using Function = keel_rc (*)(keel_context*, Managed*, keel_array**, keel_error**);

// Import and export; every deleter is called once: by the array, or by the test if the import failed.
template <typename Managed, typename Take, typename Give>
void RoundTrip(Calls& c, keel_context* context, Take take, Give give) {
  static thread_local int deleted;
  deleted = 0;
  int64_t shape[] = {3, 2};
  Managed mine{};
  if constexpr (requires { mine.major; }) mine.major = 1;
  mine.tensor = {const_cast<float*>(kData), {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
  mine.deleter = [](Managed*) { deleted++; };
  bool taken = false;
  {
    OwnArray array;
    Managed* out = nullptr;
    taken = c.Try(take, context, &mine, &array);
    if (taken && c.Try(give, static_cast<keel_array*>(array), &out)) {
      c.outcome.right = c.outcome.right && !std::memcmp(out->tensor.data, kData, sizeof kData) &&
                        out->tensor.shape[0] == 3 && out->tensor.shape[1] == 2;
      out->deleter(out);
    }
  }
  if (deleted == taken) return;
  c.outcome.rc = KEEL_INTERNAL;
  std::snprintf(c.outcome.message, sizeof c.outcome.message, "taken %d times, deleted %d times", taken,
                deleted);
}

}  // namespace

Outcome Dlpack(keel_context* context) {
  Calls c;
  using Versioned = DLManagedTensorVersioned;
  using Legacy = DLManagedTensor;
  RoundTrip<Versioned>(
      c, context,
      [](keel_context* on, Versioned* take, keel_array** out, keel_error** err) {
        return keel_array_from_dlpack(on, take, nullptr, out, err);
      },
      [](keel_array* array, Versioned** out, keel_error** err) {
        return keel_array_to_dlpack(array, out, nullptr, err);
      });
  if (c.outcome.rc != KEEL_OK) return c.outcome;
  RoundTrip<Legacy>(
      c, context,
      [](keel_context* on, Legacy* take, keel_array** out, keel_error** err) {
        return keel_array_from_dlpack(on, nullptr, take, out, err);
      },
      [](keel_array* array, Legacy** out, keel_error** err) {
        return keel_array_to_dlpack(array, nullptr, out, err);
      });
  return c.outcome;
}

}  // namespace keel::test
