// args.h: the one parameter of every kernel. Included by device code, by run-time compilation and by the
// plugin, so it includes nothing.
#ifndef KEEL_PLUGINS_CUDA_ARGS_H
#define KEEL_PLUGINS_CUDA_ARGS_H

constexpr int kMostAddresses = 24;
constexpr int kMostNumbers = 96;
constexpr unsigned short kNoSlot = 0xffff;  // KEEL_NO_SLOT
constexpr int kThreads = 256;               // of a block
constexpr int kWarp = 32;
constexpr int kMostThreads = 1024;  // of a block of a WIDE_KERNEL, whose step says how many

struct KeelArgs {
  // Of a replay (recording.h): address i is relative to table[slot[i]]. NULL: all addresses are absolute.
  const unsigned long long* table;
  unsigned long long address[kMostAddresses];  // operands, then results, as the kernel says
  unsigned long long fault;                    // keel_env.fault
  unsigned short slot[kMostAddresses];
  unsigned short fault_slot;
  unsigned fault_code;              // keel_call.fault | KEEL_RANGE
  long long numbers[kMostNumbers];  // sizes, strides ..., as the kernel says
};

#endif
