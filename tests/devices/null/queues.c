/* queues.c: queues that finish work as it is encoded. null_hold only delays the completion of tickets. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "null.h"

struct keel_queue_s {
  uint32_t kind;
  int32_t behind; /* waits for a pending ticket */
  uint64_t submitted, done;
  keel_recording recording;
  keel_queue next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, its queues and held */
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static keel_queue queues;
static int32_t held;

keel_rc null_queue_open(keel_dev d, uint32_t kind, keel_queue* out) {
  if (kind == KEEL_QUEUE_DOWNLOAD && null_lacks() & NULL_LACKS_DOWNLOADS) return KEEL_UNIMPLEMENTED;
  keel_queue q = calloc(1, sizeof *q);
  if (!q) return d->quiet.fail(KEEL_OOM, "no memory for a queue");
  q->kind = kind;
  pthread_mutex_lock(&lock);
  q->next = queues;
  queues = q;
  pthread_mutex_unlock(&lock);
  count_add(COUNT_QUEUES, 1);
  *out = q;
  return KEEL_OK;
}

uint32_t null_queue_kind(keel_queue q) { return q->kind; }

void null_queue_close(keel_queue q) {
  pthread_mutex_lock(&lock);
  keel_queue* at = &queues;
  while (*at != q) at = &(*at)->next;
  *at = q->next;
  pthread_mutex_unlock(&lock);
  count_add(COUNT_QUEUES, -1);
  free(q);
}

keel_recording* null_open_recording(keel_queue q) { return &q->recording; }

keel_rc null_submit(keel_queue q, uint64_t* ticket) {
  count_add(COUNT_SUBMITS, 1);
  pthread_mutex_lock(&lock);
  *ticket = ++q->submitted;
  if (!held || (q->kind != KEEL_QUEUE_COMPUTE && !q->behind)) q->done = q->submitted;
  pthread_mutex_unlock(&lock);
  return KEEL_OK;
}

keel_rc null_queue_wait(keel_queue q, keel_queue other, uint64_t ticket) {
  count_add(COUNT_QUEUE_WAITS, 1);
  pthread_mutex_lock(&lock);
  if (ticket > other->done) q->behind = 1;
  pthread_mutex_unlock(&lock);
  return KEEL_OK;
}

static struct timespec in(uint64_t nanoseconds) {
  const uint64_t second = 1000000000, most = 3600 * second;
  if (nanoseconds > most) nanoseconds = most; /* no test lasts longer; a sum cannot overflow */
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  nanoseconds += (uint64_t)t.tv_nsec;
  t.tv_sec += (time_t)(nanoseconds / second);
  t.tv_nsec = (long)(nanoseconds % second);
  return t;
}

keel_rc null_host_wait(keel_queue q, uint64_t ticket, uint64_t timeout) {
  count_add(COUNT_HOST_WAITS, 1);
  int late = 0;
  pthread_mutex_lock(&lock);
  if (q->done < ticket) {
    count_add(COUNT_BLOCKED_WAITS, 1);
    const struct timespec end = in(timeout);
    while (q->done < ticket && !late)
      late = pthread_cond_clockwait(&released, &lock, CLOCK_MONOTONIC, &end) != 0;
  }
  keel_rc rc = q->done < ticket ? KEEL_CANCELLED : KEEL_OK;
  pthread_mutex_unlock(&lock);
  return rc;
}

keel_rc null_query(keel_queue q, uint64_t* done) {
  count_add(COUNT_QUERIES, 1);
  pthread_mutex_lock(&lock);
  *done = q->done;
  pthread_mutex_unlock(&lock);
  return KEEL_OK;
}

void null_hold(int32_t on) {
  pthread_mutex_lock(&lock);
  held = on;
  for (keel_queue q = queues; q && !on; q = q->next) {
    q->done = q->submitted;
    q->behind = 0;
  }
  pthread_cond_broadcast(&released);
  pthread_mutex_unlock(&lock);
}
