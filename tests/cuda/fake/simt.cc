// simt.cc: runs the threads of a block one after another, or as fibers that take turns at __syncthreads.
#include <ucontext.h>

#include <array>

#include "fake.h"

namespace fake {
namespace {

constexpr size_t kStack = 64 << 10, kMostThreads = 1024;

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
  swapcontext(&block.current->context, &block.scheduler);
}

void Start(Fiber* fiber) {
  fiber->done = false;
  fiber->stack.resize(kStack);
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.data();
  fiber->context.uc_stack.ss_size = kStack;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, Body, 0);
}

// Each round runs every thread to its next meeting, or to its end.
void RunFibers(Simt* simt, unsigned threads) {
  if (block.fibers.size() < threads) block.fibers.resize(threads);
  for (unsigned t = 0; t < threads; t++) Start(&block.fibers[t]);
  for (unsigned done = 0; done < threads;) {
    done = 0;
    for (unsigned t = 0; t < threads; t++) {
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
  *kernel.simt = &simt;
  block.code = kernel.code;
  block.args = args.data();
  for (simt.block.x = 0; simt.block.x < simt.grid_size.x; simt.block.x++) {
    if (kernel.code->has_blocks) {
      RunFibers(&simt, simt.block_size.x);
      continue;
    }
    for (simt.thread.x = 0; simt.thread.x < simt.block_size.x; simt.thread.x++) kernel.code->run(args.data());
  }
  *kernel.simt = nullptr;
}

}  // namespace fake
