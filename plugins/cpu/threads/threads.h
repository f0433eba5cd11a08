// threads.h: the interface of libkomp.so.1, the thread pool of the cpu device. The same library serves the
// OpenMP functions that oneDNN imports (gomp.cc), so that oneDNN and the plugin's loops share one pool
// (pool.h).
//
// A region is a function run as n numbered parts. Its caller chooses n, independent of the machine's load, so
// the order of sums is independent of load too. The calling thread runs part 0; workers claim parts, and so
// does the caller when it has finished one. So a worker that is not running delays no part that it has not
// started.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Runs part(arg, 0, n) to part(arg, n - 1, n), which must not throw, and returns when all have ended. Parts
// run on up to n threads with the caller's floating-point options; the caller receives their exception flags.
// A nested region runs its parts on the calling thread in order.
void keel_threads_run(int n, void (*part)(void* arg, int number, int n), void* arg);

// Starts workers for regions of n parts. Returns the number of threads available to a region: less than n if
// the system refuses more.
int keel_threads_reserve(int n);

// Of the calling thread: the parts of regions that oneDNN opens on it (1 at first), and how many workers may
// help in its regions (all at first). With 0 helpers the caller runs all parts, and workers join only if it
// is stuck.
void keel_threads_set(int n);
int keel_threads_get(void);
void keel_threads_set_helpers(int helpers);

// While set, parts of the calling thread's regions wait for each other in spin loops and have to run at the
// same time: workers for all of them are woken at once, ignoring the limit of helpers.
void keel_threads_set_gang(int gang);

// Whether the calling thread is within a region of more than one part.
int keel_threads_inside(void);

#ifdef __cplusplus
}
#endif
