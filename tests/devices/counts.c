/* counts.c: counters that any thread may raise. */
#include "counts.h"

static const char* const names[COUNTS] = {
    "launches",   "submits",  "queue_waits",  "host_waits", "blocked_waits",  "queries",
    "fills",      "uploads",  "upload_bytes", "downloads",  "download_bytes", "moves",
    "move_bytes", "prepares", "replays",      "timestamps", "wraps",          "alone",
    "segments",   "queues",   "recordings",   "wrapped"};
static int64_t counts[COUNTS];

void count_add(enum device_count which, int64_t n) {
  __atomic_add_fetch(&counts[which], n, __ATOMIC_RELAXED);
}

void count_copy(const keel_segment* to, const keel_segment* from, uint64_t bytes) {
  enum device_count which = from->kind == KEEL_SEGMENT_STAGING  ? COUNT_UPLOADS
                            : to->kind == KEEL_SEGMENT_READBACK ? COUNT_DOWNLOADS
                                                                : COUNT_MOVES;
  count_add(which, 1);
  count_add((enum device_count)(which + 1), (int64_t)bytes); /* the next count is its bytes */
}

const char* device_count_name(uint32_t which) { return which < COUNTS ? names[which] : NULL; }

uint64_t device_count_of(uint32_t which) {
  return which < COUNTS ? (uint64_t)__atomic_load_n(&counts[which], __ATOMIC_RELAXED) : 0;
}

void device_reset(void) {
  for (int i = 0; i < COUNT_SEGMENTS; i++) __atomic_store_n(&counts[i], 0, __ATOMIC_RELAXED);
}
