// device.h: a device that uses all freedom of the device contract and guarantees nothing else.
//
// Start here: the host cannot read the addresses of its memory (Veil); work waits in queues and runs late, in
// any random order that the waits allow (queue.cc); every rule of keel_plugin.h that Keel must keep is
// checked (Control::violation). Tests use control.h.
#ifndef KEEL_TESTS_HOSTILE_DEVICE_H
#define KEEL_TESTS_HOSTILE_DEVICE_H
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "abi/keel_plugin.h"
#include "control.h"
#include "orders.h"

namespace hostile {

// Device addresses are not addresses of this process: dereferencing one crashes.
inline constexpr uint64_t kVeil = uint64_t{1} << 56;
inline constexpr uint64_t kWrapped = uint64_t{1} << 57;

struct Memory {  // a live segment
  char* bytes;   // the real ones
  uint64_t size;
  uint32_t kind;
};

struct Command {
  enum Kind { kWork, kWait, kTicket } kind;
  std::function<std::string()> work;  // "": done, else the error
  keel_queue other = nullptr;         // kWait
  uint64_t ticket = 0;                // kWait: of other; kTicket: own
  bool upload = false;                // reads staging memory, as all earlier work in the queue
  // Of a launch, which may run before launches, copies and fills that it need not come after.
  uint32_t number = 0, depends = 0;
  uint32_t place = 0;  // of a launch its number, of a copy or fill that of the launch before it + 1; else 0
};

}  // namespace hostile

struct keel_queue_s {
  keel_dev device;
  uint32_t kind;
  std::deque<hostile::Command> waiting;
  uint64_t submitted = 0, done = 0;    // tickets
  uint32_t last_number = 0;            // of the launch encoded last
  std::atomic<int> inside{0};          // callers that encode: at most one
  keel_recording recording = nullptr;  // being made
};

struct keel_dev_s {
  const keel_host* host;
  uint32_t index;
  std::mutex mutex;
  std::mt19937_64 random;
  std::map<uint64_t, hostile::Memory> memory;  // by device address
  std::mutex memory_mutex;                     // guards that map, which other devices read too
  uint64_t next_wrapped = hostile::kWrapped;   // address of the next wrapped memory of the program
  std::vector<keel_queue> queues;
  hostile::Orders orders;
  uint64_t bytes = 0;
  std::string lost;  // the first error; every call returns it from then on

  // The real address of a range of device memory, or null and the reason.
  char* Reach(uint64_t address, uint64_t bytes, std::string* why);
  bool RunOne();         // runs one command of a random ready queue; false: none is ready
  void RunSome();        // runs a random number of commands, perhaps none
  keel_rc Lost() const;  // KEEL_OK or the first error
};

namespace hostile {

// The device functions of keel_plugin.h; memory.cc and queue.cc.
keel_rc SegmentAlloc(keel_dev, uint32_t kind, uint64_t bytes, keel_segment* out);
void SegmentFree(keel_dev, const keel_segment*);
keel_rc SegmentWrap(keel_dev, uint32_t kind, void* memory, uint64_t bytes, keel_segment* out);
void SegmentUnwrap(keel_dev, const keel_segment*);
keel_rc QueueOpen(keel_dev, uint32_t kind, keel_queue* out);
void QueueClose(keel_queue);
keel_rc Copy(keel_queue, const keel_segment* to, uint64_t to_offset, const keel_segment* from,
             uint64_t from_offset, uint64_t bytes);
keel_rc CopyFrom(keel_queue, const keel_segment* to, uint64_t to_offset, keel_dev other,
                 const keel_segment* from, uint64_t from_offset, uint64_t bytes);
keel_rc Fill(keel_queue, const keel_segment* to, uint64_t offset, uint64_t bytes, uint32_t value);
keel_rc Submit(keel_queue, uint64_t* ticket);
keel_rc QueueWait(keel_queue, keel_queue other, uint64_t ticket);
keel_rc HostWait(keel_queue, uint64_t ticket, uint64_t timeout);
keel_rc Query(keel_queue, uint64_t* done);
keel_rc RecordBegin(keel_queue, const uint64_t* table, uint32_t n);  // launch.cc
keel_rc RecordEnd(keel_queue, keel_recording* out);
keel_rc Replay(keel_queue, keel_recording, const uint64_t* table, uint32_t n);
void RecordingFree(keel_dev, keel_recording);

// Appends work to a queue; the caller holds no lock.
keel_rc Encode(keel_queue, Command command);

// launch.cc: the impls of the reference plugin, as work for queues.
const std::vector<keel_impl>& Impls();

}  // namespace hostile
#endif
