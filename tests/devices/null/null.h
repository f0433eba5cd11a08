/* null.h: the parts of the counting device: queues.c keeps order and time, launch.c runs ops, record.c
 * records and replays launches, order.c checks which launches depend on which, plugin.c is the table. */
#ifndef KEEL_TESTS_DEVICES_NULL_H
#define KEEL_TESTS_DEVICES_NULL_H
#include "../counts.h"
#include "abi/keel_plugin.h"

struct keel_dev_s {
  const keel_host* host;
  keel_host quiet; /* Keel's host table without `fail`: a failed op only sets the fault word */
};

/* queues.c */
keel_rc null_queue_open(keel_dev, uint32_t kind, keel_queue* out);
void null_queue_close(keel_queue);
uint32_t null_queue_kind(keel_queue);
keel_rc null_submit(keel_queue, uint64_t* ticket);
keel_rc null_queue_wait(keel_queue, keel_queue other, uint64_t ticket);
keel_rc null_host_wait(keel_queue, uint64_t ticket, uint64_t timeout);
keel_rc null_query(keel_queue, uint64_t* done);
keel_recording* null_open_recording(keel_queue); /* *: NULL if the queue records nothing now */
/* 1: compute tickets, and copies that wait for one, stay pending until 0 is set. Other copies complete at
 * once. */
KEEL_EXPORT void null_hold(int32_t on);

/* A kind of the device that lacks what is optional: the sum of the flags. DOWNLOADS is read when the device
 * is opened. */
enum null_lack { NULL_LACKS_WRAP = 1, NULL_LACKS_DOWNLOADS = 2 };
KEEL_EXPORT void null_lack(uint32_t flags);
uint32_t null_lacks(void);

/* launch.c */
void null_opened(const keel_host* host);
const keel_impl* null_impls(uint32_t* n); /* the reference plugin's ops; NULL: it is not where it was built */
/* Computes now. `fault` and the operands are addresses of this process. */
keel_rc null_execute(const keel_call*, keel_dev, uint64_t fault);
/* 0: launches compute nothing, so that a benchmark measures Keel alone. The environment variable NULL_COMPUTE
 * is the value at load. */
KEEL_EXPORT void null_compute(int32_t on);
int32_t null_computes(void);
/* Launches prepared from now on have so many bytes of parameters, at least 16, or none (0). */
KEEL_EXPORT void null_params(uint64_t bytes);
KEEL_EXPORT void null_scratch(uint64_t bytes); /* the same for scratch, beyond what an op needs */

/* record.c */
keel_rc null_record_begin(keel_queue, const uint64_t* table, uint32_t n);
keel_rc null_record_end(keel_queue, keel_recording* out);
keel_rc null_replay(keel_queue, keel_recording, const uint64_t* table, uint32_t n);
void null_recording_free(keel_dev, keel_recording);
keel_rc null_record(const keel_call*, keel_recording);
/* What is unimplemented: 0: nothing, 1: record_begin, 2: record_end, 3: each launch while it is recorded.
 * With the environment variable NULL_RECORD=0: record_begin. */
KEEL_EXPORT void null_refuse_recordings(int32_t which);

/* order.c: checks number and depends of each launch, as it is encoded, against its addresses. */
void null_order(const keel_call*);
KEEL_EXPORT uint64_t null_barriers(void); /* so many would have been needed by number and depends, in all */
KEEL_EXPORT uint64_t null_ordered(void);  /* launches checked */
KEEL_EXPORT const char* null_disorder(void); /* the first wrong launch; NULL: none */
/* Launches of this op ("": of none) are declined: by prepare, or by run. */
KEEL_EXPORT void null_decline(const char* op, int32_t in_run);
/* The hashes (0: without, 1: with dims) of call number i since the last null_watch_calls(1). The device
 * declines these calls after it has hashed them. */
KEEL_EXPORT void null_watch_calls(int32_t on);
KEEL_EXPORT uint64_t null_hash(uint32_t i, int32_t with_dims);
/* keel_host.merge_dims of the device opened last. */
KEEL_EXPORT int32_t null_merge_dims(const keel_tensor* const* tensors, uint32_t n, int64_t* sizes,
                                    int64_t* strides, int32_t* ndim);
#endif
