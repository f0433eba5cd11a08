// threads.h: the threads of the cpu device: what libkomp.so.1 offers to keel-cpu.so. The same library serves
// oneDNN the OpenMP functions that it imports (gomp.cc), so that its loops and ours share one pool (pool.h).
//
// A region is one function run as n numbered parts. n is fixed by who opens it and never depends on what else
// the machine does, so the order of sums does not either. The calling thread runs part 0; workers claim
// parts, and so does the caller when it has finished one. A worker that is not running therefore delays
// nothing that it has not begun.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Runs part(arg, 0, n) to part(arg, n - 1, n), which must not throw, and returns when all have ended. Parts
// run on up to n threads at once and see the floating-point options of the caller, who gets their exception
// flags. Inside another region the parts run on the calling thread one after the other.
void keel_threads_run(int n, void (*part)(void* arg, int number, int n), void* arg);

// Starts workers for regions of n parts. Returns how many threads a region may have: less than n where the
// system gives no more.
int keel_threads_reserve(int n);

// Of the calling thread: the parts of the regions that oneDNN opens on it (1 at first), and how many workers
// may help in its regions (all at first). With 0 helpers the caller runs all parts, and workers come only
// where it is stuck.
void keel_threads_set(int n);
int keel_threads_get(void);
void keel_threads_set_helpers(int helpers);

// While it is set the parts of the calling thread's regions wait for each other in loops of their own:
// workers for all of them are woken at once, whatever helpers there are.
void keel_threads_set_meeting(int meeting);

// Whether the calling thread is within a region of more than one part.
int keel_threads_inside(void);

#ifdef __cplusplus
}
#endif
