/* record.c: a recording is a list of copied calls; a replay computes each with the addresses of its table. */
#include <stdlib.h>
#include <string.h>

#include "null.h"

typedef struct recorded {
  keel_call call; /* its lists point behind it */
  keel_env env;
  struct recorded* next;
} recorded;

struct keel_recording_s {
  uint64_t* table;
  uint32_t n;
  int64_t launches;
  recorded *first, **end;
};

static int32_t refused;

void null_refuse_recordings(int32_t which) { refused = which; }

keel_rc null_record_begin(keel_queue q, const uint64_t* table, uint32_t n) {
  const char* wanted = getenv("NULL_RECORD");
  if (refused == 1 || (wanted && !atoi(wanted))) return KEEL_UNIMPLEMENTED;
  keel_recording r = calloc(1, sizeof *r);
  r->table = malloc(n * sizeof *table);
  memcpy(r->table, table, n * sizeof *table);
  r->n = n;
  r->end = &r->first;
  count_add(COUNT_RECORDINGS, 1);
  *null_open_recording(q) = r;
  return KEEL_OK;
}

void null_recording_free(keel_dev d, keel_recording r) {
  (void)d;
  for (recorded *at = r->first, *next; at; at = next) next = at->next, free(at);
  free(r->table);
  free(r);
  count_add(COUNT_RECORDINGS, -1);
}

keel_rc null_record_end(keel_queue q, keel_recording* out) {
  keel_recording* open = null_open_recording(q);
  if (out && refused != 2)
    *out = *open;
  else
    null_recording_free(NULL, *open);
  *open = NULL;
  return refused == 2 ? KEEL_UNIMPLEMENTED : KEEL_OK;
}

/* In one block: the call, pointers to operands and results, the tensors, their dims, the slots. */
keel_rc null_record(const keel_call* call, keel_recording r) {
  if (refused == 3) return KEEL_UNIMPLEMENTED;
  if (!null_computes()) return r->launches++, KEEL_OK;
  const size_t n = (size_t)call->n_in + call->n_out;
  recorded* made = calloc(
      1, sizeof *made + n * (sizeof(keel_tensor*) + sizeof(keel_tensor) + KEEL_MAX_RANK * sizeof(int64_t)) +
             (n + 2) * sizeof(uint16_t));
  keel_tensor** operands = (keel_tensor**)(made + 1);
  keel_tensor* tensors = (keel_tensor*)(operands + n);
  int64_t* dims = (int64_t*)(tensors + n);
  uint16_t* slots = (uint16_t*)(dims + n * KEEL_MAX_RANK);
  made->call = *call;
  made->env = *call->env;
  made->call.env = &made->env;
  made->call.in = (const keel_tensor* const*)operands;
  made->call.out = operands + call->n_in;
  made->call.slots = memcpy(slots, call->slots, (n + 2) * sizeof *slots);
  for (size_t i = 0; i < n; i++, dims += KEEL_MAX_RANK) {
    const keel_tensor* t = i < call->n_in ? call->in[i] : call->out[i - call->n_in];
    if (!t) continue;
    tensors[i] = *t;
    if (t->ndim) memcpy(dims, t->shape, (size_t)t->ndim * sizeof *dims);
    tensors[i].shape = dims;
    operands[i] = &tensors[i];
  }
  *r->end = made;
  r->end = &made->next;
  r->launches++;
  return KEEL_OK;
}

static uint64_t moved(keel_recording r, uint16_t slot, uint64_t address, const uint64_t* table) {
  return slot == KEEL_NO_SLOT ? address : address + table[slot] - r->table[slot];
}

static keel_rc replay_one(keel_recording r, const recorded* one, const uint64_t* table) {
  static const int32_t never = 0;
  keel_call call = one->call;
  keel_env env = one->env;
  const uint32_t n = (uint32_t)call.n_in + call.n_out;
  keel_tensor tensors[64], *operands[64];
  if (n > 64) return KEEL_INTERNAL;
  env.cancelled = &never;
  call.env = &env;
  for (uint32_t i = 0; i < n; i++) {
    const keel_tensor* t = i < call.n_in ? call.in[i] : call.out[i - call.n_in];
    operands[i] = t ? &tensors[i] : NULL;
    if (!t) continue;
    tensors[i] = *t;
    tensors[i].data = (void*)(uintptr_t)moved(r, call.slots[i], (uint64_t)(uintptr_t)t->data, table);
  }
  call.in = (const keel_tensor* const*)operands;
  call.out = operands + call.n_in;
  call.scratch = (void*)(uintptr_t)moved(r, call.slots[n], (uint64_t)(uintptr_t)call.scratch, table);
  return null_execute(&call, env.dev, moved(r, call.slots[n + 1], env.fault, table));
}

keel_rc null_replay(keel_queue q, keel_recording r, const uint64_t* table, uint32_t n) {
  (void)q;
  count_add(COUNT_REPLAYS, 1);
  count_add(COUNT_LAUNCHES, r->launches);
  if (n != r->n) return KEEL_INVALID;
  for (const recorded* at = r->first; at && null_computes(); at = at->next) {
    keel_rc rc = replay_one(r, at, table);
    if (rc != KEEL_OK) return rc;
  }
  return KEEL_OK;
}
