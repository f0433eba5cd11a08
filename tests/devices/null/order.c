/* order.c: an oracle for keel_call.number and depends: each launch is compared with all launches since number
 * 1, by the addresses of operands, results and scratch. One queue at a time is checked, as tests use one. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "null.h"

enum { MOST_LAUNCHES = 4096, MOST_OPERANDS = 64 };
typedef struct {
  uint64_t begin, end;
  int32_t written;
} range;
typedef struct {
  uint32_t n;
  range used[MOST_OPERANDS];
} used;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static used before[MOST_LAUNCHES];
static uint32_t n_before, last_barrier;
static uint64_t barriers, checked;
static char wrong[160];

static void add(used* u, uint64_t at, uint64_t bytes, int32_t written) {
  if (bytes && u->n < MOST_OPERANDS) u->used[u->n++] = (range){at, at + bytes, written};
}

static void add_tensor(used* u, const keel_tensor* t, int32_t written) {
  if (t) add(u, (uint64_t)(uintptr_t)keel_ptr(t), (uint64_t)keel_count(t) * t->dtype.bits / 8, written);
}

static int conflict(const used* a, const used* b) {
  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t j = 0; j < b->n; j++)
      if ((a->used[i].written || b->used[j].written) && a->used[i].begin < b->used[j].end &&
          b->used[j].begin < a->used[i].end)
        return 1;
  return 0;
}

void null_order(const keel_call* call) {
  if (!null_computes()) return;
  pthread_mutex_lock(&lock);
  if (call->number == 1) n_before = last_barrier = 0;
  used* mine = &before[n_before < MOST_LAUNCHES ? n_before : 0];
  mine->n = 0;
  for (int i = 0; i < call->n_in; i++) add_tensor(mine, call->in[i], 0);
  for (int i = 0; i < call->n_out; i++) add_tensor(mine, call->out[i], 1);
  add(mine, (uint64_t)(uintptr_t)call->scratch, call->scratch_bytes, 1);
  uint32_t depends = n_before;
  while (depends && !conflict(&before[depends - 1], mine)) depends--;
  n_before++;
  checked++;
  if ((call->number != n_before || call->depends != depends) && !wrong[0])
    snprintf(wrong, sizeof wrong, "launch %u depends on %u; by its addresses launch %u depends on %u",
             call->number, call->depends, n_before, depends);
  if (call->number == 1 || call->depends > last_barrier) {
    barriers++;
    last_barrier = call->number - 1;
  }
  pthread_mutex_unlock(&lock);
}

uint64_t null_barriers(void) { return barriers; }
uint64_t null_ordered(void) { return checked; }
const char* null_disorder(void) { return wrong[0] ? wrong : NULL; }
