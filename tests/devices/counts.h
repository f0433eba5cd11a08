/* counts.h: the counters of the device in this folder, and functions to read them. counting.py reads them
 * from Python. */
#ifndef KEEL_TESTS_DEVICES_COUNTS_H
#define KEEL_TESTS_DEVICES_COUNTS_H
#include "abi/keel_plugin.h"

enum device_count {
  COUNT_LAUNCHES,
  COUNT_SUBMITS,
  COUNT_QUEUE_WAITS,
  COUNT_HOST_WAITS,
  COUNT_BLOCKED_WAITS, /* host waits for a pending ticket */
  COUNT_QUERIES,
  COUNT_FILLS,
  COUNT_UPLOADS, /* copies from staging memory */
  COUNT_UPLOAD_BYTES,
  COUNT_DOWNLOADS, /* copies to read-back memory */
  COUNT_DOWNLOAD_BYTES,
  COUNT_MOVES, /* copies within device memory */
  COUNT_MOVE_BYTES,
  COUNT_PREPARES,
  COUNT_REPLAYS, /* launches count those that are replayed, too */
  COUNT_TIMESTAMPS,
  COUNT_WRAPS,      /* segments of memory that Keel did not allocate */
  COUNT_ALONE,      /* downloads on a queue of their own */
  COUNT_SEGMENTS,   /* alive now; device_reset does not clear it */
  COUNT_QUEUES,     /* the same for queues */
  COUNT_RECORDINGS, /* and for recordings */
  COUNT_WRAPPED,    /* and for wrapped segments */
  COUNTS
};

#ifdef __cplusplus
extern "C" {
#endif
void count_add(enum device_count which, int64_t n);
void count_copy(const keel_segment* to, const keel_segment* from, uint64_t bytes);

/* For tests, found by dlsym. */
KEEL_EXPORT const char* device_count_name(uint32_t which); /* NULL: no such count */
KEEL_EXPORT uint64_t device_count_of(uint32_t which);
KEEL_EXPORT void device_reset(void);
#ifdef __cplusplus
}
#endif
#endif
