// simt.cc: runs the threads of a block one after another, or as fibers that take turns at __syncthreads. The
// order of blocks, and of threads between two meetings, is another one each time, so that a missing meeting
// gives wrong numbers.
#include <ucontext.h>

#include <array>

#include "fake.h"

namespace fake {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStack = 256 << 10;  // frames are several times as large
#else
constexpr size_t kStack = 64 << 10;
#endif

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  bool done = false;
};
struct Block {
  std::vector<Fiber> fibers;
  ucontext_t scheduler;
  Fiber* current = nullptr;
  const SimtKernel* code = nullptr;
  const void* args = nullptr;
};
Block block;

void Meet() { swapcontext(&block.current->context, &block.scheduler); }
void Body() {
  block.code->run(block.args);
  block.current->done = true;
}

void Start(Fiber* fiber) {
  fiber->done = false;
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

// Each round runs every thread to its next meeting, or to its end.
void RunFibers(Simt* simt, unsigned threads) {
  if (block.fibers.size() < threads) block.fibers.resize(threads);
  for (unsigned t = 0; t < threads; t++) Start(&block.fibers[t]);
  for (unsigned done = 0; done < threads;) {
    done = 0;
    const Order order(threads);
    for (unsigned i = 0; i < threads; i++) {
      const unsigned t = order[i];
      block.current = &block.fibers[t];
      simt->thread.x = t;
      if (!block.current->done) swapcontext(&block.scheduler, &block.current->context);
      done += block.current->done;
    }
    if (done && done < threads) {
      Complain("some threads of a block ended while others wait at __syncthreads");
      return;
    }
  }
}

}  // namespace

void RunKernel(const CUkern_st& kernel, const Simt& sizes, const std::vector<char>& args) {
  Simt simt = sizes;
  simt.meet = Meet;
  simt.complain = [](const char* text) { Complain(text); };
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
