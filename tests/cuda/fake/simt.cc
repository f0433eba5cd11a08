// simt.cc: runs the threads of a block one after another, or as fibers that take turns at __syncthreads and
// at shuffles. The order of blocks, and of threads between two meetings, is another one each time, so that a
// missing meeting gives wrong numbers.
#include <ucontext.h>

#include <algorithm>
#include <array>

#include "fake.h"

namespace fake {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStack = 256 << 10;  // frames are several times as large
#else
constexpr size_t kStack = 64 << 10;
#endif

constexpr unsigned kWarp = 32;

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  enum { kRuns, kAtBlock, kAtWarp, kDone } where = kRuns;
  unsigned mask = 0, from = 0;  // of the shuffle
  unsigned long long value = 0;
};
struct Block {
  std::vector<Fiber> fibers;
  ucontext_t scheduler;
  Fiber* current = nullptr;
  const SimtKernel* code = nullptr;
  const void* args = nullptr;
};
Block block;

void Stop(decltype(Fiber::where) where) {
  block.current->where = where;
  swapcontext(&block.current->context, &block.scheduler);
}
void Meet() { Stop(Fiber::kAtBlock); }
unsigned long long Exchange(unsigned mask, unsigned long long value, unsigned from) {
  Fiber* fiber = block.current;
  fiber->mask = mask, fiber->from = from, fiber->value = value;
  Stop(Fiber::kAtWarp);
  return fiber->value;
}
void Body() {
  block.code->run(block.args);
  block.current->where = Fiber::kDone;
}

void Start(Fiber* fiber) {
  fiber->where = Fiber::kRuns;
  fiber->stack.resize(kStack);
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.data();
  fiber->context.uc_stack.ss_size = kStack;
  fiber->context.uc_link = &block.scheduler;
  makecontext(&fiber->context, Body, 0);
}

// The numbers below n from a random one on, upwards or downwards.
class Order {
 public:
  explicit Order(unsigned n)
      : n_(n), start_(static_cast<unsigned>(state().random() % n)), down_(state().random() % 2) {}
  unsigned operator[](unsigned i) const { return (start_ + (down_ ? n_ - i : i)) % n_; }

 private:
  unsigned n_, start_;
  bool down_;
};

// Whether the lanes that this thread of a warp names for its shuffle are all at one that names the same.
bool AreTogether(const Fiber* warp, unsigned lanes, unsigned mask) {
  for (unsigned lane = 0; lane < kWarp; lane++)
    if (mask >> lane & 1)
      if (lane >= lanes || warp[lane].where != Fiber::kAtWarp || warp[lane].mask != mask) return false;
  return true;
}
// Each gets the value of the lane that it named.
void Swap(Fiber* warp, unsigned mask) {
  unsigned long long given[kWarp];
  for (unsigned lane = 0; lane < kWarp; lane++) given[lane] = mask >> lane & 1 ? warp[lane].value : 0;
  for (unsigned lane = 0; lane < kWarp; lane++) {
    if (!(mask >> lane & 1)) continue;
    if (!(mask >> warp[lane].from & 1)) Complain("a shuffle reads from a lane that takes no part");
    warp[lane].value = given[warp[lane].from];
    warp[lane].where = Fiber::kRuns;
  }
}
// Lets the threads of a warp go on whose shuffle is complete.
bool LeaveShuffles(Fiber* warp, unsigned lanes) {
  bool moved = false;
  for (unsigned lane = 0; lane < lanes; lane++) {
    if (warp[lane].where != Fiber::kAtWarp) continue;
    const unsigned mask = warp[lane].mask;
    if (!(mask >> lane & 1)) Complain("a thread is not in the mask of its own shuffle");
    if (!(mask >> lane & 1) || !AreTogether(warp, lanes, mask)) continue;
    Swap(warp, mask);
    moved = true;
  }
  return moved;
}

// Each round runs every thread to its next meeting or shuffle, or to its end.
void RunRound(Simt* simt, unsigned threads) {
  const Order order(threads);
  for (unsigned i = 0; i < threads; i++) {
    const unsigned t = order[i];
    block.current = &block.fibers[t];
    simt->thread.x = t;
    if (block.current->where == Fiber::kRuns) swapcontext(&block.scheduler, &block.current->context);
  }
}
void RunFibers(Simt* simt, unsigned threads) {
  if (block.fibers.size() < threads) block.fibers.resize(threads);
  const auto count = [&](auto where) {
    return std::count_if(block.fibers.begin(), block.fibers.begin() + threads,
                         [&](const Fiber& fiber) { return fiber.where == where; });
  };
  for (unsigned t = 0; t < threads; t++) Start(&block.fibers[t]);
  while (count(Fiber::kDone) < threads) {
    RunRound(simt, threads);
    bool moved = false;
    for (unsigned first = 0; first < threads; first += kWarp)
      moved |= LeaveShuffles(&block.fibers[first], std::min(kWarp, threads - first));
    if (moved) continue;
    if (count(Fiber::kAtWarp)) return Complain("threads wait at a shuffle for others of their warp");
    if (count(Fiber::kAtBlock) && count(Fiber::kDone))
      return Complain("some threads of a block ended while others wait at __syncthreads");
    for (unsigned t = 0; t < threads; t++)
      if (block.fibers[t].where == Fiber::kAtBlock) block.fibers[t].where = Fiber::kRuns;
  }
}

void NotOfThisKernel() { Complain("threads meet in a kernel that is no BLOCK_KERNEL"); }

}  // namespace

void RunKernel(const CUkern_st& kernel, const Simt& sizes, const std::vector<char>& args) {
  Simt simt = sizes;
  simt.meet = kernel.code->has_blocks ? Meet : NotOfThisKernel;
  simt.exchange = kernel.code->has_blocks ? Exchange : [](unsigned, unsigned long long value, unsigned) {
    NotOfThisKernel();
    return value;
  };
  simt.complain = [](const char* finding) { Complain(finding); };
  *kernel.simt = &simt;
  block.code = kernel.code;
  block.args = args.data();
  const Order blocks(simt.grid_size.x), threads(simt.block_size.x);
  for (unsigned b = 0; b < simt.grid_size.x; b++) {
    simt.block.x = blocks[b];
    if (kernel.code->has_blocks) {
      RunFibers(&simt, simt.block_size.x);
      continue;
    }
    for (unsigned t = 0; t < simt.block_size.x; t++) {
      simt.thread.x = threads[t];
      kernel.code->run(args.data());
    }
  }
  *kernel.simt = nullptr;
}

}  // namespace fake
