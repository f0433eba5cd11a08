// launch.h: launches. An impl's prepare fills a Work; run is the same function for all impls.
#ifndef KEEL_PLUGINS_CUDA_LAUNCH_H
#define KEEL_PLUGINS_CUDA_LAUNCH_H
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "library_call.h"

namespace keel_cuda {

// A kernel of a launch. Its operands are some of: operands, results, scratch of the launch, by number in this
// order.
struct Step {
  CUfunction kernel = nullptr;
  uint32_t blocks = 0;
  std::vector<uint32_t> uses;
  std::vector<int64_t> numbers;
  uint32_t threads = kThreads;  // of a block
};

struct MemoryFree {
  const keel_host* host;
  void operator()(keel_memory* memory) const { host->memory_free(memory); }
};

// State of a launch, read-only after prepare.
struct Work {
  std::vector<Step> steps;  // none: nothing to do
  // Instead of the steps, with the operands of the first one, if these are aligned. If they are not and that
  // step has no kernel, the launch is KEEL_UNIMPLEMENTED.
  std::shared_ptr<LibraryCall> product;
  std::vector<Step> mends;                          // that follow it
  std::unique_ptr<keel_memory, MemoryFree> memory;  // that kernels read, at an address in `numbers`
  uint64_t scratch_bytes = 0;
  bool copies = false;  // nothing to do if result 0 shares the memory of operand 0
  std::string fails;    // "": no; else each run fails with KEEL_RANGE, prepare does not: it may never run
};

// An address of a recorded launch, relative to entry `slot` of a replay's table.
struct Place {
  uint64_t address;
  uint16_t slot;  // kNoSlot: absolute
};
// A launch in a recording. Places by number: operands, results, scratch, fault bytes.
struct RecordedLaunch {
  struct Relay {
    uint64_t address = 0;       // in a graph a product uses this memory instead; 0: none
    CUfunction copy = nullptr;  // the kernel that copies to it, or from it; NULL: an earlier launch did
  };
  const Work* work;
  uint32_t fault;   // keel_call.fault
  uint32_t inputs;  // keel_call.n_in
  std::vector<Place> places;
  std::array<Relay, LibraryCall::kMostOperands>
      relays;  // of a product, by operand of its first step (relay.h)
};
struct RecordedLaunches {
  std::vector<uint64_t> table;  // of record_begin
  std::vector<RecordedLaunch> launches;
};
// Where recorded launches find addresses: in `table` when they are encoded; if memory is not 0, kernels read
// the entries that are not `kept` there, in a copy of the table on the device, so that they may change.
struct Entries {
  std::span<const uint64_t> table;
  CUdeviceptr memory = 0;
  std::span<const uint16_t> kept = {};  // in order; all of calls of libraries without relays
};
keel_rc Encode(keel_queue q, const RecordedLaunch& launch, const Entries& entries);

inline int64_t CeilDiv(int64_t n, int64_t size) { return (n + size - 1) / size; }
// Blocks for n threads; kernels have grid strides.
inline uint32_t Blocks(int64_t n, int64_t of = kThreads) {
  constexpr int64_t kMost = 1 << 16;
  return static_cast<uint32_t>(std::min(CeilDiv(n, of), kMost));
}

// Passes a Work to Keel as the launch of a node.
keel_rc Finish(Work&& work, keel_launch* launch);

}  // namespace keel_cuda
#endif
