/* null.h: the parts of the counting device: queues.c keeps order and time, launch.c runs ops, plugin.c is the
 * table. */
#ifndef KEEL_TESTS_DEVICES_NULL_H
#define KEEL_TESTS_DEVICES_NULL_H
#include "../counts.h"
#include "abi/keel_plugin.h"

struct keel_dev_s {
  keel_host quiet; /* Keel's host table without `fail`: a failed op only sets the fault word */
};

/* queues.c */
keel_rc null_queue_open(keel_dev, uint32_t kind, keel_queue* out);
void null_queue_close(keel_queue);
keel_rc null_submit(keel_queue, uint64_t* ticket);
keel_rc null_queue_wait(keel_queue, keel_queue other, uint64_t ticket);
keel_rc null_host_wait(keel_queue, uint64_t ticket, uint64_t timeout);
keel_rc null_query(keel_queue, uint64_t* done);
/* 1: compute tickets, and copies that wait for one, stay pending until 0 is set. Other copies complete at
 * once. */
KEEL_EXPORT void null_hold(int32_t on);

/* launch.c */
const keel_impl* null_impls(uint32_t* n); /* the reference plugin's ops; NULL: it is not where it was built */
/* 0: launches compute nothing, so that a benchmark measures Keel alone. The environment variable NULL_COMPUTE
 * is the value at load. */
KEEL_EXPORT void null_compute(int32_t on);
#endif
