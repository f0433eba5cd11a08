/* plugin.c: the counting device "null": memory and queues of its own, in C against keel_plugin.h alone. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "null.h"

static keel_rc keep_quiet(keel_rc code, const char* message) {
  (void)message;
  return code;
}

static keel_rc info(const keel_host* host, uint32_t i, keel_device_info* out) {
  (void)host, (void)i;
  out->dl_type = 12;
  out->dl_id = 7; /* of no other device here */
  strcpy(out->description, "counts submits, waits and copies");
  strcpy(out->capabilities, "every op of the reference, counts");
  /* NULL_UUID: the 32 hexadecimal digits of another UUID, for tests of two plugins with the same hardware */
  const char* uuid = getenv("NULL_UUID");
  if (!uuid) uuid = "00112233445566778899aabbccddeeff";
  for (int b = 0; b < 16; b++) sscanf(uuid + 2 * b, "%2hhx", &out->uuid[b]);
  return KEEL_OK;
}

static keel_rc device_open(const keel_host* host, uint32_t i, const keel_kv* options, uint32_t n,
                           keel_dev* out) {
  (void)i, (void)options, (void)n;
  uint32_t n_impls;
  if (!null_impls(&n_impls))
    return host->fail(KEEL_UNAVAILABLE, "the reference plugin is not where it was built");
  keel_dev d = malloc(sizeof *d);
  if (!d) return host->fail(KEEL_OOM, "no memory for a device");
  null_opened(d->host = host);
  d->quiet = *host;
  d->quiet.fail = keep_quiet;
  if (getenv("NULL_HOLD")) null_hold(1); /* for programs that cannot call it: keel */
  *out = d;
  return KEEL_OK;
}

static void device_close(keel_dev d) { free(d); }

static keel_rc segment_alloc(keel_dev d, uint32_t kind, uint64_t bytes, keel_segment* out) {
  void* memory;
  if (posix_memalign(&memory, 4096, bytes ? bytes : 1))
    return d->quiet.fail(KEEL_OOM, "the host's memory is full");
  const keel_segment made = {memory, (uint64_t)(uintptr_t)memory, kind ? memory : NULL, bytes, kind, 0};
  *out = made;
  count_add(COUNT_SEGMENTS, 1);
  return KEEL_OK;
}

static void segment_free(keel_dev d, const keel_segment* segment) {
  (void)d;
  free(segment->handle);
  count_add(COUNT_SEGMENTS, -1);
}

static uint32_t lacks;
void null_lack(uint32_t flags) { lacks = flags; }
uint32_t null_lacks(void) { return lacks; }

/* Device memory is the host's, so any memory is. */
static keel_rc segment_wrap(keel_dev d, uint32_t kind, void* memory, uint64_t bytes, keel_segment* out) {
  if (lacks & NULL_LACKS_WRAP) return d->host->fail(KEEL_UNIMPLEMENTED, "wraps no memory today");
  const keel_segment made = {memory, (uint64_t)(uintptr_t)memory, kind ? memory : NULL, bytes, kind, 0};
  *out = made;
  count_add(COUNT_WRAPS, 1);
  count_add(COUNT_WRAPPED, 1);
  return KEEL_OK;
}

static void segment_unwrap(keel_dev d, const keel_segment* segment) {
  (void)d, (void)segment;
  count_add(COUNT_WRAPPED, -1);
}

static keel_rc copy(keel_queue q, const keel_segment* to, uint64_t to_offset, const keel_segment* from,
                    uint64_t from_offset, uint64_t bytes) {
  count_copy(to, from, bytes);
  if (null_queue_kind(q) == KEEL_QUEUE_DOWNLOAD) count_add(COUNT_ALONE, 1);
  memmove((char*)to->handle + to_offset, (const char*)from->handle + from_offset, bytes);
  return KEEL_OK;
}

static keel_rc fill(keel_queue q, const keel_segment* to, uint64_t offset, uint64_t bytes, uint32_t value) {
  (void)q;
  count_add(COUNT_FILLS, 1);
  for (uint64_t at = 0; at < bytes; at += 4) memcpy((char*)to->handle + offset + at, &value, 4);
  return KEEL_OK;
}

static keel_rc timestamp(keel_queue q, const keel_segment* to, uint64_t offset) {
  (void)q;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  memcpy((char*)to->handle + offset, &time, sizeof time);
  count_add(COUNT_TIMESTAMPS, 1);
  return KEEL_OK;
}

static const keel_device device = {.struct_size = sizeof device,
                                   .info = info,
                                   .open = device_open,
                                   .close = device_close,
                                   .segment_alloc = segment_alloc,
                                   .segment_free = segment_free,
                                   .queue_open = null_queue_open,
                                   .queue_close = null_queue_close,
                                   .copy = copy,
                                   .fill = fill,
                                   .submit = null_submit,
                                   .queue_wait = null_queue_wait,
                                   .host_wait = null_host_wait,
                                   .query = null_query,
                                   .record_begin = null_record_begin,
                                   .record_end = null_record_end,
                                   .replay = null_replay,
                                   .recording_free = null_recording_free,
                                   .timestamp = timestamp,
                                   .segment_wrap = segment_wrap,
                                   .segment_unwrap = segment_unwrap};

static const keel_plugin* describe(void) {
  static keel_plugin plugin = {
      KEEL_PLUGIN_HEADER, .name = "null",
      .version = "0.1.0", .about = "A device with queues that counts submits, waits and copies",
      .device = &device,  .impl_stride = sizeof(keel_impl)};
  plugin.impls = null_impls(&plugin.n_impls);
  return &plugin;
}

KEEL_PLUGIN(*describe())
