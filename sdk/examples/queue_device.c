/* queue_device.c: a complete device with memory and queues of its own, which adds f32 numbers. A thread is
 * the hardware of each queue: it executes commands in their order, while the program goes on. The manual's
 * page "Write a device with queues" builds and runs it, and explains it step by step. */
#include <keel/keel_plugin.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

/* ---- memory: the host's, so that a device address is a pointer */
static keel_rc segment_alloc(keel_dev dev, uint32_t kind, uint64_t bytes, keel_segment* out) {
  void* memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
  *out = (keel_segment){memory, (uint64_t)(uintptr_t)memory, kind ? memory : NULL, bytes, kind, 0};
  return (void)dev, memory ? KEEL_OK : KEEL_OOM;
}
static void segment_free(keel_dev dev, const keel_segment* segment) { (void)dev, free(segment->handle); }

/* ---- queues: a ticket is the number of a command */
typedef struct command {
  struct command* next;
  void (*execute)(const struct command*); /* on the queue's thread; NULL: nothing */
  char* to;
  const char* from[2];
  uint64_t n; /* bytes; elements; or a ticket of: */
  keel_queue queue;
  uint32_t value; /* of a fill; flags of a launch */
} command;
struct keel_queue_s {
  thrd_t thread;
  mtx_t mutex;   /* of the members below */
  cnd_t changed; /* a command was encoded or is done, or closing */
  command *first, **last;
  uint64_t encoded, done; /* commands */
  int closing;
};
static int execute_all(void* arg) {
  keel_queue q = arg;
  mtx_lock(&q->mutex);
  for (;;) {
    while (!q->first && !q->closing) cnd_wait(&q->changed, &q->mutex);
    if (q->closing) break;
    command* c = q->first;
    if (!(q->first = c->next)) q->last = &q->first;
    mtx_unlock(&q->mutex);
    if (c->execute) c->execute(c);
    free(c);
    mtx_lock(&q->mutex);
    q->done++;
    cnd_broadcast(&q->changed);
  }
  mtx_unlock(&q->mutex);
  return 0;
}
static keel_rc queue_open(keel_dev dev, uint32_t kind, keel_queue* out) {
  keel_queue q = kind > KEEL_QUEUE_TRANSFER ? NULL : calloc(1, sizeof *q);
  (void)dev;
  if (!q) return kind > KEEL_QUEUE_TRANSFER ? KEEL_UNIMPLEMENTED : KEEL_OOM;
  q->last = &q->first;
  mtx_init(&q->mutex, mtx_plain);
  cnd_init(&q->changed);
  *out = q;
  return thrd_create(&q->thread, execute_all, q) == thrd_success ? KEEL_OK : (free(q), KEEL_OOM);
}
static void queue_close(keel_queue q) {
  mtx_lock(&q->mutex);
  q->closing = 1; /* drops the commands that have not begun */
  cnd_broadcast(&q->changed);
  mtx_unlock(&q->mutex);
  thrd_join(q->thread, NULL);
  for (command *c = q->first, *next; c; c = next) next = c->next, free(c);
  free(q);
}
static keel_rc encode(keel_queue q, command what) {
  command* c = malloc(sizeof *c);
  if (!c) return KEEL_OOM;
  *c = what;
  mtx_lock(&q->mutex);
  q->encoded++;
  *q->last = c;
  q->last = &c->next;
  cnd_broadcast(&q->changed);
  mtx_unlock(&q->mutex);
  return KEEL_OK;
}
static keel_rc submit(keel_queue q, uint64_t* ticket) {
  keel_rc rc = encode(q, (command){.execute = NULL}); /* so that no two tickets are equal */
  *ticket = q->encoded;                               /* one thread at a time encodes */
  return rc;
}
static keel_rc host_wait(keel_queue q, uint64_t ticket, uint64_t timeout) {
  struct timespec end;
  timespec_get(&end, TIME_UTC);
  const uint64_t nanoseconds = (uint64_t)end.tv_nsec + timeout % 1000000000;
  end.tv_sec += (time_t)(timeout / 1000000000 + nanoseconds / 1000000000);
  end.tv_nsec = (long)(nanoseconds % 1000000000);
  mtx_lock(&q->mutex);
  while (q->done < ticket && cnd_timedwait(&q->changed, &q->mutex, &end) == thrd_success) continue;
  const keel_rc rc = q->done < ticket ? KEEL_CANCELLED : KEEL_OK;
  mtx_unlock(&q->mutex);
  return rc;
}

/* ---- commands */
static void execute_wait(const command* c) { host_wait(c->queue, c->n, UINT64_MAX); }
static void execute_copy(const command* c) { memmove(c->to, c->from[0], c->n); }
static void execute_fill(const command* c) {
  for (uint64_t i = 0; i < c->n; i += sizeof c->value) memcpy(c->to + i, &c->value, sizeof c->value);
}
static keel_rc queue_wait(keel_queue q, keel_queue other, uint64_t ticket) {
  return encode(q, (command){.execute = execute_wait, .queue = other, .n = ticket});
}
static keel_rc copy(keel_queue q, const keel_segment* to, uint64_t to_offset, const keel_segment* from,
                    uint64_t from_offset, uint64_t n) {
  char *target = (char*)to->handle + to_offset, *source = (char*)from->handle + from_offset;
  return encode(q, (command){.execute = execute_copy, .to = target, .from = {source}, .n = n});
}
static keel_rc fill(keel_queue q, const keel_segment* to, uint64_t at, uint64_t n, uint32_t value) {
  return encode(q, (command){.execute = execute_fill, .to = (char*)to->handle + at, .n = n, .value = value});
}

/* ---- the launch: encoded in each run; computes when the queue comes to it */
static void execute_add(const command* c) {
  const float *a = (const float*)c->from[0], *b = (const float*)c->from[1];
  for (uint64_t i = 0; i < c->n; i++)
    ((float*)c->to)[i] = a[c->value & KEEL_CALL_ONE(0) ? 0 : i] + b[c->value & KEEL_CALL_ONE(1) ? 0 : i];
}
static keel_rc run(const keel_call* call) {
  if (!(call->flags & KEEL_CALL_FLAT)) /* host->merge_dims would help to add the others */
    return call->env->host->fail(KEEL_UNIMPLEMENTED, "adds operands of one shape, or of one element");
  command add = {.execute = execute_add, .n = (uint64_t)call->count, .value = call->flags};
  add.to = keel_ptr(call->out[0]);
  for (int i = 0; i < 2; i++) add.from[i] = keel_ptr(call->in[i]);
  return encode(call->env->queue, add);
}

/* ---- the tables */
static const keel_impl add = {"add", 1, 1, "T=f32", "on threads", 0, KEEL_IMPL_ANY_DIMS, NULL, NULL, run};
static const keel_device device = {.struct_size = sizeof device,
                                   .segment_alloc = segment_alloc,
                                   .segment_free = segment_free,
                                   .queue_open = queue_open,
                                   .queue_close = queue_close,
                                   .copy = copy,
                                   .fill = fill,
                                   .submit = submit,
                                   .queue_wait = queue_wait,
                                   .host_wait = host_wait};
static const keel_plugin plugin = {
    KEEL_PLUGIN_HEADER, .name = "queue_device", .version = "0.1.0", .about = "adds f32 numbers on threads",
    .device = &device,  .impls = &add,          .n_impls = 1,       .impl_stride = sizeof(keel_impl)};
KEEL_PLUGIN(plugin)
