// recording.h: a recorded list of launches, replayed as a CUDA graph. Kernels find addresses in a table in
// device memory, so one graph serves any of them. But cuBLASLt's kernels keep addresses, and so do all for
// the entry that most are relative to, which rarely changes: a load less in each. So a recording has a graph
// for each of the last few sets of kept addresses, and encodes the launches for others; small operands that
// are elsewhere in each replay are copied to memory that stays (relay.h).
#ifndef KEEL_PLUGINS_CUDA_RECORDING_H
#define KEEL_PLUGINS_CUDA_RECORDING_H
#include <array>
#include <span>

#include "launch.h"

struct keel_recording_s : keel_cuda::RecordedLaunches {
  using Table = std::span<const uint64_t>;
  struct Graph {
    CUgraphExec exec = nullptr;
    CUdeviceptr memory = 0;         // its table: a replay whose table is there already need not write it
    std::vector<uint64_t> written;  // the table in the memory, if is_written
    bool is_written = false;
    uint64_t used = 0;  // the last replay
    bool Has(Table table) const;
  };
  static constexpr size_t kMostGraphs = 4;
  static constexpr size_t kRemembered = 8;

  std::vector<uint16_t> kept;  // entries of the table whose addresses a graph keeps
  CUfunction store = nullptr;
  CUdeviceptr memory = 0;  // of all graphs' tables
  std::vector<Graph> graphs;
  std::array<std::vector<uint64_t>, kRemembered> seen;  // tables of the last wishes for a graph
  std::vector<CUdeviceptr> relays;  // memory of operands whose addresses change all the time (relay.h)
  uint64_t relayed = 0;             // its bytes
  uint64_t replays = 0, wishes = 0;
  uint64_t first = 0;  // the replay of the oldest wish, when `seen` is full
  bool full = false;   // there was no memory for a graph
};

namespace keel_cuda {

keel_rc RecordBegin(keel_queue q, const uint64_t* table, uint32_t n);
keel_rc RecordEnd(keel_queue q, keel_recording* out);
keel_rc Replay(keel_queue q, keel_recording recording, const uint64_t* table, uint32_t n);
void RecordingFree(keel_dev d, keel_recording recording);

}  // namespace keel_cuda
#endif
